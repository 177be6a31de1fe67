--- References to processes: an id, the start of one, a name, `@last`, `@failed`. Resolved once, before anything follows: a
--- name can stand for another process a moment later.

local rpc = require("toold.rpc")

local M = {}

--- Filters of `list` whose newest process is meant.
local NEWEST = { ["@last"] = { limit = 1 }, ["@failed"] = { limit = 1, failed = true } }

--- Calls `done` with the id of the process, or reports why there is none.
---@param reference string
---@param done fun(id: string)
function M.resolve(reference, done)
  local function finish(err, process)
    if err then
      require("toold.connection").report(err.message, vim.log.levels.ERROR)
    else
      done(process.id)
    end
  end
  local filter = NEWEST[reference]
  if reference:match("^proc_%x%x%x%x%x%x%x%x%x%x%x%x$") then
    done(reference)
  elseif filter then
    rpc.call("list", vim.tbl_extend("force", filter, { fields = { "id" } }), function(err, result)
      local process = result and result.processes[1]
      finish(
        err or not process and { kind = "not_found", message = "there is no process " .. reference } or nil,
        process
      )
    end)
  else
    rpc.call("inspect", { id = reference, fields = { "id" } }, finish)
  end
end

return M
