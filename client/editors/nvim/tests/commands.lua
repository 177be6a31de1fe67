--- The commands: run, attach, quickfix, events, completion, and what outlives the editor.

local harness = dofile(vim.fs.dirname(arg[0]) .. "/harness.lua")
local test, eq, eventually, gated = harness.test, harness.eq, harness.eventually, harness.gated

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
