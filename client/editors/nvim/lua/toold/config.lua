--- Settings: `vim.g.toold`, a table, overridden by what `setup()` was given. All have defaults.

local M = {}

---@class toold.Config
---@field socket? string The daemon's socket. Default: where `toolctl` looks for it.
---@field toolctl string The program that starts the daemon and attaches.
---@field session string The `session_key` of processes that the editor starts.
---@field autostart boolean Start the daemon if none runs.
---@field pty boolean Give commands of `:Toold run` a terminal.
---@field open string The Ex command that opens a window for a list or a log.
---@field ended_within_ms integer How long the list shows processes that have ended.
local defaults = {
  toolctl = "toolctl",
  session = "nvim",
  autostart = true,
  pty = true,
  open = "botright 15split",
  ended_within_ms = 3600 * 1000,
}

---@type table<string, any>
local given = {}

---@param options? table<string, any>
function M.setup(options)
  given = options or {}
end

---@return toold.Config
function M.get()
  local config = vim.tbl_extend("force", defaults, vim.g.toold or {}, given)
  if not (vim.g.toold or {}).session and not given.session and (vim.env.TOOLD_SESSION or "") ~= "" then
    config.session = vim.env.TOOLD_SESSION
  end
  return config
end

--- Returns the path of the daemon's socket, by the rules of `toolctl`.
---@return string
function M.socket()
  local config = M.get()
  local function set(value)
    return value and value ~= "" and value or nil
  end
  local runtime = set(vim.env.XDG_RUNTIME_DIR)
  return set(config.socket)
    or set(vim.env.TOOLD_SOCKET)
    or (runtime and runtime .. "/toold/toold.sock")
    or ((set(vim.env.TMPDIR) or "/tmp") .. "/toold-" .. vim.uv.getuid() .. "/toold.sock")
end

return M
