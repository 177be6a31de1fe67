--- Windows and scratch buffers of the plugin.

local config = require("toold.config")

local M = {}

--- Returns the buffer of this name, if there is one.
---@param name string
---@return integer?
function M.find(name)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_valid(buffer) and vim.api.nvim_buf_get_name(buffer) == name then
      return buffer
    end
  end
end

--- Makes an empty buffer without a file.
---@param name string
---@return integer
function M.scratch(name)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].bufhidden = "hide"
  return buffer
end

local LOG_PREFIX = "toold://log/"

--- Returns a window of this tab page for a buffer: one that shows it, or for a log one that shows another log.
local function find_window(buffer)
  local is_log = vim.startswith(vim.api.nvim_buf_get_name(buffer), LOG_PREFIX)
  local other
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local shown = vim.api.nvim_win_get_buf(window)
    if shown == buffer then
      return window
    elseif is_log and vim.startswith(vim.api.nvim_buf_get_name(shown), LOG_PREFIX) then
      other = window
    end
  end
  return other
end

--- Shows a buffer and enters its window. A window that shows it, or another log, is used again.
---@param buffer integer
---@return integer window
function M.show(buffer)
  local window = find_window(buffer)
  if not window then
    vim.cmd(config.get().open)
    window = vim.api.nvim_get_current_win()
  end
  if vim.api.nvim_win_get_buf(window) ~= buffer then
    vim.api.nvim_win_set_buf(window, buffer)
  end
  vim.api.nvim_set_current_win(window)
  local options = vim.wo[window][0]
  options.number, options.relativenumber, options.signcolumn = false, false, "no"
  options.wrap, options.spell, options.list = false, false, false
  return window
end

--- Replaces the lines of a buffer that cannot be edited, and only those that differ: the cursor stays where it is.
---@param buffer integer
---@param lines string[]
function M.set_lines(buffer, lines)
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local first, last_old, last_new = 1, #old, #lines
  while first <= last_old and first <= last_new and old[first] == lines[first] do
    first = first + 1
  end
  while last_old >= first and last_new >= first and old[last_old] == lines[last_new] do
    last_old, last_new = last_old - 1, last_new - 1
  end
  if first > last_old and first > last_new then
    return
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, first - 1, last_old, false, vim.list_slice(lines, first, last_new))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- Maps keys in a buffer and returns the lines of their help.
---@param buffer integer
---@param keys { [1]: string, [2]: string, [3]: fun() }[] key, meaning, action
function M.map(buffer, keys)
  local help = {}
  for _, key in ipairs(keys) do
    help[#help + 1] = ("  %-6s %s"):format(key[1], key[2])
    vim.keymap.set("n", key[1], key[3], { buffer = buffer, nowait = true, silent = true, desc = "toold: " .. key[2] })
  end
  help[#help + 1] = ("  %-6s %s"):format("?", "this help")
  vim.keymap.set("n", "?", function()
    M.help(help)
  end, { buffer = buffer, nowait = true, desc = "toold: help" })
end

--- Shows lines in a floating window that any of q, Esc and ? closes.
---@param lines string[]
function M.help(lines)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].filetype = "toold-help"
  local width = 0
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line) + 2)
  end
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    row = math.max(0, math.floor((vim.o.lines - #lines) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = math.max(1, math.min(width, vim.o.columns - 2)),
    height = math.max(1, math.min(#lines, vim.o.lines - 4)),
    style = "minimal",
    border = "rounded",
    title = " toold ",
  })
  for _, key in ipairs({ "q", "<Esc>", "?" }) do
    vim.keymap.set("n", key, function()
      pcall(vim.api.nvim_win_close, window, true)
    end, { buffer = buffer, nowait = true })
  end
end

return M
