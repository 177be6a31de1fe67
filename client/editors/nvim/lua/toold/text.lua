--- Text for people: states, ages, rows of the list, lines of events. Pure.

local M = {}

--- Seconds in the units of an age.
local MINUTE, HOUR, DAY = 60, 3600, 86400

---@alias toold.Kind "asks"|"running"|"ok"|"failed"|"lost"

---@type table<toold.Kind, string>
M.MARKS = { asks = "!", running = "●", ok = "✓", failed = "✗", lost = "?" }

--- Returns text that cannot move the cursor or hide: control characters and line ends become spaces.
---@param text string
---@return string
function M.clean(text)
  return (text:gsub("\27%[[%d;:?]*[%a]", ""):gsub("%c", " "))
end

--- Returns a line of output without escape sequences and the carriage return at its end, as error formats expect it.
---@param line string
---@return string
function M.plain(line)
  line = line:gsub("\27%[[\48-\63]*[\32-\47]*[\64-\126]", "")
  line = line:gsub("\27%][^\7\27]*\7", ""):gsub("\27%][^\7\27]*\27\\", "")
  line = line:gsub("\27[%(%)][%w]", ""):gsub("\27[=>78cDEHMNOZ]", "")
  line = line:gsub("\r+$", "")
  -- A line that was drawn over itself is as it stood last.
  return (line:gsub("^.*\r", ""))
end

--- Returns `0.4s`, `12s`, `3m`, `2h`, `4d`.
---@param ms number
---@return string
function M.duration(ms)
  local seconds = math.max(0, ms / 1000)
  if seconds < 1 then
    return ("%.1fs"):format(math.floor(seconds * 10) / 10)
  elseif seconds < MINUTE then
    return ("%ds"):format(seconds)
  elseif seconds < HOUR then
    return ("%dm"):format(seconds / MINUTE)
  elseif seconds < DAY then
    return ("%dh"):format(seconds / HOUR)
  end
  return ("%dd"):format(seconds / DAY)
end

--- Returns the question of a process, in the form of the newer wire, or nil. A boolean (an older daemon) has no prompt.
---@param process toold.Process
---@return toold.NeedsInput?
function M.question(process)
  local needs = process.needs_input
  if type(needs) == "table" then
    return needs
  end
  return needs and {} or nil
end

---@param process toold.Process
---@return boolean
function M.is_live(process)
  return process.status == "running" or process.status == "starting" or process.status == "pending"
end

---@param process toold.Process
---@return toold.Kind
function M.kind(process)
  if M.is_live(process) then
    return M.question(process) and "asks" or "running"
  elseif process.status == "lost" then
    return "lost"
  elseif process.exit_code == 0 then
    return "ok"
  end
  return "failed"
end

---@param process toold.Process
---@return string
function M.state(process)
  if M.is_live(process) then
    if M.question(process) then
      return "asks"
    end
    return process.stopped and "stopped" or process.status
  elseif process.status == "lost" then
    return "lost"
  elseif process.reason == "exited" or (process.reason == nil and process.exit_code) then
    return ("exited %d"):format(process.exit_code or -1)
  elseif process.signal and process.reason ~= "signaled" then
    return ("%s %s"):format(process.signal, process.reason)
  end
  return process.signal or process.reason or "ended"
end

--- Returns the name of a process for people: its name, else the start of its command.
---@param process toold.Process|toold.Event
---@return string
function M.name(process)
  if process.name then
    return M.clean(process.name)
  end
  local command = M.clean(process.command or process.id or "")
  return vim.fn.strcharpart(command, 0, 30)
end

--- Returns the last line of a process's output that has text.
---@param process toold.Process
---@return string
function M.last_line(process)
  local last = ""
  for line in (process.preview or ""):gmatch("[^\r\n]+") do
    if line:find("%S") then
      last = line
    end
  end
  return M.clean(last)
end

