--- The connection: the start of the daemon, its loss, and what goes on after it.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq, eventually = harness.test, harness.eq, harness.eventually
local rpc = require("toold.rpc")

--- A toolctl that counts how often it is run.
local dir = vim.fn.tempname()
vim.fn.mkdir(dir, "p")
local function counted_toolctl()
  local counter, program = dir .. "/count", dir .. "/toolctl"
  vim.fn.writefile({ "#!/bin/sh", ('echo "$@" >>%s'):format(counter), 'exec toolctl "$@"' }, program)
  vim.uv.fs_chmod(program, tonumber("755", 8))
  vim.fn.delete(counter)
  require("toold").setup({ toolctl = program })
  return function()
    return vim.fn.filereadable(counter) == 1 and vim.fn.readfile(counter) or {}
  end
end

local function kill_daemon(pid)
  vim.uv.kill(pid, "sigkill")
  eventually("the connection is lost", function()
    return rpc.state() ~= "up"
  end)
end

local function is_away(notice)
  return notice:find("away", 1, true) ~= nil
end

test("the first call starts the daemon, with toolctl info, once", function()
  local runs = counted_toolctl()
  eq("idle", rpc.state())
  eq(1, harness.call("daemon.info").protocol)
  harness.call("list")
  eq({ "info" }, runs())
  eq({}, harness.notices)
end)

test("without a daemon and without toolctl a call fails with the reason", function()
  rpc.close()
  require("toold").setup({ toolctl = "/nonexistent/toolctl", socket = dir .. "/none.sock" })
  local result, err = rpc.wait("list")
  eq(nil, result)
  eq({
    kind = "unreachable",
    message = "`/nonexistent/toolctl info` did not start the daemon: the program is not installed; "
      .. "set vim.g.toold = { toolctl = … }",
  }, err)
  rpc.close()
  require("toold").setup({})
end)

test("the statusline starts no daemon", function()
  rpc.close()
  local runs = counted_toolctl()
  local program = dir .. "/toolctl"
  require("toold").setup({ toolctl = program, socket = dir .. "/none.sock" })
  eq("", require("toold").status())
  eventually("an attempt was made", function()
    return rpc.state() == "idle"
  end)
  eq({}, runs())
  rpc.close()
  require("toold").setup({})
end)

test(
  "a daemon that is killed is started again once, the loss is reported once, and no event is lost or doubled",
  function()
    local runs = counted_toolctl()
    local pid = harness.daemon_pid()
    local seen = {}
    local subscription = rpc.subscribe({ types = { "exited" } }, function(event)
      seen[#seen + 1] = { event.name, event.exit_code }
    end)
    eventually("it is open", function()
      return subscription.number
    end)
    harness.exec("exit 3", { name = "before" })
    eventually("the first exit", function()
      return #seen == 1
    end)
    local gate = vim.fn.tempname()
    harness.exec(("until [ -e %s ]; do sleep 0.02; done; exit 4"):format(gate), { name = "between" })
    kill_daemon(pid)
    -- It ends while no daemon runs.
    vim.fn.writefile({}, gate)
    eventually("the second exit", function()
      return #seen == 2
    end)
    harness.exec("exit 5", { name = "after" })
    eventually("the third exit", function()
      return #seen == 3
    end)
    eq({ { "before", 3 }, { "between", 4 }, { "after", 5 } }, seen)
    eq({ "info" }, runs())
    eq({ "toold: the daemon is away; processes go on, reconnecting" }, vim.tbl_filter(is_away, harness.notices))
    eq(true, harness.daemon_pid() ~= pid)
    rpc.unsubscribe(subscription)
    require("toold").setup({})
  end
)

test("a follower whose reads are older than the events gets the exit all the same", function()
  local call = rpc.call
  rpc.call = function(method, params, done)
    call(method, params, function(err, result)
      if method == "poll" then
        -- The daemon stores an event before it shows the state.
        result.status, result.closed, result.exit_code = "running", false, nil
      end
      done(err, result)
    end)
  end
  local id = harness.exec("echo hi; exit 4")
  local seen = {}
  require("toold.follow").attach(id, {
    on_output = function(data)
      seen[#seen + 1] = data
    end,
    on_exit = function(process)
      seen[#seen + 1] = process.exit_code
    end,
    on_close = function(process)
      seen[#seen + 1] = process.closed
    end,
  })
  eventually("its end", function()
    return #seen == 3
  end)
  rpc.call = call
  eq({ "hi\n", 4, true }, seen)
end)

test("each loss is reported once", function()
  local subscription = rpc.subscribe({}, function() end)
  for loss = 1, 2 do
    kill_daemon(harness.daemon_pid())
    eventually("it is back", function()
      return rpc.state() == "up" and subscription.number
    end)
    eq(loss, #vim.tbl_filter(is_away, harness.notices))
  end
  rpc.unsubscribe(subscription)
end)

test("a start whose answer was lost is repeated by its key, and starts nothing twice", function()
  local file = vim.fn.tempname()
  local params = require("toold.exec").params(("echo run >>%s; sleep 60"):format(file), { name = "once" })
  params.yield_ms = 20000
  local is_done = false
  local id
  rpc.call("exec", params, function(err, process)
    eq(nil, err)
    is_done, id = true, process.id
  end)
  eventually("it runs", function()
    return vim.fn.filereadable(file) == 1
  end)
  local running = harness.call("list", { name = "once" }).processes[1].id
  kill_daemon(harness.daemon_pid())
  eventually("it is back", function()
    return rpc.state() == "up"
  end)
  harness.call("kill", { id = running })
  eventually("the answer", function()
    return is_done
  end)
  eq({ "run" }, vim.fn.readfile(file))
  eq(running, id)
end)

test("a call that may not be repeated fails when its answer is lost", function()
  local id = harness.exec("trap '' TERM; echo ready; sleep 60", { name = "stubborn" })
  eventually("it has its trap", function()
    return harness.call("poll", { id = id }).output == "ready\n"
  end)
  local failure
  local pid = harness.daemon_pid()
  rpc.call("restart", { id = id, grace_ms = 20000 }, function(err)
    failure = err
  end)
  -- An answer to a later call: the daemon has read the restart.
  harness.call("daemon.info")
  kill_daemon(pid)
  eventually("an answer", function()
    return failure
  end)
  eq("unreachable", failure.kind)
end)

test("a subscription is ended by its number, whatever its size", function()
  local subscription = rpc.subscribe({}, function() end)
  eventually("it is open", function()
    return subscription.number
  end)
  eq(true, harness.call("events.unsubscribe", { subscription = subscription.number }))
  eq(false, harness.call("events.unsubscribe", { subscription = subscription.number }))
  rpc.unsubscribe(subscription)
end)

test("an error in a callback is reported and stops nothing", function()
  rpc.call("list", {}, function()
    error("oops")
  end)
  harness.call("list")
  eq(1, #harness.notices)
  eq(true, harness.notices[1]:find("oops", 1, true) ~= nil)
end)

harness.run()
