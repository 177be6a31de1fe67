--- The tests of the plugin: sentences, run one after the other in a headless editor against a real daemon.
---
--- The environment (`TOOLD_SOCKET`, `TOOLD_STATE_DIR`, `HOME`, `PATH` with toolctl, `TOOLD_TEST_NVIM`) comes from
--- `tests/doors/nvim.rs`.

local M = {}

--- The time limit of everything that waits.
local DEADLINE_MS = 20000

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.normalize(vim.uv.fs_realpath(arg[0]))))
vim.opt.runtimepath:prepend(root)
package.path = root .. "/tests/?.lua;" .. package.path
vim.cmd.runtime("plugin/toold.lua")

M.root = root
M.notices = {} ---@type string[]
vim.notify = function(message)
  M.notices[#M.notices + 1] = message
end

local tests = {} ---@type { [1]: string, [2]: fun() }[]

---@param sentence string
---@param body fun()
function M.test(sentence, body)
  tests[#tests + 1] = { sentence, body }
end

--- Compares whole values.
function M.eq(expected, actual, about)
  if not vim.deep_equal(expected, actual) then
    local message = ("%sexpected %s\n     got %s"):format(
      about and (about .. ": ") or "",
      vim.inspect(expected),
      vim.inspect(actual)
    )
    error(message, 2)
  end
end

--- Waits until a fact holds, and returns it.
---@generic T
---@param about string
---@param fact fun(): T?
---@return T
function M.eventually(about, fact)
  local value
  local ok = vim.wait(DEADLINE_MS, function()
    value = fact()
    return value
  end, 10)
  if not ok then
    local lines = M.lines()
    local shown = vim.inspect(vim.list_slice(lines, math.max(1, #lines - 20)))
    error(("never: %s\nnotices: %s\nbuffer, %d lines: %s"):format(about, vim.inspect(M.notices), #lines, shown), 2)
  end
  return value
end

--- Calls the daemon and returns the result.
function M.call(method, params)
  local result, err = require("toold.rpc").wait(method, params, DEADLINE_MS)
  if err then
    error(("%s: %s"):format(method, err.message), 2)
  end
  return result
end

--- Starts a command by the socket, as another client would.
function M.exec(command, more)
  return M.call("exec", vim.tbl_extend("force", { command = command, login = false }, more or {})).id
end

--- Returns a command that runs until its gate is opened, and the function that opens it.
---@param command string
---@return string
---@return fun()
function M.gated(command)
  local gate = vim.fn.tempname()
  local function open()
    vim.fn.writefile({}, gate)
  end
  return ("until [ -e %s ]; do sleep 0.02; done; %s"):format(gate, command), open
end

--- Returns the lines of a buffer without the empty ones at its end.
---@param buffer? integer
---@return string[]
function M.lines(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false)
  while lines[#lines] and lines[#lines]:match("^%s*$") do
    lines[#lines] = nil
  end
  return lines
end

--- Types keys, with the maps of the buffer.
function M.press(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), "x", false)
end

--- Ends all windows but one, all buffers and all processes.
local function clean()
  vim.cmd("silent! tabonly! | silent! only!")
  vim.cmd("silent! %bwipeout!")
  M.call("kill", { all = true })
  M.call("forget", { older_than_ms = 0 })
end

--- Returns the pid of the daemon.
function M.daemon_pid()
  return M.call("daemon.info").pid
end

--- Runs another editor to its end: a script that begins with the plugin on its runtime path. Returns what it printed.
---@param script string
---@param signal? integer The signal that it dies of.
---@return string
function M.editor(script, signal)
  local file = vim.fn.tempname() .. ".lua"
  local runtime = ("vim.opt.runtimepath:prepend(%q)\n"):format(root)
  local overseer = vim.env.TOOLD_OVERSEER
  if overseer then
    runtime = runtime .. ("vim.opt.runtimepath:prepend(%q)\n"):format(overseer)
  end
  vim.fn.writefile(vim.split(runtime .. "vim.cmd.runtime('plugin/toold.lua')\n" .. script, "\n"), file)
  local argv = { vim.env.TOOLD_TEST_NVIM, "--clean", "--headless", "-l", file }
  local result = vim.system(argv, { text = true, timeout = DEADLINE_MS }):wait()
  vim.fn.delete(file)
  if result.signal ~= (signal or 0) or (not signal and result.code ~= 0) then
    error(("another editor ended with %d: %s"):format(result.code, result.stderr), 2)
  end
  return vim.trim(result.stdout .. result.stderr)
end

--- Runs the tests and ends the editor: 0 if all pass.
function M.run()
  local failed = 0
  for _, test in ipairs(tests) do
    local ok, err = xpcall(test[2], debug.traceback)
    io.write(("%s - %s\n"):format(ok and "ok" or "FAILED", test[1]))
    if not ok then
      failed = failed + 1
      io.write(err .. "\n")
    end
    local is_clean, why = pcall(clean)
    if not is_clean then
      io.write("clean: " .. why .. "\n")
    end
    M.notices = {}
  end
  io.write(("%d tests, %d failed\n"):format(#tests, failed))
  vim.cmd(failed == 0 and "qall!" or "cquit 1")
end

return M
