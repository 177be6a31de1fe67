--- The parameters of `exec` for a command of the editor: its directory, its environment, keys of its own.

local config = require("toold.config")

local M = {}

--- Variables that Neovim sets for itself.
local OWN_VARIABLES = { "VIM", "VIMRUNTIME", "MYVIMRC", "NVIM_LOG_FILE", "NVIM_LISTEN_ADDRESS" }
--- The terminal that a program on a PTY is given.
local TERM = "xterm-256color"

local counter = 0

--- Returns a key that no other call of any editor has: pid, time and a number.
---@return string
function M.unique()
  counter = counter + 1
  return ("nvim-%d-%x-%d"):format(vim.uv.os_getpid(), vim.uv.hrtime(), counter)
end

--- Returns the editor's environment and `extra`. Values that are not ASCII are base64: they need not be UTF-8.
---@param extra? table<string, string|integer>
---@param has_pty boolean
---@return { env: table<string, string>, env_base64: table<string, string> }
function M.environment(extra, has_pty)
  local all = vim.fn.environ()
  for _, name in ipairs(OWN_VARIABLES) do
    all[name] = nil
  end
  if has_pty then
    all.TERM = TERM
  end
  local plain, encoded = vim.empty_dict(), vim.empty_dict()
  for name, value in pairs(vim.tbl_extend("force", all, extra or {})) do
    value = tostring(value)
    if value:find("[\128-\255]") then
      encoded[name] = vim.base64.encode(value)
    else
      plain[name] = value
    end
  end
  return { env = plain, env_base64 = encoded }
end

--- Returns the user's shell, if it is one that takes `-c` as sh does.
---@return string?
local function shell()
  local program = vim.o.shell
  local name = vim.fs.basename(program)
  local is_known = vim.tbl_contains({ "sh", "bash", "dash", "zsh", "ksh", "fish" }, name)
  return is_known and vim.fn.exepath(program) ~= "" and vim.fn.exepath(program) or nil
end

--- Builds the parameters.
---@param command string|string[] A command line for the shell, or a program and its arguments.
---@param options? toold.RunOptions
---@return table
function M.params(command, options)
  options = options or {}
  local has_pty = options.pty and true or false
  local environment = M.environment(options.env, has_pty)
  local params = {
    cwd = vim.fn.fnamemodify(options.cwd or vim.fn.getcwd(), ":p"),
    env = environment.env,
    env_base64 = environment.env_base64,
    env_mode = "replace",
    name = options.name,
    session_key = config.get().session,
    task_id = options.task_id or M.unique(),
    request_id = M.unique(),
    labels = vim.tbl_extend("force", { client = "nvim" }, options.labels or {}),
    notify = options.notify or false,
  }
  if type(command) == "table" then
    params.argv = command
  else
    params.command, params.shell, params.login = command, shell(), false
  end
  if has_pty then
    params.pty = options.pty
  else
    params.stdin, params.merge = "pipe", true
  end
  return params
end

return M
