--- Calls and subscriptions over the one connection to the daemon.
---
--- After a loss, calls that may be repeated are sent again, and subscriptions go on after the last event that was received.

local connection = require("toold.connection")
local wire = require("toold.wire")

local M = {}

--- Methods that may be sent again after a lost connection: they read, or doing them twice is the same.
local REPEATABLE = {
  ["daemon.info"] = true,
  inspect = true,
  kill = true,
  list = true,
  log = true,
  poll = true,
  resize = true,
}
--- Parameters that bind the effect of a call to a key.
local KEYS = { exec = "request_id", submit = "write_id", write = "write_id" }

---@class toold.Call
---@field id integer
---@field method string
---@field params table
---@field done fun(err?: toold.Error, result?: any)
---@field sent boolean
---@field is_internal boolean Part of the opening of a subscription, which is opened again as a whole.

---@class toold.Subscription
---@field params table
---@field on_event fun(event: toold.Event, is_past: boolean)
---@field replay integer Events of before that are wanted.
---@field base? integer The newest event when it was first open.
---@field on_ready? fun() Called when it is open, and again after each reconnect: the time to read what came before.
---@field number? integer The daemon's number, while it is open.
---@field after? integer The last event that was received.
---@field ended boolean

local next_id = 1
local calls = {} ---@type table<integer, toold.Call>
local subscriptions = {} ---@type toold.Subscription[]

M.state = connection.state
M.on_state = connection.on_state

---@param call toold.Call
---@return boolean
local function is_repeatable(call)
  local key = KEYS[call.method]
  return REPEATABLE[call.method] or (key and call.params[key] ~= nil) or false
end

--- Runs a callback of a caller: an error in it must not keep the next message from being handled.
local function protect(callback, ...)
  local ok, err = xpcall(callback, debug.traceback, ...)
  if not ok then
    connection.report(err, vim.log.levels.ERROR)
  end
end

---@return toold.Call[] in the order in which they were made
local function pending()
  local ids = vim.tbl_keys(calls)
  table.sort(ids)
  return vim.tbl_map(function(id)
    return calls[id]
  end, ids)
end

---@param call toold.Call
---@param err? toold.Error
---@param result? any
local function finish(call, err, result)
  if calls[call.id] == call then
    calls[call.id] = nil
    protect(call.done, err, result)
  end
end

---@param call toold.Call
local function send(call)
  if connection.state() == "up" then
    call.sent = true
    connection.send(wire.encode(call))
  end
end

---@param method string
---@param params? table
---@param done fun(err?: toold.Error, result?: any)
---@param is_internal boolean
local function add_call(method, params, done, is_internal)
  local call =
    { id = next_id, method = method, params = params or {}, done = done, sent = false, is_internal = is_internal }
  next_id = next_id + 1
  calls[call.id] = call
  send(call)
end

local function ignore() end

---@param subscription toold.Subscription
---@param number integer
local function on_open(subscription, number)
  subscription.number = number
  if subscription.ended then
    add_call("events.unsubscribe", { subscription = number }, ignore, true)
  elseif subscription.on_ready then
    subscription.on_ready()
  end
end

--- Subscribes after the newest event of now, which is read before: no event between is lost, and none of before comes.
---@param subscription toold.Subscription
local function open(subscription)
  add_call("daemon.info", {}, function(err, info)
    if err or subscription.ended then
      return
    end
    local newest, oldest = info.events.last, info.events.oldest or 1
    local first = math.max(newest - subscription.replay, oldest - 1, 0)
    subscription.base = subscription.base or newest
    -- A journal that was removed counts from 1 again.
    subscription.after = math.min(subscription.after or first, newest)
    local params = vim.tbl_extend("force", subscription.params, { after = subscription.after })
    add_call("events.subscribe", params, function(failure, number)
      if failure then
        connection.report("events: " .. failure.message, vim.log.levels.ERROR)
      else
        on_open(subscription, number)
      end
    end, true)
  end, true)
end

