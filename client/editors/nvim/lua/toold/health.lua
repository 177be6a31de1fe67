--- `:checkhealth toold`. Looks only: no daemon is started.

local config = require("toold.config")
local wire = require("toold.wire")

local M = {}

--- The time that the daemon may take to answer.
local ANSWER_MS = 3000
--- The version of the protocol that the plugin was written for.
local PROTOCOL = 1

local function check_editor()
  if vim.fn.has("nvim-0.10") == 1 then
    vim.health.ok("Neovim " .. tostring(vim.version()))
  else
    vim.health.error("Neovim 0.10 or later is needed")
  end
end

local function check_program()
  local program = config.get().toolctl
  if vim.fn.executable(program) == 0 then
    vim.health.error(
      ("`%s` is not installed"):format(program),
      { "install toold", "or set vim.g.toold = { toolctl = '/path/to/toolctl' }" }
    )
    return
  end
  local result = vim.system({ program, "--version" }, { text = true, timeout = ANSWER_MS }):wait()
  vim.health.ok(("%s: %s"):format(vim.fn.exepath(program), vim.trim(result.stdout or "")))
end

--- Asks the daemon on a connection of its own: the plugin's would start one.
---@param path string
---@return table? info
---@return string? why
local function ask(path)
  local pipe = assert(vim.uv.new_pipe(false))
  local info, why
  local decode = wire.decoder()
  pipe:connect(path, function(err)
    if err then
      why = err
      return
    end
    pipe:read_start(vim.schedule_wrap(function(failure, chunk)
      if not chunk then
        why = failure or "it hung up"
        return
      end
      local message = decode(chunk)[1]
      info = message and message.result or info
    end))
    pipe:write(('{"jsonrpc":"2.0","id":%d,"method":"daemon.info"}\n'):format(1))
  end)
  vim.wait(ANSWER_MS, function()
    return info ~= nil or why ~= nil
  end, 10)
  pipe:close()
  return info, why or (not info and "it does not answer" or nil)
end

local function check_daemon()
  local path = config.socket()
  local distrust = wire.distrust(path)
  if distrust then
    vim.health.error(distrust)
    return
  end
  local info, why = ask(path)
  if not info then
    vim.health.info(("no daemon at %s (%s); the first command starts it"):format(path, why))
    return
  end
  vim.health.ok(("daemon %s, pid %d, at %s"):format(info.version, info.pid, path))
  if info.protocol ~= PROTOCOL then
    vim.health.warn(("its protocol is %d, the plugin was written for %d"):format(info.protocol, PROTOCOL))
  end
  local counts = info.counts
  vim.health.info(("%d running, %d exited, %d lost"):format(counts.running, counts.exited, counts.lost))
end

local function check_overseer()
  local found = vim.api.nvim_get_runtime_file("lua/overseer/init.lua", false)[1]
  if found then
    vim.health.ok("overseer.nvim: use strategy = 'toold' for tasks that outlive the editor")
  else
    vim.health.info("overseer.nvim is not installed; it is optional")
  end
end

function M.check()
  vim.health.start("toold")
  check_editor()
  check_program()
  check_daemon()
  check_overseer()
end

return M
