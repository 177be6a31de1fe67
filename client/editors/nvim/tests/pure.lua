--- Text, messages and the check of the socket: no daemon is needed.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq = harness.test, harness.eq
local text, wire = require("toold.text"), require("toold.wire")

test("durations are short and never rounded up", function()
  local shown = {}
  for _, ms in ipairs({ 0, 449, 999, 1000, 59999, 60000, 3599999, 7200000, 86400000 }) do
    shown[#shown + 1] = text.duration(ms)
  end
  eq({ "0.0s", "0.4s", "0.9s", "1s", "59s", "1m", "59m", "2h", "1d" }, shown)
end)

test("a question is read from both forms of needs_input", function()
  local new = { since = "2026-11-18T10:00:00Z", prompt = "Password: ", echo = false }
  eq(new, text.question({ needs_input = new }))
  eq({}, text.question({ needs_input = true }))
  eq(nil, text.question({ needs_input = false }))
  eq(nil, text.question({}))
end)

test("the statusline counts those that run and those that ask, and leaves out what is zero", function()
  local running, asking = { status = "running" }, { status = "running", needs_input = { prompt = "?" } }
  eq("2 run, 1 asks", text.counts({ running, asking, running, { status = "exited", exit_code = 0 } }))
  eq("1 run", text.counts({ running }))
  eq("1 asks", text.counts({ asking }))
  eq("", text.counts({}))
end)

test("every end of a process has a state", function()
  local states = {}
  for _, process in ipairs({
    { status = "running" },
    { status = "running", stopped = true },
    { status = "running", needs_input = true },
    { status = "pending" },
    { status = "exited", reason = "exited", exit_code = 2 },
    { status = "exited", reason = "signaled", signal = "SIGSEGV", exit_code = 139 },
    { status = "exited", reason = "killed", signal = "SIGKILL", exit_code = 137 },
    { status = "exited", reason = "failed_start" },
    { status = "lost", reason = "lost" },
  }) do
    states[#states + 1] = text.state(process)
  end
  eq({
    "running",
    "stopped",
    "asks",
    "pending",
    "exited 2",
    "SIGSEGV",
    "SIGKILL killed",
    "failed_start",
    "lost",
  }, states)
end)

test("a row cannot move the cursor, and is cut by its width", function()
  local process = {
    id = "proc_1",
    name = "a\27[31mb\tvery long name of a process",
    command = "x",
    status = "exited",
    reason = "exited",
    exit_code = 0,
    session_key = "nvim",
    preview = "first\nlast \27[1mline\27[0m\n\n",
  }
  eq("✓ ab very long name… exited 0         3s    nvim           last line", text.row(process, 3500))
end)

test("lines for error formats have no escape sequences, and show what stood last", function()
  eq("x.c:3: error", text.plain("\27[1;31mx.c:3:\27[0m error\r"))
  eq("done", text.plain("10%\r50%\rdone"))
  eq("title", text.plain("\27]0;window\7title"))
end)

test("times of the daemon are UTC", function()
  eq(0, text.epoch("1970-01-01T00:00:00Z"))
  eq(1794997343, text.epoch("2026-11-18T10:22:23.183Z"))
  eq(951782400, text.epoch("2000-02-29T00:00:00Z"))
end)

test("messages are cut at line ends, wherever the reads cut them", function()
  local stream = '{"id":1,"result":{"a":null,"b":"ü"}}\n{"id":2,"result":[]}\n{"id":3}\n'
  local expected = { { id = 1, result = { b = "ü" } }, { id = 2, result = {} }, { id = 3 } }
  for size = 1, #stream do
    local decode, messages = wire.decoder(), {}
    for start = 1, #stream, size do
      vim.list_extend(messages, decode(stream:sub(start, start + size - 1)))
    end
    eq(expected, messages, "reads of " .. size)
  end
end)

test("what an event reported holds, also if the daemon does not show it yet", function()
  local facts = require("toold.fact")
  local fact = facts.after(nil, { type = "started" })
  local process = { status = "starting", closed = false }
  facts.apply(process, fact)
  eq({ status = "running", closed = false }, process)
  local exited = { type = "exited", at = "T", exit_code = 4, reason = "exited", duration_ms = 7, status = "exited" }
  fact = facts.after(facts.after(fact, exited), { type = "closed", bytes = 3 })
  process.needs_input = { prompt = "?" }
  facts.apply(process, fact)
  local ended = { status = "exited", closed = true, exit_code = 4, reason = "exited", exited_at = "T", uptime_ms = 7 }
  eq(ended, process)
  facts.apply(process, { status = "running" })
  eq(ended, process)
end)

test("the number of a subscription is sent with all its digits", function()
  local line = wire.encode({ id = 7, method = "events.unsubscribe", params = { subscription = 861052544544758 } })
  eq('{"jsonrpc":"2.0","id":7,"method":"events.unsubscribe","params":{"subscription":861052544544758}}\n', line)
end)

test("a socket in a directory that others can write to gets nothing", function()
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir, "p", "0777")
  vim.uv.fs_chmod(dir, tonumber("777", 8))
  eq(
    dir .. " can be written by others; use a directory that only you can write to",
    wire.distrust(dir .. "/toold.sock")
  )
  vim.uv.fs_chmod(dir, tonumber("700", 8))
  eq(nil, wire.distrust(dir .. "/toold.sock"))
  local link = dir .. "/link"
  vim.uv.fs_symlink(dir, link)
  eq(
    link .. " is not a directory; set TOOLD_SOCKET to a path in a directory of your own",
    wire.distrust(link .. "/toold.sock")
  )
  vim.fn.delete(dir, "rf")
end)

test("percent signs of :Toold! are the current file, unless escaped", function()
  vim.cmd.file("/tmp/dir/main.c")
  local expand = require("toold.make").expand
  eq("cc /tmp/dir/main.c -o /tmp/dir/main", expand("cc % -o %:r"))
  eq("date +%s", expand("date +\\%s"))
  vim.cmd.bwipeout({ bang = true })
  eq("date +%s", expand("date +%s"))
end)

test("the socket is where toolctl looks for it", function()
  local config = require("toold.config")
  local saved = { vim.env.TOOLD_SOCKET, vim.env.XDG_RUNTIME_DIR, vim.env.TMPDIR }
  vim.env.TOOLD_SOCKET, vim.env.XDG_RUNTIME_DIR, vim.env.TMPDIR = "/a/s", "/run/u", "/t"
  eq("/a/s", config.socket())
  vim.env.TOOLD_SOCKET = nil
  eq("/run/u/toold/toold.sock", config.socket())
  vim.env.XDG_RUNTIME_DIR = nil
  eq(("/t/toold-%d/toold.sock"):format(vim.uv.getuid()), config.socket())
  vim.g.toold = { socket = "/b/s" }
  eq("/b/s", config.socket())
  vim.g.toold = nil
  vim.env.TOOLD_SOCKET, vim.env.XDG_RUNTIME_DIR, vim.env.TMPDIR = saved[1], saved[2], saved[3]
end)

test("the plugin defines its command and maps, and loads nothing", function()
  local script = [[
    local loaded = vim.tbl_filter(function(name) return name:find("^toold") end, vim.tbl_keys(package.loaded))
    print(vim.fn.exists(":Toold"), vim.fn.maparg("<Plug>(toold-list)", "n") ~= "", #loaded)
  ]]
  eq("2 true 0", harness.editor(script))
end)

test("the help has tags for what it names", function()
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir, "p")
  vim.uv.fs_copyfile(harness.root .. "/doc/toold.txt", dir .. "/toold.txt")
  vim.cmd.helptags(dir)
  local tags = {}
  for _, line in ipairs(vim.fn.readfile(dir .. "/tags")) do
    tags[line:match("^[^\t]+")] = true
  end
  local page = table.concat(vim.fn.readfile(dir .. "/toold.txt"), "\n")
  local missing = {}
  for name in page:gmatch("|([^|%s]+)|") do
    if not tags[name] and vim.fn.getcompletion(name, "help")[1] ~= name then
      missing[#missing + 1] = name
    end
  end
  eq({}, missing)
  for _, verb in ipairs(require("toold.command").VERBS) do
    eq(true, tags[":Toold-" .. verb], verb)
  end
  vim.fn.delete(dir, "rf")
end)

harness.run()
