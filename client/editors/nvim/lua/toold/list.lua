--- The list of processes in a scratch buffer. Events change it; a timer of the editor only makes the ages older.

local actions = require("toold.actions")
local connection = require("toold.connection")
local model = require("toold.model")
local text = require("toold.text")
local window = require("toold.window")

local M = {}

local NAME = "toold://list"
--- The time between two updates of the ages, while the list is on the screen and something runs.
local AGE_MS = 1000
--- The lines above the first process.
local HEADER_LINES = 2

local HIGHLIGHTS = {
  asks = { "TooldAsks", "WarningMsg" },
  running = { "TooldRunning", "DiagnosticOk" },
  ok = { "TooldOk", "Comment" },
  failed = { "TooldFailed", "ErrorMsg" },
  lost = { "TooldLost", "ErrorMsg" },
}

local namespace = vim.api.nvim_create_namespace("toold-list")
local buffer ---@type integer?
local rows = {} ---@type toold.Process[] by line, after the header
local filter = ""
local age_timer ---@type uv.uv_timer_t?

---@param process toold.Process
---@return boolean
local function is_selected(process)
  if filter == "" then
    return true
  end
  local parts = { process.id, process.name or "", process.command, text.state(process), process.session_key or "" }
  return table.concat(parts, "\n"):lower():find(filter:lower(), 1, true) ~= nil
end

---@return string
local function header()
  local parts = { "toold" }
  local counts = text.counts(model.list())
  parts[#parts + 1] = counts ~= "" and counts or "nothing runs"
  if connection.state() ~= "up" then
    parts[#parts + 1] = "the daemon is away"
  end
  if filter ~= "" then
    parts[#parts + 1] = "filter: " .. filter
  end
  return table.concat(parts, "  ") .. "  (? help)"
end

local function highlight()
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local function mark(line, group, last_column)
    local options = { end_row = line, hl_group = group }
    options.end_col = last_column or #(vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] or "")
    vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, options)
  end
  mark(0, "Title")
  mark(1, "Comment")
  for i, process in ipairs(rows) do
    local kind = text.kind(process)
    mark(HEADER_LINES + i - 1, HIGHLIGHTS[kind][1], #text.MARKS[kind])
  end
end

--- The processes under the cursors of the windows, so that each cursor stays on its process.
local function places()
  local found = {}
  for _, win in ipairs(vim.fn.win_findbuf(buffer)) do
    local line = vim.api.nvim_win_get_cursor(win)[1]
    found[win] = rows[line - HEADER_LINES]
  end
  return found
end

local function restore(found)
  for win, process in pairs(found) do
    for i, row in ipairs(rows) do
      if row.id == process.id then
        local column = vim.api.nvim_win_get_cursor(win)[2]
        pcall(vim.api.nvim_win_set_cursor, win, { HEADER_LINES + i, column })
      end
    end
  end
end

local function render()
  if not buffer or not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  local before = places()
  rows = vim.tbl_filter(is_selected, model.list())
  local lines = { header(), text.HEADER }
  for _, process in ipairs(rows) do
    lines[#lines + 1] = text.row(process, model.age(process))
  end
  window.set_lines(buffer, lines)
  highlight()
  restore(before)
end

local function is_visible()
  return buffer ~= nil and #vim.fn.win_findbuf(buffer) > 0
end

local function update()
  if not is_visible() then
    return
  end
  render()
  local runs = vim.iter(rows):any(text.is_live)
  if runs and not age_timer then
    age_timer = vim.defer_fn(function()
      age_timer = nil
      update()
    end, AGE_MS)
  end
end

--- Returns the process under the cursor.
---@return toold.Process?
function M.current()
  return rows[vim.api.nvim_win_get_cursor(0)[1] - HEADER_LINES]
end

--- Shows only processes whose id, name, command, state or owner has this text.
---@param new string
function M.filter(new)
  filter = new
  update()
end

---@param act fun(id: string)
local function on_current(act)
  return function()
    local process = M.current()
    if process then
      act(process.id)
    end
  end
end

local function keys()
  window.map(buffer, {
    { "<CR>", "output of the process", on_current(function(id)
      require("toold.log").open(id)
    end) },
    { "a", "attach to its terminal", on_current(actions.attach) },
    { "i", "answer its question, or type a line", on_current(actions.answer) },
    { "K", "kill its tree", on_current(actions.kill) },
    { "R", "run it again", on_current(actions.rerun) },
    {
      "/",
      "filter; empty shows all",
      function()
        vim.ui.input({ prompt = "filter: ", default = filter }, function(line)
          if line then
            M.filter(line)
          end
        end)
      end,
    },
    {
      "q",
      "close the list",
      function()
        pcall(vim.api.nvim_win_close, 0, false)
      end,
    },
  })
end

local function create()
  buffer = window.scratch(NAME)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = "toold-list"
  for _, group in pairs(HIGHLIGHTS) do
    vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
  end
  keys()
  vim.api.nvim_create_autocmd("BufWinEnter", { buffer = buffer, callback = vim.schedule_wrap(update) })
  model.listen(NAME, update)
end

--- Shows the list.
---@return integer buffer
function M.open()
  if not buffer or not vim.api.nvim_buf_is_valid(buffer) then
    create()
  end
  model.start()
  local win = window.show(buffer)
  vim.wo[win][0].cursorline = true
  render()
  if vim.api.nvim_win_get_cursor(win)[1] <= HEADER_LINES and #rows > 0 then
    vim.api.nvim_win_set_cursor(win, { HEADER_LINES + 1, 0 })
  end
  update()
  return buffer
end

return M
