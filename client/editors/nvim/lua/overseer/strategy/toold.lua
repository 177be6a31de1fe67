--- A strategy of overseer.nvim whose tasks are processes of the toold daemon: they outlive the editor.
---
--- A task that is restored after a restart of the editor (its metadata name its process) attaches to it: it gets the whole output
--- and the true exit code, also if the process has ended meanwhile.

local connection = require("toold.connection")
local exec = require("toold.exec")
local follow = require("toold.follow")
local log = require("toold.log")
local rpc = require("toold.rpc")
local term = require("toold.term")
local text = require("toold.text")

--- The exit code of a process whose end was not observed.
local UNKNOWN_EXIT = -1
--- Names this run of the editor: a task that was started by it and is started again wants a new process.
local EDITOR = exec.unique()

---@class toold.OverseerOptions
---@field pty? boolean Give the program a terminal. Default: true.
---@field kill_on_dispose? boolean Kill the process when its task is disposed. Default: false.

---@class toold.OverseerStrategy
---@field options toold.OverseerOptions
---@field task? table
---@field term? toold.Term
---@field follower? toold.Follower
---@field id? string The process, once it is known.
---@field wants_stop boolean
---@field rest string The last line, while it has no end.
local Strategy = {}
Strategy.__index = Strategy

---@param options? toold.OverseerOptions
---@return toold.OverseerStrategy
function Strategy.new(options)
  return setmetatable({ options = options or {}, wants_stop = false, rest = "" }, Strategy)
end

--- The size of the terminal: that of a large window of overseer.
---@return { rows: integer, cols: integer }
local function size()
  return { rows = math.max(2, vim.o.lines - 4), cols = math.max(20, vim.o.columns - 4) }
end

local function delete_buffer(buffer)
  if buffer and vim.api.nvim_buf_is_valid(buffer) and #vim.fn.win_findbuf(buffer) == 0 then
    vim.api.nvim_buf_delete(buffer, { force = true })
  elseif buffer and vim.api.nvim_buf_is_valid(buffer) then
    vim.bo[buffer].bufhidden = "wipe"
  end
end

---@private
function Strategy:leave()
  if self.follower then
    self.follower:stop()
    self.follower = nil
  end
  self.id, self.wants_stop, self.rest = nil, false, ""
end

--- Prepares for a new start. The next start is a new process.
function Strategy:reset()
  self:leave()
  if self.task and self.task.metadata.toold then
    self.task.metadata.toold = nil
  end
  if self.term then
    delete_buffer(self.term.buffer)
    self.term = nil
  end
end

---@return integer?
function Strategy:get_bufnr()
  return self.term and self.term.buffer
end

--- Passes output on: as it came, in the form of jobstart(), and by whole lines without escape sequences.
---@private
---@param data string
function Strategy:on_output(data)
  self.task:dispatch("on_output", vim.split(data, "\n", { plain = true }))
  local lines = vim.split(self.rest .. data, "\n", { plain = true })
  self.rest = table.remove(lines)
  if #lines > 0 then
    self.task:dispatch("on_output_lines", vim.tbl_map(text.plain, lines))
  end
end

---@private
---@param code integer
function Strategy:on_exit(code)
  if self.rest ~= "" then
    local last = text.plain(self.rest)
    self.rest = ""
    self.task:dispatch("on_output_lines", { last })
  end
  self.task:on_exit(code)
end

---@private
---@param process toold.Process
function Strategy:on_start(process)
  self.id = process.id
  -- A table of its own: overseer gives a clone of a task the same one.
  self.task.metadata = vim.tbl_extend("force", self.task.metadata, { toold = { id = process.id, editor = EDITOR } })
  if self.wants_stop then
    self:kill()
  end
end

---@private
---@return toold.FollowOptions
function Strategy:handlers()
  local shown = log.options(self.term)
  local has_exited = false
  return {
    on_start = function(process)
      shown.on_start(process)
      self:on_start(process)
    end,
    on_output = function(data)
      shown.on_output(data)
      -- A descendant may write after the exit of the program; the task is complete by then.
      if not has_exited then
        self:on_output(data)
      end
    end,
    on_gap = shown.on_gap,
    on_close = shown.on_close,
    on_exit = function(process)
      has_exited = true
      self:on_exit(process.exit_code or UNKNOWN_EXIT)
    end,
    on_error = function(err)
      shown.on_error(err)
      local has_record = err.data and err.data.process
      local is_over = not has_record and (err.kind ~= "unreachable" or not self.id)
      if is_over and not has_exited then
        has_exited = true
        self:on_exit(UNKNOWN_EXIT)
      end
    end,
  }
end

---@private
function Strategy:exec()
  local task = self.task
  local params = exec.params(task.cmd, {
    cwd = task.cwd,
    env = task.env,
    pty = self.options.pty ~= false and size() or false,
    labels = { overseer = vim.fn.strcharpart(task.name, 0, 100) },
  })
  self.follower = follow.exec(params, self:handlers())
end

--- Attaches to the process of an earlier run of the editor. If the daemon has forgotten it, the task starts a new one.
---@private
---@param id string
function Strategy:attach(id)
  rpc.call("inspect", { id = id }, function(err)
    if not self.term then
      return
    elseif err and err.kind == "not_found" then
      self:exec()
    elseif err then
      connection.report(err.message, vim.log.levels.ERROR)
      self:on_exit(UNKNOWN_EXIT)
    else
      self.follower = follow.attach(id, self:handlers())
    end
  end)
end

---@param task table overseer.Task
function Strategy:start(task)
  self.task = task
  self.wants_stop, self.rest = false, ""
  if not self.term or not vim.api.nvim_buf_is_valid(self.term.buffer) then
    self.term = term.open_hidden(size())
  end
  local known = task.metadata.toold
  if known and known.id and known.editor ~= EDITOR then
    self:attach(known.id)
  else
    self:exec()
  end
end

---@private
function Strategy:kill()
  rpc.call("kill", { id = self.id }, function(err)
    if err and err.kind ~= "already_exited" then
      connection.report(err.message, vim.log.levels.ERROR)
    end
  end)
end

--- Kills the process. overseer also stops a running task that it disposes by force, and disposing must not kill: so the kill
--- waits for the end of this turn of the event loop, and `dispose` takes it back.
function Strategy:stop()
  self.wants_stop = true
  vim.schedule(function()
    if self.wants_stop and self.id then
      self:kill()
    end
  end)
end

--- Forgets the process and deletes the buffer. The process goes on.
function Strategy:dispose()
  if self.options.kill_on_dispose and self.id then
    self:kill()
  end
  self:leave()
  if self.term then
    delete_buffer(self.term.buffer)
    self.term = nil
  end
end

return Strategy
