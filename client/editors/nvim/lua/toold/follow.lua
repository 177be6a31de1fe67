--- The whole output of one process, in order, from its first byte to its end, across losses of the connection.
---
--- Pushes of a subscription are used when they continue what was delivered. Everything else (output from before the
--- subscription, a gap, a reconnect) is read with `poll` from the cursor on. So no byte is delivered twice or left out.

local facts = require("toold.fact")
local rpc = require("toold.rpc")

local M = {}

--- The most bytes of one page. The daemon's log is on disk, so a page is quick.
local PAGE_BYTES = 256 * 1024

---@class toold.FollowOptions
---@field on_output fun(data: string) Output with its escape sequences.
---@field on_gap? fun(bytes: integer) Bytes that the log has dropped.
---@field on_exit? fun(process: toold.Process) After the output that came before the exit.
---@field on_close? fun(process: toold.Process) After all output.
---@field on_error? fun(err: toold.Error)
---@field on_start? fun(process: toold.Process) Once, with the first answer.

---@class toold.Follower
---@field id? string
---@field cursor integer The end of what was delivered.
---@field process? toold.Process
---@field fact? toold.Fact
---@field options toold.FollowOptions
---@field subscription? toold.Subscription
---@field is_exit_delivered boolean
---@field is_polling boolean
---@field is_dirty boolean
---@field is_ended boolean
local Follower = {}
Follower.__index = Follower

---@param options toold.FollowOptions
---@return toold.Follower
local function new(options)
  return setmetatable({
    cursor = 0,
    options = options,
    is_exit_delivered = false,
    is_polling = false,
    is_dirty = false,
    is_ended = false,
  }, Follower)
end

---@private
function Follower:call(name, ...)
  local callback = self.options[name]
  if callback and not self.is_ended then
    callback(...)
  end
end

---@private
---@param page toold.Page
function Follower:on_page(page)
  local is_first = self.process == nil
  facts.apply(page, self.fact)
  self.process = page
  if is_first then
    self:call("on_start", page)
  end
  if page.from > self.cursor then
    self:call("on_gap", page.from - self.cursor)
  end
  if page.output ~= "" then
    self:call("on_output", page.output)
  end
  local has_more = page.next_cursor > self.cursor and page.next_cursor < page.cursor
  self.cursor = math.max(self.cursor, page.next_cursor)
  if has_more then
    self:catch_up()
    return
  end
  if self.is_dirty then
    self:catch_up()
    return
  end
  if (page.status == "exited" or page.status == "lost") and not self.is_exit_delivered then
    self.is_exit_delivered = true
    self:call("on_exit", page)
  end
  if page.closed then
    self:call("on_close", page)
    self:stop()
  end
end

--- Reads from the cursor on until the end of now.
---@private
function Follower:catch_up()
  if self.is_polling or self.is_ended or not self.id then
    self.is_dirty = true
    return
  end
  self.is_polling, self.is_dirty = true, false
  local params = { id = self.id, cursor = self.cursor, max_bytes = PAGE_BYTES, ansi = "keep" }
  rpc.call("poll", params, function(err, page)
    self.is_polling = false
    if self.is_ended then
      return
    end
    if err then
      self:call("on_error", err)
      -- The daemon is away: the subscription catches up when it is back.
      if err.kind ~= "unreachable" then
        self:stop()
      end
      return
    end
    self:on_page(page)
  end)
end

---@private
---@param event toold.Event
function Follower:on_event(event)
  if event.type == "output" then
    local is_next = event.cursor == self.cursor and self.process and not self.is_polling
    if is_next then
      self.cursor = event.next_cursor
      self:call("on_output", event.data)
    elseif event.next_cursor > self.cursor then
      self:catch_up()
    end
    return
  end
  self.fact = facts.after(self.fact, event)
  self:catch_up()
end

--- Ends the delivery. The process goes on.
function Follower:stop()
  self.is_ended = true
  if self.subscription then
    rpc.unsubscribe(self.subscription)
    self.subscription = nil
  end
end

---@private
---@param filter table
---@param on_ready fun()
function Follower:subscribe(filter, on_ready)
  local params = vim.tbl_extend("force", { output = true, ansi = "keep", types = { "exited", "closed" } }, filter)
  self.subscription = rpc.subscribe(params, function(event)
    self:on_event(event)
  end, { on_ready = on_ready, replay = facts.REPLAYED_EVENTS })
end

--- Follows a process that exists.
---@param id string
---@param options toold.FollowOptions
---@return toold.Follower
function M.attach(id, options)
  local follower = new(options)
  follower.id = id
  follower:subscribe({ id = id }, function()
    follower:catch_up()
  end)
  return follower
end

--- Starts a process and follows it. The subscription is made first, by a `task_id` that no process has had: output can come
--- before the answer of `exec`.
---@param params table Of `exec`, with its `task_id` and `request_id`.
---@param options toold.FollowOptions
---@return toold.Follower
function M.exec(params, options)
  local follower = new(options)
  local is_sent = false

  local function on_answer(err, process)
    if follower.is_ended then
      return
    end
    if err then
      follower:call("on_error", err)
    end
    -- A program that could not start has a record all the same.
    local started = process or (err.data and err.data.process)
    if started then
      follower.id = started.id
      follower:catch_up()
    else
      follower:stop()
    end
  end

  local function on_ready()
    if is_sent then
      follower:catch_up()
    else
      is_sent = true
      rpc.call("exec", params, on_answer)
    end
  end

  -- Without a daemon, fail now: a subscription would wait for one, and start the command long after the user has forgotten it.
  rpc.call("daemon.info", {}, function(err)
    if err then
      follower:call("on_error", err)
      follower:stop()
    elseif not follower.is_ended then
      follower:subscribe({ task_id = params.task_id }, on_ready)
    end
  end)
  return follower
end

return M