local function on_event(push)
  local event = push.result
  for _, subscription in ipairs(vim.list_extend({}, subscriptions)) do
    if subscription.number == push.subscription and not subscription.ended then
      if event.seq then
        subscription.after = math.max(subscription.after or 0, event.seq)
      end
      protect(subscription.on_event, event, event.seq ~= nil and event.seq <= subscription.base)
    end
  end
end

local function on_message(message)
  if message.method == "events.event" then
    on_event(message.params)
    return
  end
  local call = message.id and calls[message.id]
  local err = message.error
  if call and err then
    local data = err.data or {}
    finish(call, { message = err.message, kind = data.kind or "internal", data = data })
  elseif call then
    finish(call, nil, message.result)
  end
end

local function on_up()
  for _, call in ipairs(pending()) do
    if not call.sent then
      send(call)
    end
  end
  for _, subscription in ipairs(vim.list_extend({}, subscriptions)) do
    open(subscription)
  end
end

local function on_lost()
  for _, subscription in ipairs(subscriptions) do
    subscription.number = nil
  end
  for _, call in ipairs(pending()) do
    if call.is_internal then
      calls[call.id] = nil
    elseif is_repeatable(call) then
      call.sent = false
    elseif call.sent then
      finish(call, {
        kind = "unreachable",
        message = "the daemon went away before it answered; look at the list before you repeat it",
      })
    end
  end
end

---@param err toold.Error
---@return boolean
local function on_unreachable(err)
  local waiting = pending()
  for _, call in ipairs(waiting) do
    finish(call, err)
  end
  return #waiting > 0
end

connection.handle({
  on_up = on_up,
  on_message = on_message,
  on_lost = on_lost,
  on_unreachable = on_unreachable,
  is_needed = function()
    return #subscriptions > 0 or next(calls) ~= nil
  end,
  keeps_trying = function()
    return #subscriptions > 0
  end,
})

--- Calls a method. Connects first if need be, and starts the daemon if none runs.
---@param method string
---@param params? table
---@param done fun(err?: toold.Error, result?: any)
function M.call(method, params, done)
  add_call(method, params, done, false)
  if connection.state() ~= "up" then
    connection.connect({ start = true })
  end
end

--- Calls a method and waits for the answer. For tests and scripts: it blocks the editor.
---@param method string
---@param params? table
---@param timeout_ms? integer
---@return any result
---@return toold.Error? err
function M.wait(method, params, timeout_ms)
  local is_done, err, result = false, nil, nil
  M.call(method, params, function(failure, answer)
    is_done, err, result = true, failure, answer
  end)
  local function has_answer()
    return is_done
  end
  if not vim.wait(timeout_ms or 10000, has_answer, 5) then
    return nil, { kind = "timeout", message = "the daemon did not answer in time" }
  end
  return result, err
end

---@class toold.SubscribeOptions
---@field on_ready? fun()
---@field replay? integer Begin with this number of events of before.
---@field passive? boolean Start no daemon; wait until one is there.

--- Receives events from now on, also after a loss of the connection, each once.
---@param params table `types`, `id`, `task_id`, `session_key`, `output`, `ansi` of `events.subscribe`.
---@param callback fun(event: toold.Event, is_past: boolean)
---@param options? toold.SubscribeOptions
---@return toold.Subscription
function M.subscribe(params, callback, options)
  options = options or {}
  local subscription =
    { params = params, on_event = callback, on_ready = options.on_ready, replay = options.replay or 0, ended = false }
  subscriptions[#subscriptions + 1] = subscription
  if connection.state() == "up" then
    open(subscription)
  else
    connection.connect({ start = not options.passive })
  end
  return subscription
end

---@param subscription toold.Subscription
function M.unsubscribe(subscription)
  if subscription.ended then
    return
  end
  subscription.ended = true
  for i, each in ipairs(subscriptions) do
    if each == subscription then
      table.remove(subscriptions, i)
      break
    end
  end
  if subscription.number and connection.state() == "up" then
    add_call("events.unsubscribe", { subscription = subscription.number }, ignore, true)
  end
end

--- Ends the connection and forgets calls and subscriptions. Processes go on.
function M.close()
  subscriptions = {}
  connection.close()
  on_unreachable({ kind = "unreachable", message = "the connection was closed" })
end

return M