--- Counts processes: `"2 run, 1 asks"`, without what is zero.
---@param processes toold.Process[]
---@return string
function M.counts(processes)
  local running, asking = 0, 0
  for _, process in ipairs(processes) do
    local kind = M.kind(process)
    running = running + (kind == "running" and 1 or 0)
    asking = asking + (kind == "asks" and 1 or 0)
  end
  local parts = {}
  if running > 0 then
    parts[#parts + 1] = running .. " run"
  end
  if asking > 0 then
    parts[#parts + 1] = asking .. " asks"
  end
  return table.concat(parts, ", ")
end

local function pad(text, width)
  local have = vim.fn.strdisplaywidth(text)
  if have > width then
    while have > width - 1 and text ~= "" do
      text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
      have = vim.fn.strdisplaywidth(text)
    end
    text = text .. "…"
    have = have + 1
  end
  return text .. (" "):rep(width - have)
end

--- Widths of the columns of a row: name, state, age, owner.
local WIDTHS = { 18, 16, 5, 14 }

---@param cells string[] name, state, age, owner, output
---@param mark string
---@return string
local function row(mark, cells)
  local parts = { mark }
  for i, width in ipairs(WIDTHS) do
    parts[#parts + 1] = pad(cells[i], width)
  end
  parts[#parts + 1] = cells[5]
  return (table.concat(parts, " "):gsub("%s+$", ""))
end

M.HEADER = row(" ", { "NAME", "STATE", "AGE", "OWNER", "LAST OUTPUT" })

--- Returns the row of a process in the list.
---@param process toold.Process
---@param age_ms number
---@return string
function M.row(process, age_ms)
  local question = M.question(process)
  local output = question and question.prompt and M.clean(question.prompt) or M.last_line(process)
  return row(
    M.MARKS[M.kind(process)],
    { M.name(process), M.state(process), M.duration(age_ms), M.clean(process.session_key or ""), output }
  )
end

--- Returns the seconds since 1970 of a time of the daemon (RFC 3339, UTC).
---@param at string
---@return integer
function M.epoch(at)
  local year, month, day, hour, minute, second = at:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)")
  if not year then
    return 0
  end
  -- Days since 1970 by the civil calendar: os.time() would read the fields as local time.
  local y, m = tonumber(year), tonumber(month)
  if m <= 2 then
    y = y - 1
  end
  local era = math.floor(y / 400)
  local year_of_era = y - era * 400
  local day_of_year = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5) + tonumber(day) - 1
  local day_of_era = year_of_era * 365 + math.floor(year_of_era / 4) - math.floor(year_of_era / 100) + day_of_year
  local days = era * 146097 + day_of_era - 719468
  return days * DAY + tonumber(hour) * HOUR + tonumber(minute) * MINUTE + tonumber(second)
end

---@param event toold.Event
---@return string
local function details(event)
  if event.type == "started" then
    return ("pid %d: %s"):format(event.pid or 0, event.command or "")
  elseif event.type == "exited" or event.type == "completion" then
    local how = event.exit_code and ("exit %d"):format(event.exit_code) or (event.reason or "ended")
    if event.signal then
      how = ("%s, %s"):format(event.signal, how)
    end
    return ("%s after %s, %d lines"):format(how, M.duration(event.duration_ms or 0), event.lines or 0)
  elseif event.type == "needs_input" then
    return ("asks: %s"):format(event.prompt or "")
  elseif event.type == "watch_match" then
    return event.output or ""
  elseif event.type == "lagged" then
    return "events were removed before they were read"
  end
  return event.message or ""
end

--- Returns the line of an event.
---@param event toold.Event
---@return string
function M.event(event)
  local time = event.at and os.date("%H:%M:%S", M.epoch(event.at)) or "        "
  local name = event.name or event.id or "-"
  return (("%s  %-12s %s  %s"):format(time, event.type, M.clean(name), M.clean(details(event))):gsub("%s+$", ""))
end

--- Describes the end of a process: `exited 4 after 1.6s`.
---@param process toold.Process
---@return string
function M.ending(process)
  return ("%s after %s"):format(M.state(process), M.duration(process.uptime_ms or 0))
end

return M
