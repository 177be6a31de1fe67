--- The pipe to the daemon: connects, starts the daemon with `toolctl info` once, and connects again after a loss.
---
--- Knows nothing of calls and subscriptions: `toold.rpc` gives the handlers. All of them run through `vim.schedule`.

local config = require("toold.config")
local wire = require("toold.wire")

local M = {}

--- The first and the longest time between two attempts to connect.
local FIRST_RETRY_MS = 100
local MAX_RETRY_MS = 5000
--- The time that systemd or an upgrade may take to bring a lost daemon back before we start it.
local RESTART_WAIT_MS = 1000
--- The time that `toolctl info` may take.
local AUTOSTART_TIMEOUT_MS = 20000

---@alias toold.State "idle"|"connecting"|"up"|"away"

---@class toold.ConnectionHandlers
---@field on_up fun()
---@field on_message fun(message: table)
---@field on_lost fun() The connection ended; what was not answered may have happened.
---@field on_unreachable fun(err: toold.Error): boolean An attempt failed. True if a caller got the error.
---@field is_needed fun(): boolean Something waits for the connection.
---@field keeps_trying fun(): boolean Something waits for it without end.
local handlers ---@type toold.ConnectionHandlers

local state = "idle" ---@type toold.State
local pipe ---@type uv.uv_pipe_t?
local listeners = {} ---@type (fun(state: toold.State))[]
local retry_ms = FIRST_RETRY_MS
local retry_timer ---@type uv.uv_timer_t?
local is_autostart_spent = false
local is_starting = false
local is_loss_reported = false
local lost_at = nil ---@type integer?
local may_start = false
local reported = nil ---@type string?

--- Reports to the user.
---@param message string
---@param level? integer
function M.report(message, level)
  vim.notify("toold: " .. message, level or vim.log.levels.WARN, { title = "toold" })
end

---@param new_handlers toold.ConnectionHandlers
function M.handle(new_handlers)
  handlers = new_handlers
end

local function set_state(new)
  if state == new then
    return
  end
  state = new
  for _, listener in ipairs(listeners) do
    listener(new)
  end
end

---@return toold.State
function M.state()
  return state
end

--- Calls `listener` at each change of the state.
---@param listener fun(state: toold.State)
function M.on_state(listener)
  listeners[#listeners + 1] = listener
end

---@param bytes string
function M.send(bytes)
  if state == "up" and pipe then
    pipe:write(bytes)
  end
end

local function stop_timer()
  if retry_timer then
    retry_timer:stop()
    retry_timer:close()
    retry_timer = nil
  end
end

local connect ---@type fun()

local function connect_later()
  stop_timer()
  retry_timer = assert(vim.uv.new_timer())
  retry_timer:start(
    retry_ms,
    0,
    vim.schedule_wrap(function()
      stop_timer()
      connect()
    end)
  )
  retry_ms = math.min(retry_ms * 2, MAX_RETRY_MS)
end

local function close_pipe()
  if pipe then
    pipe:read_stop()
    if not pipe:is_closing() then
      pipe:close()
    end
    pipe = nil
  end
end

local function on_lost()
  close_pipe()
  vim.uv.update_time()
  lost_at = vim.uv.now()
  retry_ms = FIRST_RETRY_MS
  is_autostart_spent, is_starting = false, false
  local is_needed = handlers.is_needed()
  set_state(is_needed and "away" or "idle")
  if is_needed and not is_loss_reported then
    is_loss_reported = true
    M.report("the daemon is away; processes go on, reconnecting")
  end
  handlers.on_lost()
  if is_needed and not pipe and not retry_timer then
    connect_later()
  end
end

---@param new uv.uv_pipe_t
local function on_connected(new)
  retry_ms = FIRST_RETRY_MS
  is_autostart_spent = false
  lost_at, reported = nil, nil
  set_state("up")
  local decode = wire.decoder()
  local on_chunk = vim.schedule_wrap(function(err, chunk)
    if pipe ~= new then
      return
    end
    local ok, messages = true, nil
    if chunk and not err then
      ok, messages = pcall(decode, chunk)
    end
    if not ok then
      M.report("the daemon sent what is not JSON: " .. tostring(messages), vim.log.levels.ERROR)
    end
    if not ok or not messages then
      on_lost()
      return
    end
    for _, message in ipairs(messages) do
      -- A daemon that answers works: its next loss is another one.
      is_loss_reported = false
      handlers.on_message(message)
    end
  end)
  new:read_start(on_chunk)
  handlers.on_up()
end

---@param kind string
---@param message string
local function on_unreachable(kind, message)
  set_state(lost_at and handlers.keeps_trying() and "away" or "idle")
  local has_reader = handlers.on_unreachable({ kind = kind, message = message })
  if may_start and not has_reader and reported ~= message then
    reported = message
    M.report(message, vim.log.levels.ERROR)
  end
  if handlers.keeps_trying() and not pipe and not retry_timer then
    connect_later()
  end
end

local function autostart()
  is_autostart_spent, is_starting = true, true
  local program = config.get().toolctl
  local function fail(why)
    is_starting = false
    on_unreachable("unreachable", ("`%s info` did not start the daemon: %s"):format(program, why))
  end
  if vim.fn.executable(program) == 0 then
    fail("the program is not installed; set vim.g.toold = { toolctl = … }")
    return
  end
  local options = { text = true, timeout = AUTOSTART_TIMEOUT_MS, env = { TOOLD_SOCKET = config.socket() } }
  vim.system(
    { program, "info" },
    options,
    vim.schedule_wrap(function(result)
      if not is_starting then
        return
      end
      is_starting = false
      if result.code == 0 then
        connect()
      else
        local why = vim.trim(result.stderr or "")
        fail(why ~= "" and why or ("exit code " .. result.code))
      end
    end)
  )
end

---@param err string
local function on_refused(err)
  vim.uv.update_time()
  if lost_at and vim.uv.now() - lost_at < RESTART_WAIT_MS then
    connect_later()
  elseif may_start and config.get().autostart and not is_autostart_spent then
    autostart()
  elseif is_autostart_spent then
    set_state("away")
    connect_later()
  else
    on_unreachable("unreachable", ("no daemon at %s: %s"):format(config.socket(), err))
  end
end

connect = function()
  if state == "up" or pipe or is_starting then
    return
  end
  stop_timer()
  local path = config.socket()
  local why = wire.distrust(path)
  if why then
    on_unreachable("untrusted", why)
    return
  end
  if state == "idle" then
    set_state("connecting")
  end
  local new = assert(vim.uv.new_pipe(false))
  pipe = new
  new:connect(
    path,
    vim.schedule_wrap(function(err)
      if pipe ~= new then
        return
      end
      if err then
        close_pipe()
        on_refused(err)
      else
        on_connected(new)
      end
    end)
  )
end

--- Connects now, if there is no connection.
---@param options { start: boolean } With `start`, the daemon may be started, once.
function M.connect(options)
  if options.start then
    may_start = true
    if state ~= "up" and not is_starting then
      is_autostart_spent = false
    end
  end
  connect()
end

--- Ends the connection. Processes go on.
function M.close()
  stop_timer()
  close_pipe()
  may_start, is_loss_reported, is_autostart_spent, is_starting, lost_at = false, false, false, false, nil
  retry_ms = FIRST_RETRY_MS
  set_state("idle")
end

return M
