--- Commands and maps of toold.nvim. Nothing is loaded before one of them is used.

if vim.g.loaded_toold then
  return
end
vim.g.loaded_toold = true

vim.api.nvim_create_user_command("Toold", function(call)
  require("toold.command").run(call)
end, {
  nargs = "*",
  bang = true,
  desc = "Processes of the toold daemon",
  complete = function(lead, line)
    return require("toold.command").complete(lead, line)
  end,
})

local function map(name, verb, desc)
  vim.keymap.set("n", "<Plug>(toold-" .. name .. ")", function()
    require("toold.command").verb(verb)
  end, { desc = desc })
end

map("list", "list", "toold: list of processes")
map("run", "run", "toold: run a command")
map("log", "log", "toold: output of a process")
map("attach", "attach", "toold: terminal of a process")
map("answer", "answer", "toold: answer the process that asks")
map("kill", "kill", "toold: kill a process")
map("rerun", "rerun", "toold: run a process again")
map("events", "events", "toold: events")
