-- luacheck: the globals of Neovim.
std = "luajit"
globals = { "vim" }
max_line_length = 130
files["tests"] = { globals = { "vim", "arg" } }
