--- The output of a process in a terminal buffer, from its first byte on, followed to its end.

local follow = require("toold.follow")
local term = require("toold.term")
local text = require("toold.text")
local window = require("toold.window")

local M = {}

---@class toold.Log
---@field term toold.Term
---@field follower toold.Follower
local logs = {} ---@type table<integer, toold.Log> by buffer

---@param id string
local function keys(buffer, id)
  local actions = require("toold.actions")
  local function act(name)
    return function()
      actions[name](id)
    end
  end
  window.map(buffer, {
    { "i", "answer, or type a line", act("answer") },
    { "a", "attach to its terminal", act("attach") },
    { "K", "kill its tree", act("kill") },
    { "R", "run it again", act("rerun") },
    {
      "q",
      "close the window; the process goes on",
      function()
        pcall(vim.api.nvim_win_close, 0, false)
      end,
    },
  })
end

--- Returns what a follower of output does with a terminal buffer.
---@param terminal toold.Term
---@return toold.FollowOptions
function M.options(terminal)
  return {
    on_start = function(process)
      terminal.is_raw = process.pty
      vim.b[terminal.buffer].term_title = "toold: " .. text.name(process)
    end,
    on_output = function(data)
      terminal:send(data)
    end,
    on_gap = function(bytes)
      terminal:note(("%d bytes are not kept"):format(bytes))
    end,
    on_close = function(process)
      terminal:note(text.ending(process))
    end,
    on_error = function(err)
      terminal:note(err.message)
    end,
  }
end

--- Shows the output of a process in a window and follows it.
---@param id string
---@return integer buffer
function M.open(id)
  local name = "toold://log/" .. id
  local buffer = window.find(name)
  if buffer and logs[buffer] then
    window.show(buffer)
    return buffer
  end
  buffer = window.scratch(name)
  window.show(buffer)
  local terminal = term.open(buffer)
  vim.b[buffer].toold_id = id
  vim.bo[buffer].filetype = "toold-log"
  keys(buffer, id)
  logs[buffer] = { term = terminal, follower = follow.attach(id, M.options(terminal)) }
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      logs[buffer].follower:stop()
      logs[buffer] = nil
    end,
  })
  return buffer
end

return M
