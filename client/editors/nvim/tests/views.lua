--- The list, logs, questions, the quickfix list and events, as a user sees them.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq, eventually, press = harness.test, harness.eq, harness.eventually, harness.press
local rpc = require("toold.rpc")

--- Returns the rows of the list: mark, name, state.
local function rows(buffer)
  local found = {}
  for _, line in ipairs(vim.list_slice(harness.lines(buffer), 3)) do
    found[#found + 1] = { line:match("^(%S+)%s(%S+)%s+(%S+%s?%d*)") }
    local row = found[#found]
    row[3] = vim.trim(row[3])
  end
  return found
end

local function row_of(name)
  for _, row in ipairs(rows()) do
    if row[2] == name then
      return row
    end
  end
end

--- Puts the cursor on a process of the list.
local function go_to(name)
  eventually(name .. " is listed", function()
    for i, line in ipairs(harness.lines()) do
      if line:find("^%S+ " .. name .. " ") then
        vim.api.nvim_win_set_cursor(0, { i, 0 })
        return true
      end
    end
  end)
end

--- A command that runs until its gate is opened.
local function gated(command)
  local gate = vim.fn.tempname()
  return ("until [ -e %s ]; do sleep 0.02; done; %s"):format(gate, command),
    function()
      vim.fn.writefile({}, gate)
    end
end

test("the list changes by events, with no call but those that they cause", function()
  local lists, events, call = 0, 0, rpc.call
  rpc.call = function(method, ...)
    lists = lists + (method == "list" and 1 or 0)
    return call(method, ...)
  end
  local counter = vim.api.nvim_create_autocmd("User", {
    pattern = "TooldEvent",
    callback = function()
      events = events + 1
    end,
  })
  vim.cmd("Toold")
  eq("toold-list", vim.bo.filetype)
  local command, open = gated("exit 3")
  harness.exec(command, { name = "web" })
  eventually("it is listed", function()
    return vim.deep_equal({ "●", "web", "running" }, row_of("web"))
  end)
  -- The ages go on by a timer of the editor.
  local ages = {}
  eventually("four ages", function()
    for _, line in ipairs(harness.lines()) do
      local age = line:match("^● web .* (%d[%d.]*[sm])")
      if age and age ~= ages[#ages] then
        ages[#ages + 1] = age
      end
    end
    return #ages == 4
  end)
  -- One for the opening, and one for each event: a poll would have made more meanwhile.
  eq({ true, true }, { lists <= events + 1, events < 3 })
  open()
  eventually("its exit is shown", function()
    return vim.deep_equal({ "✗", "web", "exited 3" }, row_of("web"))
  end)
  rpc.call = call
  vim.api.nvim_del_autocmd(counter)
end)

test("the cursor stays on its process when others come", function()
  harness.exec("sleep 60", { name = "first" })
  vim.cmd("Toold list")
  go_to("first")
  harness.exec("sleep 60", { name = "second" })
  eventually("it is listed", function()
    return row_of("second")
  end)
  eq("first", require("toold.list").current().name)
end)

test("those that ask come first, and the statusline counts them apart", function()
  harness.exec("sleep 60", { name = "one" })
  harness.exec('read -p "Overwrite? [y/N] " a; echo "got $a"; sleep 60', { name = "setup", pty = true })
  harness.exec("sleep 60", { name = "two" })
  vim.cmd("Toold list")
  eventually("the question is shown", function()
    return vim.deep_equal({ "!", "setup", "asks" }, rows()[1])
  end)
  eq(true, harness.lines()[3]:find("Overwrite? [y/N]", 1, true) ~= nil)
  eq("2 run, 1 asks", require("toold").status())
end)

test("an answer is typed at the prompt, and the question is gone", function()
  harness.exec('read -p "Overwrite? [y/N] " a; echo "got $a"; sleep 60', { name = "setup", pty = true })
  vim.cmd("Toold list")
  eventually("the question is shown", function()
    return row_of("setup") and row_of("setup")[1] == "!"
  end)
  go_to("setup")
  local asked
  vim.ui.input = function(options, done)
    asked = options.prompt
    done("yes")
  end
  press("i")
  eventually("it runs on", function()
    return vim.deep_equal({ "●", "setup", "running" }, row_of("setup"))
  end)
  eq("Overwrite? [y/N] ", asked)
  eventually("it has its answer", function()
    return harness.call("poll", { id = "setup", ansi = "keep" }).output == "Overwrite? [y/N] yes\r\ngot yes\r\n"
  end)
end)

--- Answers `read -s` as a user, and returns what was asked and what the process got.
local function answer_secret(before)
  harness.exec('read -s -p "Password: " a; echo; echo "length ${#a}"; sleep 60', { name = "login", pty = true })
  vim.cmd("Toold list")
  eventually("the question is shown", function()
    return row_of("login") and row_of("login")[1] == "!"
  end)
  go_to("login")
  local asked
  local inputsecret, input = vim.fn.inputsecret, vim.ui.input
  vim.fn.inputsecret = function(options)
    asked = options.prompt
    return "hunter2"
  end
  vim.ui.input = function()
    error("a secret was asked for in the open")
  end
  if before then
    before()
  end
  press("i")
  eventually("it has its answer", function()
    return harness.call("poll", { id = "login" }).output:find("length 7", 1, true)
  end)
  vim.fn.inputsecret, vim.ui.input = inputsecret, input
  return asked
end

test("an answer is hidden while it is typed if the echo is off", function()
  eq("Password: ", answer_secret())
  eq({}, harness.notices)
end)

test("a question of a daemon that reports it as a boolean is answered by its event", function()
  local call = rpc.call
  local asked = answer_secret(function()
    rpc.call = function(method, params, done)
      call(method, params, function(err, result)
        if method == "inspect" and result.needs_input then
          result.needs_input = true
        end
        done(err, result)
      end)
    end
  end)
  rpc.call = call
  eq("Password: ", asked)
end)

test("a log shows the whole output from its first byte, and follows it to the end", function()
  local command, open = gated("echo last; exit 4")
  local id = harness.exec("seq 1 20000; " .. command, { name = "long" })
  vim.cmd("Toold log long")
  eventually("a terminal", function()
    return vim.bo.buftype == "terminal"
  end)
  eventually("all of it is there", function()
    return harness.lines()[20000] == "20000"
  end)
  eq("1", harness.lines()[1])
  open()
  eventually("its end is shown", function()
    return (harness.lines()[20003] or ""):find("^%[exited 4 after ")
  end)
  eq("last", harness.lines()[20001])
  eventually("the cursor follows", function()
    return vim.api.nvim_win_get_cursor(0)[1] == #harness.lines()
  end)
  eq(id, vim.b.toold_id)
end)

test("a log goes on after the daemon was killed, without a byte lost or doubled", function()
  local command, open = gated("seq 2001 4000; exit 6")
  harness.exec("seq 1 2000; " .. command, { name = "long" })
  vim.cmd("Toold log long")
  eventually("the first part is there", function()
    return harness.lines()[2000] == "2000"
  end)
  local pid = harness.daemon_pid()
  vim.uv.kill(pid, "sigkill")
  open()
  eventually("its end is shown", function()
    return (harness.lines()[4002] or ""):find("^%[exited 6 after ")
  end)
  local expected = {}
  for i = 1, 4000 do
    expected[i] = tostring(i)
  end
  eq(expected, vim.list_slice(harness.lines(), 1, 4000))
  eq({ "toold: the daemon is away; processes go on, reconnecting" }, harness.notices)
end)

test("a log keeps what comes in one piece, before the first redraw", function()
  local id = harness.exec("seq 1 60000", { yield_ms = 20000 })
  vim.cmd("Toold log " .. id)
  eventually("all of it is there", function()
    return harness.lines()[60000] == "60000"
  end)
  eq("1", harness.lines()[1])
end)

test("a process is named by its id, the start of it, its name, @last and @failed", function()
  local failed = harness.exec("exit 1", { yield_ms = 5000 })
  local named = harness.exec("sleep 60", { name = "named" })
  local resolved = {}
  for i, reference in ipairs({ failed, failed:sub(1, -2), "named", "@last", "@failed", "ghost" }) do
    require("toold.process_ref").resolve(reference, function(id)
      resolved[i] = id
    end)
  end
  eventually("all of them", function()
    return vim.tbl_count(resolved) == 5 and #harness.notices == 1
  end)
  eq({ failed, failed, named, named, failed }, resolved)
  eq({ 'toold: no process "ghost"; `list` shows what there is' }, harness.notices)
end)

test("a window whose cursor has left the end does not follow", function()
  local command, open = gated("echo more; sleep 60")
  harness.exec("seq 1 100; " .. command, { name = "long" })
  vim.cmd("Toold log long")
  eventually("it is there", function()
    return harness.lines()[100] == "100"
  end)
  vim.api.nvim_win_set_cursor(0, { 5, 0 })
  vim.api.nvim_exec_autocmds("CursorMoved", { buffer = 0 })
  open()
  eventually("the rest is there", function()
    return harness.lines()[101] == "more"
  end)
  eq(5, vim.api.nvim_win_get_cursor(0)[1])
end)

test("K kills the tree, R runs it again, the filter and the help are shown", function()
  harness.exec("sleep 60", { name = "alpha" })
  harness.exec("sleep 60", { name = "beta" })
  vim.cmd("Toold list")
  go_to("alpha")
  press("K")
  eventually("it is killed", function()
    return vim.deep_equal({ "✗", "alpha", "SIGTERM" }, row_of("alpha"))
  end)
  go_to("alpha")
  press("R")
  eventually("it runs again", function()
    local list = harness.call("list", { name = "alpha" }).processes
    return #list == 2 and list[1].status == "running" and list[1].restart_of == list[2].id
  end)
  vim.ui.input = function(options, done)
    eq("filter: ", options.prompt)
    done("BET")
  end
  press("/")
  eq({ { "●", "beta", "running" } }, rows())
  require("toold.list").filter("")
  press("?")
  eq("toold-help", vim.bo.filetype)
  eq(
    { "<CR>", "a", "i", "K", "R", "/", "q", "?" },
    vim.tbl_map(function(line)
      return line:match("%S+")
    end, harness.lines())
  )
  press("q")
  eq("toold-list", vim.bo.filetype)
  press("<CR>")
  eq("toold-log", vim.bo.filetype)
end)

test("attach opens the terminal: keys go to the process, and closing it leaves it running", function()
  local id = harness.exec('echo ready; while read a; do echo "got $a"; done', { name = "shell", pty = true })
  vim.cmd("Toold attach shell")
  local buffer = eventually("a terminal", function()
    return vim.b.toold_id == id and vim.bo.buftype == "terminal" and vim.api.nvim_get_current_buf()
  end)
  eventually("its screen", function()
    return vim.tbl_contains(harness.lines(buffer), "ready")
  end)
  vim.fn.chansend(vim.bo[buffer].channel, "hello\r")
  eventually("its answer", function()
    return vim.tbl_contains(harness.lines(buffer), "got hello")
  end)
  vim.cmd.stopinsert()
  vim.api.nvim_buf_delete(buffer, { force = true })
  eq("running", harness.call("poll", { id = id }).status)
end)

test("attach to a process without a terminal shows its output", function()
  harness.exec("echo plain; sleep 60", { name = "pipe" })
  vim.cmd("Toold attach pipe")
  eventually("its output", function()
    return vim.bo.filetype == "toold-log" and harness.lines()[1] == "plain"
  end)
end)

test("a verb without a process asks with vim.ui.select, and offers only those it suits", function()
  harness.exec("sleep 60", { name = "runs" })
  harness.exec("exit 1", { name = "ended", yield_ms = 5000 })
  local offered
  local select = vim.ui.select
  vim.ui.select = function(items, options, done)
    offered = { options.kind, vim.tbl_map(options.format_item, items) }
    done(items[1])
  end
  vim.cmd("Toold kill")
  eventually("it is killed", function()
    return harness.call("poll", { id = "runs" }).reason == "killed"
  end)
  vim.ui.select = select
  eq({ "toold_process", { "runs  running  " } }, offered)
end)

test("the run of a command has the editor's directory, environment and session, and a terminal", function()
  vim.env.TOOLD_TEST_VALUE = "grüß"
  vim.cmd.cd(vim.env.HOME)
  vim.cmd([[Toold run pwd; echo "$TOOLD_TEST_VALUE $VIMRUNTIME"; test -t 1 && echo terminal; exit 4]])
  eventually("its end is shown", function()
    return (harness.lines()[5] or ""):find("^%[exited 4 after ")
  end)
  eq(
    { vim.uv.fs_realpath(vim.env.HOME), "grüß", "terminal" },
    vim.tbl_map(vim.trim, vim.list_slice(harness.lines(), 1, 3))
  )
  local process = harness.call("list", { limit = 1 }).processes[1]
  eq({ "nvim", { client = "nvim" }, true }, { process.session_key, process.labels, process.pty })
end)

test("Toold! fills the quickfix list at the exit, with the files of its directory", function()
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir .. "/elsewhere", "p")
  vim.fn.writefile({ "int x;" }, dir .. "/a.c")
  vim.cmd.cd(dir)
  local seen = {}
  local group = vim.api.nvim_create_augroup("test", {})
  for _, name in ipairs({ "QuickFixCmdPre", "QuickFixCmdPost" }) do
    vim.api.nvim_create_autocmd(name, {
      group = group,
      pattern = "make",
      callback = function()
        seen[#seen + 1] = name
      end,
    })
  end
  local command, open = gated([[printf 'a.c:1:5: \033[31merror\033[0m: bad\nnoise\n'; exit 2]])
  vim.cmd("Toold! " .. command:gsub("|", "\\|"))
  vim.cmd.cd(dir .. "/elsewhere")
  open()
  eventually("the list is filled", function()
    return #seen == 2
  end)
  local list = vim.fn.getqflist({ title = true, items = true })
  eq(":Toold! " .. command, list.title)
  local items = vim.tbl_map(function(item)
    local name = item.bufnr > 0 and vim.uv.fs_realpath(vim.fn.bufname(item.bufnr)) or ""
    return { name, item.lnum, item.col, item.text, item.valid }
  end, list.items)
  eq({ { vim.uv.fs_realpath(dir .. "/a.c"), 1, 5, " error: bad", 1 }, { "", 0, 0, "noise", 0 } }, items)
  eq({ "QuickFixCmdPre", "QuickFixCmdPost" }, seen)
  eq(1, #harness.notices)
  eq(true, harness.notices[1]:find("exited 2 after .*, 1 errors$") ~= nil)
  vim.api.nvim_del_augroup_by_id(group)
  vim.cmd.cd("/")
  vim.fn.delete(dir, "rf")
end)

test("Toold! of a program that does not exist reports it, and the list is empty", function()
  vim.fn.setqflist({}, "f")
  vim.cmd("Toold! /nonexistent/program")
  eventually("the end", function()
    return vim.iter(harness.notices):any(function(notice)
      return notice:find("exited 127 after", 1, true)
    end)
  end)
end)

test("events are shown from before and as they come", function()
  harness.exec("exit 3", { name = "early", yield_ms = 5000 })
  vim.cmd("Toold events")
  eq("toold-events", vim.bo.filetype)
  eventually("the past", function()
    return vim.iter(harness.lines()):any(function(line)
      return line:find("exited%s+early  exit 3 after")
    end)
  end)
  harness.exec("exit 5", { name = "late", yield_ms = 5000 })
  eventually("the present", function()
    return vim.iter(harness.lines()):any(function(line)
      return line:find("exited%s+late  exit 5 after")
    end)
  end)
end)

test("completion knows verbs and processes", function()
  eq({ "list", "log" }, vim.fn.getcompletion("Toold l", "cmdline"))
  harness.exec("sleep 60", { name = "completed" })
  eventually("the name", function()
    return vim.deep_equal({ "completed" }, vim.fn.getcompletion("Toold kill comp", "cmdline"))
  end)
end)

test("processes of an editor that was killed are there with their whole output and true exit code", function()
  local command, open = gated("echo after; exit 7")
  local printed = harness.editor(
    ([[
    require("toold").run(%q, { name = "survivor", pty = false }, function(err, process) id = process.id end)
    vim.wait(10000, function() return id end)
    io.stdout:write(id)
    io.stdout:flush()
    vim.uv.kill(vim.uv.os_getpid(), "sigkill")
  ]]):format("echo before; " .. command),
    9
  )
  local id = printed:match("proc_%x+")
  eq("running", harness.call("poll", { id = id }).status)
  vim.cmd("Toold log survivor")
  eventually("the output of before", function()
    return harness.lines()[1] == "before"
  end)
  open()
  eventually("its end is shown", function()
    return (harness.lines()[4] or ""):find("^%[exited 7 after ")
  end)
  eq({ "before", "after" }, vim.list_slice(harness.lines(), 1, 2))
end)

test("checkhealth finds the daemon and the program", function()
  vim.cmd("checkhealth toold")
  local page = table.concat(harness.lines(), "\n")
  eq(true, page:find("OK daemon [%d.]+, pid %d+, at ") ~= nil)
  eq(nil, page:find("ERROR"))
end)

harness.run()
