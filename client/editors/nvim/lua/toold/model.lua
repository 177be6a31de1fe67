--- The processes as the editor knows them: read once, then again after events. Nothing is asked for while nothing happens.

local config = require("toold.config")
local facts = require("toold.fact")
local rpc = require("toold.rpc")
local text = require("toold.text")

local M = {}

--- The time after the output of a process that asks at which it is looked at once more: it may have read its answer, and not
--- yet have gone on, at the first look.
local SECOND_LOOK_MS = 300
--- The time between two reads while events keep coming: a storm of short jobs must not make the editor slow.
local PAUSE_MS = 50
--- The most rows of the list.
local MAX_ROWS = 200

--- The most processes whose events are remembered. A fact is of use for the moment until the daemon shows it.
local MAX_FACTS = 1000

local FIELDS = vim.split(
  "id name command argv cwd status stopped closed exit_code signal reason started_at exited_at uptime_ms pty stdin "
    .. "needs_input session_key task_id labels cursor preview",
  " "
)

local processes = {} ---@type toold.Process[]
local received_at = 0
local prompts = {} ---@type table<string, toold.NeedsInput> by process, from events
local known = {} ---@type table<string, toold.Fact> by process, until the daemon shows it
local asking = {} ---@type table<string, toold.Subscription> by process
local listeners = {} ---@type table<any, fun()>
local is_started, is_reading, is_stale, is_active = false, false, false, false
local look_timer ---@type uv.uv_timer_t?

local function publish()
  for _, listener in pairs(listeners) do
    listener()
  end
end

--- Order: asks, running, ended; the newest first in each.
local RANKS = { asks = 1, running = 2 }

local function sort()
  local places = {}
  for i, process in ipairs(processes) do
    local rank = RANKS[text.kind(process)] or 3
    local ended = rank == 3 and text.epoch(process.exited_at or process.started_at) or 0
    places[process.id] = { rank, -ended, i }
  end
  table.sort(processes, function(a, b)
    local left, right = places[a.id], places[b.id]
    for i = 1, 3 do
      if left[i] ~= right[i] then
        return left[i] < right[i]
      end
    end
    return false
  end)
end

--- Gives a process that asks the prompt of its event, if the daemon's answer has none (before 0.2 it is a boolean). Without the
--- event the prompt is the line of its output that has no end.
---@param process toold.Process
local function add_prompt(process)
  local question = text.question(process)
  if not question then
    prompts[process.id] = nil
  elseif type(process.needs_input) ~= "table" then
    process.needs_input = prompts[process.id] or { prompt = (process.preview or ""):match("[^\r\n]+$") }
  end
end

---@param process toold.Process
local function complete(process)
  facts.apply(process, known[process.id])
  add_prompt(process)
end

--- No event reports that a question was answered. The output that follows is the sign of it, so the output of processes that
--- ask is subscribed to, and of no others.
local function watch_questions()
  local wanted = {}
  for _, process in ipairs(processes) do
    if text.kind(process) == "asks" then
      wanted[process.id] = true
    end
  end
  for id, subscription in pairs(asking) do
    if not wanted[id] then
      rpc.unsubscribe(subscription)
      asking[id] = nil
    end
  end
  for id in pairs(wanted) do
    if not asking[id] then
      asking[id] = rpc.subscribe({ id = id, output = true, types = { "closed" } }, function()
        M.refresh()
        M.look_again()
      end, { passive = true })
    end
  end
end

--- Reads the list again. Calls while it is being read are one more read after it.
function M.refresh()
  if is_reading then
    is_stale = true
    return
  end
  if rpc.state() ~= "up" then
    return
  end
  is_reading, is_stale = true, false
  local params = { ended_within_ms = config.get().ended_within_ms, limit = MAX_ROWS, fields = FIELDS }
  rpc.call("list", params, function(err, result)
    if not err then
      processes = result.processes
      received_at = vim.uv.now()
      vim.tbl_map(complete, processes)
      sort()
      watch_questions()
      publish()
    end
    if not is_stale then
      is_reading = false
      return
    end
    vim.defer_fn(function()
      is_reading = false
      M.refresh()
    end, PAUSE_MS)
  end)
end

--- Reads the list once more, a moment later.
function M.look_again()
  if look_timer then
    return
  end
  look_timer = vim.defer_fn(function()
    look_timer = nil
    M.refresh()
  end, SECOND_LOOK_MS)
end

---@param event toold.Event
---@param is_past boolean
local function on_event(event, is_past)
  if event.id then
    if vim.tbl_count(known) > MAX_FACTS then
      known = {}
    end
    known[event.id] = facts.after(known[event.id], event)
  end
  if event.type == "needs_input" and event.id then
    prompts[event.id] = { since = event.at, prompt = event.prompt, echo = event.echo }
  end
  if is_past then
    -- The list is being read, or was: only what it does not show yet is missing.
    vim.tbl_map(complete, processes)
    sort()
    publish()
    return
  end
  vim.api.nvim_exec_autocmds("User", { pattern = "TooldEvent", data = event })
  M.refresh()
end

--- Begins to follow the daemon.
---@param options? { passive?: boolean } With `passive`, no daemon is started.
function M.start(options)
  local passive = (options or {}).passive or false
  if is_started then
    if not passive and not is_active then
      is_active = true
      require("toold.connection").connect({ start = true })
    end
    return
  end
  is_started, is_active = true, not passive
  rpc.on_state(function()
    publish()
    vim.cmd.redrawstatus({ bang = true })
  end)
  listeners.statusline = function()
    vim.cmd.redrawstatus({ bang = true })
  end
  rpc.subscribe({}, on_event, { on_ready = M.refresh, replay = facts.REPLAYED_EVENTS, passive = passive })
end

--- Calls `listener` after each change. `key` names it, so that it can be removed with nil.
---@param key any
---@param listener? fun()
function M.listen(key, listener)
  listeners[key] = listener
end

--- Returns the processes: those that ask, that run, that have ended.
---@return toold.Process[]
function M.list()
  return processes
end

---@param id string An id or a name.
---@return toold.Process?
function M.find(id)
  for _, process in ipairs(processes) do
    if process.id == id then
      return process
    end
  end
  for _, process in ipairs(processes) do
    if process.name == id then
      return process
    end
  end
end

--- Returns the age of a process now: since its start, or since its end.
---@param process toold.Process
---@return number ms
function M.age(process)
  if text.is_live(process) then
    return process.uptime_ms + (vim.uv.now() - received_at)
  end
  local seconds, micros = vim.uv.gettimeofday()
  local now = seconds + micros / 1e6
  return (now - text.epoch(process.exited_at or process.started_at)) * 1000
end

return M
