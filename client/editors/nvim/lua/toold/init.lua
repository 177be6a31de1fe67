--- What other plugins and configurations call. Nothing here has to be called: the commands work without `setup()`.

local M = {}

--- Sets options that differ from the defaults: |toold-settings|. `vim.g.toold` does the same.
---@param options? table
function M.setup(options)
  require("toold.config").setup(options)
end

--- Returns the counts for a statusline: `"2 run, 1 asks"`, empty if nothing runs. Starts no daemon, waits for nothing.
---@return string
function M.status()
  local model = require("toold.model")
  model.start({ passive = true })
  return require("toold.text").counts(model.list())
end

--- Starts a command and shows its output. The process outlives the editor.
---@param command string|string[]
---@param options? toold.RunOptions
---@param done? fun(err?: toold.Error, process?: toold.Process) Called when it runs.
function M.run(command, options, done)
  options = vim.tbl_extend("keep", options or {}, { pty = require("toold.config").get().pty })
  if options.pty == true then
    options.pty = { rows = math.max(2, vim.o.lines - 4), cols = math.max(20, vim.o.columns) }
  end
  local params = require("toold.exec").params(command, options)
  require("toold.rpc").call("exec", params, function(err, process)
    if err then
      require("toold.connection").report(err.message, vim.log.levels.ERROR)
    elseif done == nil then
      require("toold.log").open(process.id)
    end
    if done then
      done(err, process)
    end
  end)
end

--- Shows the list.
function M.list()
  require("toold.list").open()
end

--- Shows the output of a process.
---@param reference string An id, the start of one, a name, `@last` or `@failed`.
function M.log(reference)
  require("toold.process_ref").resolve(reference, require("toold.log").open)
end

---@class toold.SelectOptions
---@field filter? fun(process: toold.Process): boolean
---@field prompt? string

--- Lets the user choose a process with `vim.ui.select`.
---@param options toold.SelectOptions
---@param act fun(process: toold.Process)
function M.select(options, act)
  local config, text = require("toold.config"), require("toold.text")
  local params = { ended_within_ms = config.get().ended_within_ms, limit = 200 }
  require("toold.rpc").call("list", params, function(err, result)
    local report = require("toold.connection").report
    if err then
      report(err.message, vim.log.levels.ERROR)
      return
    end
    local processes = vim.tbl_filter(options.filter or function()
      return true
    end, result.processes)
    if #processes == 0 then
      report("there is no process to " .. (options.prompt or "choose"), vim.log.levels.INFO)
      return
    end
    vim.ui.select(processes, {
      prompt = "toold: " .. (options.prompt or "choose"),
      kind = "toold_process",
      format_item = function(process)
        return ("%s  %s  %s"):format(text.name(process), text.state(process), text.last_line(process))
      end,
    }, function(process)
      if process then
        act(process)
      end
    end)
  end)
end

return M
