--- Tasks of overseer.nvim for processes that an earlier run of the editor started with the strategy `toold`.

local config = require("toold.config")
local rpc = require("toold.rpc")

local M = {}

---@class toold.RestoreOptions
---@field cwd? string Only processes that run in this directory.
---@field components? table Of the tasks. Default: { "default" }.

--- Makes a task for each process of the strategy that runs or has ended within `ended_within_ms`, and that no task has. Each gets
--- the whole output and the true exit code of its process.
---@param options? toold.RestoreOptions
---@param done? fun(tasks: table[])
function M.restore(options, done)
  options = options or {}
  local overseer = require("overseer")
  local params = { label = "overseer", ended_within_ms = config.get().ended_within_ms }
  rpc.call("list", params, function(err, result)
    if err then
      require("toold.connection").report(err.message, vim.log.levels.ERROR)
      return
    end
    local has_task = {}
    for _, task in ipairs(overseer.list_tasks({ include_ephemeral = true })) do
      has_task[(task.metadata.toold or {}).id or ""] = true
    end
    local tasks = {}
    -- The daemon lists the newest first; overseer shows the task that was made last first.
    for _, process in ipairs(vim.fn.reverse(result.processes)) do
      local is_here = not options.cwd or vim.fs.normalize(options.cwd) == vim.fs.normalize(process.cwd)
      if is_here and not has_task[process.id] then
        local is_shell = process.argv[#process.argv] == process.command
        local task = overseer.new_task({
          name = process.labels.overseer,
          cmd = is_shell and process.command or process.argv,
          cwd = process.cwd,
          strategy = "toold",
          metadata = { toold = { id = process.id } },
          components = options.components or { "default" },
        })
        task:start()
        tasks[#tasks + 1] = task
      end
    end
    if done then
      done(tasks)
    end
  end)
end

return M
