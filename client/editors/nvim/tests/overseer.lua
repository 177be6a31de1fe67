--- The strategy with the real overseer.nvim, at `TOOLD_OVERSEER`.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq, eventually, gated = harness.test, harness.eq, harness.eventually, harness.gated

vim.opt.runtimepath:prepend(vim.env.TOOLD_OVERSEER)
local overseer = require("overseer")
overseer.setup({})

--- Makes a task that collects what its components get.
local function new_task(definition)
  local task = overseer.new_task(vim.tbl_extend("force", { strategy = "toold" }, definition))
  local seen = { lines = {}, output = "", exits = {} }
  task:subscribe("on_output", function(_, pieces)
    seen.output = seen.output .. table.concat(pieces, "\n")
  end)
  task:subscribe("on_output_lines", function(_, lines)
    vim.list_extend(seen.lines, lines)
  end)
  task:subscribe("on_exit", function(_, code)
    seen.exits[#seen.exits + 1] = code
  end)
  return task, seen
end

local function complete(task)
  eventually("the task is complete", function()
    return task:is_complete()
  end)
end

local function process_of(task)
  return eventually("its process", function()
    return (task.metadata.toold or {}).id
  end)
end

local function output_lines(task)
  return vim.tbl_filter(function(line)
    return not line:find("^%[exited ") and line ~= ""
  end, harness.lines(task:get_bufnr()))
end

test("output in two writes is whole lines, and the exit code is the task's", function()
  for _, pty in ipairs({ true, false }) do
    local task, seen = new_task({
      cmd = "echo one; printf t; sleep 0.1; echo wo; printf three; exit 4",
      strategy = { "toold", pty = pty },
    })
    task:start()
    complete(task)
    eq({ "one", "two", "three" }, seen.lines)
    eq("one\ntwo\nthree", (seen.output:gsub("\r", "")))
    eq({ { 4 }, 4, "FAILURE" }, { seen.exits, task.exit_code, task.status })
    eventually("the buffer has it", function()
      return vim.deep_equal({ "one", "two", "three" }, output_lines(task))
    end)
  end
end)

test("a long line is one line as far as the screen is wide, also while no window shows it", function()
  vim.o.columns = 150
  local task = new_task({ cmd = "printf '%0140d\\n' 7" })
  task:start()
  complete(task)
  eventually("the buffer has it", function()
    return vim.deep_equal({ ("0"):rep(139) .. "7" }, output_lines(task))
  end)
end)

test("a command of a list has its arguments, directory and environment, and success is success", function()
  local task, seen = new_task({
    cmd = { "sh", "-c", 'echo "$1 $VALUE"; pwd', "sh", "a b" },
    cwd = vim.env.HOME,
    env = { VALUE = "x" },
  })
  task:start()
  complete(task)
  eq({ "a b x", vim.uv.fs_realpath(vim.env.HOME) }, seen.lines)
  eq({ 0, "SUCCESS" }, { task.exit_code, task.status })
end)

test("a program that does not exist is a failure", function()
  local task = new_task({ cmd = { "/nonexistent/program" } })
  task:start()
  complete(task)
  eq("FAILURE", task.status)
end)

test("stop kills the tree", function()
  local task, seen = new_task({ cmd = "echo up; sleep 60" })
  task:start()
  local id = process_of(task)
  eventually("it runs", function()
    return #seen.lines == 1
  end)
  task:stop()
  eventually("it is killed", function()
    return harness.call("poll", { id = id }).reason == "killed"
  end)
  eq("CANCELED", task.status)
end)

test("dispose does not kill, by force neither", function()
  local task = new_task({ cmd = "sleep 60" })
  task:start()
  local id = process_of(task)
  local strategy = task.strategy
  local rpc = require("toold.rpc")
  local call, calls = rpc.call, {}
  rpc.call = function(method, ...)
    calls[#calls + 1] = method
    return call(method, ...)
  end
  eq(true, task:dispose(true))
  eq(nil, strategy:get_bufnr())
  -- A kill would have been sent in the turn of the loop before this answer.
  harness.call("daemon.info")
  rpc.call = call
  eq({ "daemon.info" }, calls)
  eq("running", harness.call("poll", { id = id }).status)
end)

test("dispose kills if the task wants that", function()
  local task = new_task({ cmd = "sleep 60", strategy = { "toold", kill_on_dispose = true } })
  task:start()
  local id = process_of(task)
  task:dispose(true)
  eventually("it is killed", function()
    return harness.call("poll", { id = id }).reason == "killed"
  end)
end)

test("a restart and a clone are new processes", function()
  local task, seen = new_task({ cmd = "echo hi; exit 3" })
  task:start()
  complete(task)
  local first = process_of(task)
  task:restart()
  complete(task)
  local second = process_of(task)
  local clone = task:clone()
  clone:start()
  complete(clone)
  local third = process_of(clone)
  eq({ true, true, true }, { first ~= second, second ~= third, first ~= third })
  eq({ second, { "hi", "hi" }, { 3, 3 } }, { process_of(task), seen.lines, seen.exits })
end)

test("a task goes on when the daemon is killed, and ends with its own code", function()
  local command, open = gated("echo after; exit 5")
  local task, seen = new_task({ cmd = "echo before; " .. command })
  task:start()
  eventually("its output", function()
    return #seen.lines == 1
  end)
  vim.uv.kill(harness.daemon_pid(), "sigkill")
  open()
  complete(task)
  eq({ { "before", "after" }, { 5 }, "FAILURE" }, { seen.lines, seen.exits, task.status })
end)

--- Another editor starts a task, waits for its first line, and is killed. Returns what a session plugin would have saved.
local function other_editor(command)
  local printed = harness.editor(
    ([[
    local overseer = require("overseer")
    overseer.setup({})
    local task = overseer.new_task({ name = "build", cmd = %q, strategy = "toold" })
    local lines = 0
    task:subscribe("on_output_lines", function(_, new) lines = lines + #new end)
    task:start()
    assert(vim.wait(10000, function() return lines > 0 and task.metadata.toold end))
    io.stdout:write(vim.json.encode(task:serialize()))
    io.stdout:flush()
    vim.uv.kill(vim.uv.os_getpid(), "sigkill")
  ]]):format(command),
    9
  )
  return vim.json.decode(printed:match("{.*}"))
end

test("a saved task that runs on is attached to after a restart of the editor", function()
  local command, open = gated("echo after; exit 6")
  local saved = other_editor("echo before; " .. command)
  local task, seen = new_task(saved)
  task:start()
  eventually("the output of before", function()
    return #seen.lines == 1
  end)
  open()
  complete(task)
  eq({ { "before", "after" }, { 6 }, "FAILURE" }, { seen.lines, seen.exits, task.status })
  eventually("the buffer has it", function()
    return vim.deep_equal({ "before", "after" }, output_lines(task))
  end)
  eq(1, harness.call("list", { label = "overseer" }).total)
end)

test("a saved task that has ended meanwhile has its whole output and its exit code", function()
  local command, open = gated("seq 1 5000; exit 9")
  local saved = other_editor("echo 0; " .. command)
  open()
  local id = saved.metadata.toold.id
  harness.call("wait", { id = id })
  local task, seen = new_task(saved)
  task:start()
  complete(task)
  local expected = {}
  for i = 0, 5000 do
    expected[i + 1] = tostring(i)
  end
  eq(expected, seen.lines)
  eq({ { 9 }, id }, { seen.exits, process_of(task) })
end)

test("restore makes tasks of the processes of an earlier editor, each once", function()
  other_editor("echo before; sleep 60")
  local function restore()
    local restored
    require("toold.overseer").restore({}, function(tasks)
      restored = tasks
    end)
    return eventually("an answer", function()
      return restored
    end)
  end
  local tasks = restore()
  eq(1, #tasks)
  process_of(tasks[1])
  eq({ "build", "RUNNING", "echo before; sleep 60" }, { tasks[1].name, tasks[1].status, tasks[1].cmd })
  eventually("its output", function()
    return vim.deep_equal({ "before" }, output_lines(tasks[1]))
  end)
  eq({}, restore())
end)

test("a saved task whose process was forgotten starts a new one", function()
  local saved = other_editor("echo before; exit 2")
  harness.call("wait", { id = saved.metadata.toold.id })
  harness.call("forget", { ids = { saved.metadata.toold.id } })
  local task, seen = new_task(saved)
  task:start()
  complete(task)
  eq({ { "before" }, { 2 } }, { seen.lines, seen.exits })
end)

harness.run()
