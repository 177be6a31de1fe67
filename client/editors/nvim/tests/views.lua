--- The list, logs and questions, as a user sees them.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq, eventually = harness.test, harness.eq, harness.eventually
local press, gated = harness.press, harness.gated
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

test("K asks first with the size of the tree, if a person is there", function()
  harness.exec("sleep 60 & sleep 60; wait", { name = "pair" })
  vim.cmd("Toold list")
  go_to("pair")
  local list_uis, select = vim.api.nvim_list_uis, vim.ui.select
  vim.api.nvim_list_uis = function()
    return { {} }
  end
  local asked, answer = {}, "no"
  vim.ui.select = function(items, options, done)
    asked[#asked + 1] = { options.prompt, items }
    done(answer)
  end
  eventually("the tree has three", function()
    return #harness.call("inspect", { id = "pair" }).tree == 3
  end)
  press("K")
  eventually("the question", function()
    return #asked == 1
  end)
  eq("running", harness.call("poll", { id = "pair" }).status)
  answer = "kill"
  press("K")
  eventually("it is killed", function()
    return harness.call("poll", { id = "pair" }).reason == "killed"
  end)
  vim.api.nvim_list_uis, vim.ui.select = list_uis, select
  local question = { "Kill pair (3 processes)?", { "kill", "no" } }
  eq({ question, question }, asked)
end)

harness.run()
