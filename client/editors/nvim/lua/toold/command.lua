--- `:Toold`: its verbs, their arguments and completion.

local model = require("toold.model")
local text = require("toold.text")

local M = {}

--- Verbs that take a process.
local ON_PROCESS = {
  log = function(id)
    require("toold.log").open(id)
  end,
  attach = function(id)
    require("toold.actions").attach(id)
  end,
  answer = function(id)
    require("toold.actions").answer(id)
  end,
  kill = function(id)
    require("toold.actions").kill(id, { ask = false })
  end,
  rerun = function(id)
    require("toold.actions").rerun(id)
  end,
}

--- Processes that a verb can act on. Others take all.
local SUITS = {
  attach = function(process)
    return text.is_live(process) and process.pty
  end,
  answer = function(process)
    return text.kind(process) == "asks"
  end,
  kill = text.is_live,
}

local OTHERS = {
  list = function()
    require("toold.list").open()
  end,
  events = function()
    require("toold.events").open()
  end,
  run = function(command)
    if command ~= "" then
      require("toold").run(command)
      return
    end
    vim.ui.input({ prompt = "run: ", completion = "shellcmd" }, function(line)
      if line and line ~= "" then
        require("toold").run(line)
      end
    end)
  end,
}

M.VERBS = { "answer", "attach", "events", "kill", "list", "log", "rerun", "run" }

--- Runs a verb. A verb that needs a process and has none asks which.
---@param verb string
---@param argument? string
function M.verb(verb, argument)
  argument = argument or ""
  if OTHERS[verb] then
    OTHERS[verb](argument)
  elseif ON_PROCESS[verb] and argument ~= "" then
    require("toold.process_ref").resolve(argument, ON_PROCESS[verb])
  elseif ON_PROCESS[verb] then
    require("toold").select({ filter = SUITS[verb], prompt = verb }, function(process)
      ON_PROCESS[verb](process.id)
    end)
  else
    local message = ("there is no `:Toold %s`; verbs: %s"):format(verb, table.concat(M.VERBS, ", "))
    require("toold.connection").report(message, vim.log.levels.ERROR)
  end
end

--- Runs the command.
---@param call { args: string, bang: boolean }
function M.run(call)
  if call.bang then
    require("toold.make").run(call.args)
    return
  end
  local verb, argument = call.args:match("^%s*(%S*)%s*(.-)%s*$")
  M.verb(verb == "" and "list" or verb, argument)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local before = line:sub(1, #line - #lead)
  local candidates
  if line:find("^%s*%S*Toold!") or before:find("Toold%s+run%s+%S*") then
    local count = #vim.split(vim.trim(before), "%s+")
    local is_program = count <= (line:find("Toold!") and 1 or 2)
    return vim.fn.getcompletion(lead, is_program and "shellcmd" or "file")
  elseif before:find("Toold%s+$") then
    candidates = M.VERBS
  else
    local verb = before:match("Toold%s+(%S+)")
    model.start({ passive = true })
    candidates = {}
    for _, process in ipairs(model.list()) do
      if ON_PROCESS[verb] and (not SUITS[verb] or SUITS[verb](process)) then
        candidates[#candidates + 1] = process.name or process.id
      end
    end
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
