--- `:Toold! cmd`: like `:make`, but the command is a process of the daemon. The quickfix list is filled at its exit.

local connection = require("toold.connection")
local exec = require("toold.exec")
local follow = require("toold.follow")
local text = require("toold.text")

local M = {}

--- Replaces `%`, `%:p` and the like by the name of the current file, as `:make` does. `\%` is a percent sign.
---@param command string
---@return string
function M.expand(command)
  local marked = command:gsub("\\%%", "\0")
  local expanded = marked:gsub("%%[:%w~.]*", function(item)
    local modifiers = item:match("^%%(:[phtre~.:]+)") or ""
    local rest = item:sub(2 + #modifiers)
    local file = vim.fn.expand("%" .. modifiers)
    return file ~= "" and (file .. rest) or item
  end)
  return (expanded:gsub("%z", "%%"))
end

---@param pattern string
local function autocmd(pattern)
  vim.api.nvim_exec_autocmds(pattern, { pattern = "make", modeline = false })
end

--- Fills the quickfix list. Names of files are relative to the directory of the command.
---@param title string
---@param lines string[]
---@param errorformat string
---@param cwd string
local function fill(title, lines, errorformat, cwd)
  local here = vim.fn.getcwd()
  local moved = vim.uv.fs_realpath(here) ~= vim.uv.fs_realpath(cwd)
  if moved then
    vim.fn.chdir(cwd)
  end
  local ok, err = pcall(vim.fn.setqflist, {}, " ", { title = title, lines = lines, efm = errorformat })
  if moved then
    vim.fn.chdir(here)
  end
  if not ok then
    connection.report(err, vim.log.levels.ERROR)
  end
end

---@return integer
local function count_errors()
  return #vim.tbl_filter(function(item)
    return item.valid == 1
  end, vim.fn.getqflist())
end

--- Runs a command; without one, 'makeprg'.
---@param command string
---@param done? fun(process?: toold.Process, err?: toold.Error)
---@return toold.Follower
function M.run(command, done)
  command = M.expand(command ~= "" and command or vim.o.makeprg)
  local title = ":Toold! " .. command
  local errorformat = vim.bo.errorformat ~= "" and vim.bo.errorformat or vim.o.errorformat
  local params = exec.params(command, { labels = { make = "quickfix" } })
  local pieces = {}
  autocmd("QuickFixCmdPre")
  return follow.exec(params, {
    on_output = function(data)
      pieces[#pieces + 1] = data
    end,
    on_error = function(err)
      connection.report(err.message, vim.log.levels.ERROR)
      if done then
        done(nil, err)
      end
    end,
    on_exit = function(process)
      local lines = vim.split(table.concat(pieces), "\n", { plain = true })
      if lines[#lines] == "" then
        lines[#lines] = nil
      end
      fill(title, vim.tbl_map(text.plain, lines), errorformat, params.cwd)
      autocmd("QuickFixCmdPost")
      local level = process.exit_code == 0 and vim.log.levels.INFO or vim.log.levels.WARN
      connection.report(("%s: %s, %d errors"):format(text.name(process), text.ending(process), count_errors()), level)
      if done then
        done(process)
      end
    end,
  })
end

return M
