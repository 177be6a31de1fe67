--- The events of the daemon, one on each line, as they come.

local rpc = require("toold.rpc")
local text = require("toold.text")
local window = require("toold.window")

local M = {}

local NAME = "toold://events"
--- Events from before that are shown at first.
local PAST_EVENTS = 100
--- The most lines that are kept.
local MAX_LINES = 5000

---@param buffer integer
---@param line string
local function append(buffer, line)
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  local count = vim.api.nvim_buf_line_count(buffer)
  local following = vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_cursor(win)[1] == count
  end, vim.fn.win_findbuf(buffer))
  local is_empty = count == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == ""
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, is_empty and 0 or count, -1, false, { line })
  local surplus = vim.api.nvim_buf_line_count(buffer) - MAX_LINES
  if surplus > 0 then
    vim.api.nvim_buf_set_lines(buffer, 0, surplus, false, {})
  end
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  for _, win in ipairs(following) do
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local function subscribe(buffer)
  local subscription = rpc.subscribe({}, function(event)
    append(buffer, text.event(event))
  end, { replay = PAST_EVENTS })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      rpc.unsubscribe(subscription)
    end,
  })
end

--- Shows the events.
---@return integer buffer
function M.open()
  local buffer = window.find(NAME)
  if not buffer then
    buffer = window.scratch(NAME)
    vim.bo[buffer].modifiable = false
    vim.bo[buffer].filetype = "toold-events"
    window.map(buffer, {
      {
        "q",
        "close the window",
        function()
          pcall(vim.api.nvim_win_close, 0, false)
        end,
      },
    })
    subscribe(buffer)
  end
  window.show(buffer)
  return buffer
end

return M
