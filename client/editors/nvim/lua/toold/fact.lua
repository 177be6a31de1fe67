--- Facts of events about a process. The daemon stores an event before it shows the state that caused it, so an answer that
--- was read right after the event can be older than it. Pure.

local M = {}

--- The order of states: a process never goes back.
local RANKS = { pending = 0, starting = 0, running = 1, exited = 2, lost = 2 }

--- Events of before a subscription that are read with it: the state that they caused may not be shown yet.
M.REPLAYED_EVENTS = 200

---@class toold.Fact
---@field status? toold.Status
---@field closed? boolean
---@field bytes? integer All output, if it is closed.
---@field exit_code? integer
---@field signal? string
---@field reason? string
---@field exited_at? string
---@field uptime_ms? integer

--- Returns what is known after an event. The old fact is not changed.
---@param fact? toold.Fact
---@param event toold.Event
---@return toold.Fact?
function M.after(fact, event)
  if event.type == "started" then
    return fact or { status = "running" }
  elseif event.type == "exited" then
    return vim.tbl_extend("force", fact or {}, {
      status = event.status or "exited",
      exit_code = event.exit_code,
      signal = event.signal,
      reason = event.reason,
      exited_at = event.at,
      uptime_ms = event.duration_ms,
    })
  elseif event.type == "closed" then
    return vim.tbl_extend("force", fact or {}, { closed = true, bytes = event.bytes })
  end
  return fact
end

--- Brings a process that was read up to date with what events have reported.
---@param process toold.Process
---@param fact? toold.Fact
function M.apply(process, fact)
  if not fact then
    return
  end
  if fact.closed then
    process.closed = true
  end
  if fact.status and RANKS[fact.status] > RANKS[process.status] then
    process.status = fact.status
    if RANKS[fact.status] == RANKS.exited then
      process.exit_code, process.signal, process.reason = fact.exit_code, fact.signal, fact.reason
      process.exited_at, process.uptime_ms, process.needs_input = fact.exited_at, fact.uptime_ms, nil
    end
  end
end

return M
