--- Acts on one process: answer, attach, kill, run again.

local config = require("toold.config")
local connection = require("toold.connection")
local exec = require("toold.exec")
local model = require("toold.model")
local rpc = require("toold.rpc")
local text = require("toold.text")
local window = require("toold.window")

local M = {}

---@param err toold.Error
local function report(err)
  connection.report(err.message, vim.log.levels.ERROR)
end

--- Asks before something is lost, if a person is there to answer: without a user interface (a script, a test) the caller has
--- decided already.
---@param question string
---@param yes string
---@param act fun()
local function confirm(question, yes, act)
  if #vim.api.nvim_list_uis() == 0 then
    act()
    return
  end
  vim.ui.select({ yes, "no" }, { prompt = question, kind = "toold_confirm" }, function(choice)
    if choice == yes then
      act()
    end
  end)
end

---@param members? table[]
---@return string
local function tree_size(members)
  local count = members and #members or 1
  return count == 1 and "1 process" or (count .. " processes")
end

---@param id string
---@param line string
---@param is_secret boolean
local function submit(id, line, is_secret)
  local params = { id = id, data = line, write_id = exec.unique(), secret = is_secret or nil }
  rpc.call("submit", params, function(err)
    if err then
      report(err)
    end
    model.refresh()
    model.look_again()
  end)
end

--- Asks for an answer without showing or keeping it.
---@param prompt string
---@return string?
local function ask_hidden(prompt)
  local ok, line = pcall(vim.fn.inputsecret, { prompt = prompt, cancelreturn = vim.NIL })
  -- Neovim leaves the prompt, with a star for each character, on the command line.
  vim.cmd("redraw | echo ''")
  if ok and type(line) == "string" then
    return line
  end
end

---@param process toold.Process
local function ask(process)
  local question = text.question(process)
  if question and question.prompt == nil and question.echo == nil then
    -- An older daemon reports only that it asks; its event had the rest.
    local known = model.find(process.id)
    question = known and text.question(known) or question
  end
  local prompt = question and question.prompt
  prompt = prompt and prompt ~= "" and text.clean(prompt) or ("input for " .. text.name(process) .. ": ")
  local hides = question ~= nil and process.pty and question.echo ~= true
  if hides then
    local line = ask_hidden(prompt)
    if line then
      -- `secret` makes the daemon refuse the write if the terminal shows what is typed by then.
      submit(process.id, line, question.echo == false)
    end
    return
  end
  vim.ui.input({ prompt = prompt }, function(line)
    if line then
      submit(process.id, line, false)
    end
  end)
end

--- Asks the user for the answer to the question of a process, or for a line to its input. What is typed is hidden when the
--- program has turned the echo off, and never kept.
---@param id string
function M.answer(id)
  rpc.call("inspect", { id = id }, function(err, process)
    if err then
      report(err)
    elseif not text.is_live(process) then
      connection.report(("%s has ended: %s"):format(text.name(process), text.state(process)))
    elseif process.stdin == "null" or process.stdin == "closed" then
      connection.report(text.name(process) .. " has no open input")
    else
      ask(process)
    end
  end)
end

--- Opens the terminal of a process: `toolctl attach` in a terminal window. Closing it leaves the process running.
---@param id string
function M.attach(id)
  rpc.call("inspect", { id = id }, function(err, process)
    if err then
      report(err)
      return
    end
    if not process.pty or not text.is_live(process) then
      require("toold.log").open(process.id)
      if text.is_live(process) then
        connection.report(
          text.name(process) .. " has no terminal: this is its output; i types a line",
          vim.log.levels.INFO
        )
      end
      return
    end
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.bo[buffer].bufhidden = "wipe"
    window.show(buffer)
    -- Ctrl-\ is how Neovim leaves a terminal, so it does not detach: closing the window does.
    local argv = { config.get().toolctl, "attach", "--detach-keys", "none", process.id }
    local env = { TOOLD_SOCKET = config.socket() }
    if vim.fn.has("nvim-0.11") == 1 then
      vim.fn.jobstart(argv, { term = true, env = env })
    else
      vim.fn.termopen(argv, { env = env })
    end
    vim.b[buffer].toold_id = process.id
    vim.cmd.startinsert()
  end)
end

local function on_killed(id, err, result)
  if err then
    report(err)
    return
  end
  for _, killed in ipairs(result.results) do
    local survivors = killed.survivors or {}
    if #survivors > 0 then
      local message = ("%s: %d processes of its tree are still there"):format(id, #survivors)
      connection.report(message, vim.log.levels.ERROR)
    end
  end
end

--- Kills the whole tree of a process.
---@param id string
---@param options? { ask?: boolean } Ask first, if someone is there.
function M.kill(id, options)
  local function kill(full_id)
    rpc.call("kill", { id = full_id }, function(err, result)
      on_killed(full_id, err, result)
    end)
  end
  if options and options.ask == false then
    kill(id)
    return
  end
  rpc.call("inspect", { id = id }, function(err, process)
    if err then
      report(err)
      return
    end
    local question = ("Kill %s (%s)?"):format(text.name(process), tree_size(process.tree))
    confirm(question, "kill", function()
      kill(process.id)
    end)
  end)
end

--- Starts a process again, with the editor's environment.
---@param id string
function M.rerun(id)
  rpc.call("inspect", { id = id }, function(err, process)
    if err then
      report(err)
      return
    end
    local function restart()
      local environment = exec.environment(nil, process.pty)
      local params = { id = process.id, env = environment.env }
      if next(environment.env_base64) then
        params.env_base64 = environment.env_base64
      end
      rpc.call("restart", params, function(failure, started)
        if failure then
          report(failure)
        else
          connection.report(("%s runs again as %s"):format(text.name(started), started.id), vim.log.levels.INFO)
        end
      end)
    end
    if text.is_live(process) then
      confirm(("%s runs. Kill it and run it again?"):format(text.name(process)), "restart", restart)
    else
      restart()
    end
  end)
end

return M
