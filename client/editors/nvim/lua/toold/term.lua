--- A terminal buffer that shows the output of a process and follows it. It takes no keys.

local M = {}

--- The most lines that Neovim keeps of a terminal.
local SCROLLBACK_LINES = 100000

---@class toold.Term
---@field buffer integer
---@field channel integer
---@field is_raw boolean Line ends are those of a terminal already.
---@field ends_with_return boolean
local Term = {}
Term.__index = Term

--- Returns the last line with text. The lines of the screen below it are empty.
---@param buffer integer
---@return integer
local function last_line(buffer)
  local line = vim.api.nvim_buf_line_count(buffer)
  while line > 1 and vim.api.nvim_buf_get_lines(buffer, line - 1, line, false)[1] == "" do
    line = line - 1
  end
  return line
end

--- Moves the cursor to the end in the windows that follow.
local function follow(buffer)
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  local last = last_line(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    if vim.w[window].toold_follows ~= false then
      pcall(vim.api.nvim_win_set_cursor, window, { last, 0 })
    end
  end
end

--- A window follows until its cursor leaves the end.
local function track(buffer)
  vim.api.nvim_create_autocmd("CursorMoved", {
    buffer = buffer,
    callback = function()
      local window = vim.api.nvim_get_current_win()
      vim.w[window].toold_follows = vim.api.nvim_win_get_cursor(window)[1] >= last_line(buffer)
    end,
  })
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buffer,
    callback = function()
      vim.w.toold_follows = true
      follow(buffer)
    end,
  })
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function()
      vim.schedule(function()
        follow(buffer)
      end)
    end,
  })
end

--- Makes a terminal of an empty buffer. The size is that of the window that shows it.
---@param buffer integer
---@return toold.Term
function M.open(buffer)
  -- Keys, and answers to queries in the output, go nowhere: a log that is shown again must not type into its program.
  -- A 'scrollback' that is set later counts only from the next redraw on: output that comes before it would lose its first
  -- lines. At the opening Neovim 0.10 takes the global value, and 0.12 that of the buffer.
  local default = vim.go.scrollback
  vim.go.scrollback, vim.bo[buffer].scrollback = SCROLLBACK_LINES, SCROLLBACK_LINES
  local ok, channel = pcall(vim.api.nvim_open_term, buffer, {})
  vim.go.scrollback = default
  if not ok then
    error(channel, 0)
  end
  track(buffer)
  return setmetatable({ buffer = buffer, channel = channel, is_raw = false, ends_with_return = false }, Term)
end

--- Makes a terminal of a new buffer that no window shows. Without a window its size would be 80 by 24, and lines would be cut
--- there, so a hidden one shows it for a moment.
---@param size { rows: integer, cols: integer }
---@return toold.Term
function M.open_hidden(size)
  local buffer = vim.api.nvim_create_buf(false, true)
  local window = vim.api.nvim_open_win(buffer, false, {
    relative = "editor",
    row = 0,
    col = 0,
    width = size.cols,
    height = size.rows,
    style = "minimal",
    focusable = false,
    hide = true,
    noautocmd = true,
  })
  local ok, terminal = pcall(vim.api.nvim_win_call, window, function()
    return M.open(buffer)
  end)
  vim.api.nvim_win_close(window, true)
  if not ok then
    error(terminal, 0)
  end
  return terminal
end

---@param data string
function Term:send(data)
  if data == "" or not vim.api.nvim_buf_is_valid(self.buffer) then
    return
  end
  local sent = data
  if not self.is_raw then
    local starts = self.ends_with_return and data:sub(1, 1) == "\n"
    sent = data:gsub("\r?\n", "\r\n")
    if starts then
      sent = sent:sub(2)
    end
  end
  self.ends_with_return = data:sub(-1) == "\r"
  pcall(vim.api.nvim_chan_send, self.channel, sent)
end

--- Prints a line of ours, dimmed, on a line of its own.
---@param message string
function Term:note(message)
  pcall(vim.api.nvim_chan_send, self.channel, "\r\n\27[0;2m[" .. message .. "]\27[0m\r\n")
end

return M
