--- The bytes of the connection: JSON messages, one on each line, and the check of the socket's directory. Pure but for stat.

local M = {}

--- Mode bits that let others put a socket of theirs into a directory.
local WRITABLE_BY_OTHERS = tonumber("022", 8)

---@param request { id: integer, method: string, params?: table }
---@return string
function M.encode(request)
  -- The encoder of Neovim 0.10 writes 14 digits of a number; the number of a subscription has more.
  if request.method == "events.unsubscribe" then
    local form = '{"jsonrpc":"2.0","id":%d,"method":"events.unsubscribe","params":{"subscription":%d}}\n'
    return form:format(request.id, request.params.subscription)
  end
  local params = request.params
  if not params or next(params) == nil then
    params = vim.empty_dict()
  end
  return vim.json.encode({ jsonrpc = "2.0", id = request.id, method = request.method, params = params }) .. "\n"
end

--- Returns a function that takes chunks of bytes and returns the messages that they complete.
---@return fun(chunk: string): table[]
function M.decoder()
  local rest = {} ---@type string[]
  return function(chunk)
    local messages = {}
    local start = 1
    while true do
      local stop = chunk:find("\n", start, true)
      if not stop then
        break
      end
      rest[#rest + 1] = chunk:sub(start, stop - 1)
      local line = table.concat(rest)
      rest = {}
      start = stop + 1
      if line ~= "" then
        messages[#messages + 1] = vim.json.decode(line, { luanil = { object = true, array = true } })
      end
    end
    if start <= #chunk then
      rest[#rest + 1] = chunk:sub(start)
    end
    return messages
  end
end

--- Returns the reason why nothing may be sent to this socket, or nil. A request carries commands and environment values, and
--- another user could have made the directory in $TMPDIR first.
---@param path string
---@return string?
function M.distrust(path)
  local own = vim.uv.getuid()
  local dir = vim.fs.dirname(path)
  local found = vim.uv.fs_lstat(dir)
  if not found then
    return nil
  end
  local function is_open(stat)
    return bit.band(stat.mode, WRITABLE_BY_OTHERS) ~= 0
  end
  if found.type ~= "directory" then
    return dir .. " is not a directory; set TOOLD_SOCKET to a path in a directory of your own"
  end
  local above = vim.uv.fs_lstat(vim.fs.dirname(dir))
  local of_user = own == 0 and above and above.uid == found.uid and not is_open(above)
  if found.uid ~= own and found.uid ~= 0 and not of_user then
    return ("%s belongs to uid %d, and you are uid %d; set TOOLD_SOCKET to a path in a directory of your own"):format(
      dir,
      found.uid,
      own
    )
  end
  if is_open(found) then
    return dir .. " can be written by others; use a directory that only you can write to"
  end
  local socket = vim.uv.fs_lstat(path)
  if socket and socket.uid ~= own and socket.uid ~= 0 and not of_user then
    return ("%s belongs to uid %d, and you are uid %d"):format(path, socket.uid, own)
  end
  return nil
end

return M
