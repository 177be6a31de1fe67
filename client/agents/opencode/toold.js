// toold for opencode: wakes an idle session when one of its background processes ends or asks, and gives each session its own
// processes. Needs `toolctl` in PATH and the server `toold` in opencode.json.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const key = (sessionID) => `opencode:${sessionID}`
const TYPES = "exited,completion,needs_input,watch_match,watch_disabled,restart_gave_up,stage_ready,approval_requested,approval_decided"

export const Toold = async ({ client, directory }) => {
  const followers = new Map()

  // One follower per session. It acknowledges an event when it has printed it, and goes on over a restart of the daemon.
  const follow = (sessionID) => {
    if (followers.has(sessionID)) return
    const args = ["events", "-f", "--consumer", `agent:${key(sessionID)}`, "--session", key(sessionID), "--type", TYPES]
    const child = spawn("toolctl", args, { stdio: ["ignore", "pipe", "ignore"] })
    followers.set(sessionID, child)
    child.on("error", () => followers.delete(sessionID))
    child.on("exit", () => followers.delete(sessionID))
    createInterface({ input: child.stdout }).on("line", (line) =>
      client.session.promptAsync({
        path: { id: sessionID },
        query: { directory },
        body: { parts: [{ type: "text", text: `toold: ${line}` }] },
      }),
    )
  }

  return {
    "tool.execute.before": async ({ tool, sessionID }, output) => {
      if (tool.startsWith("toold_")) output.args._session = key(sessionID)
      else if (!output.args?.command?.includes?.("toolctl")) return
      follow(sessionID)
    },
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID) output.env.TOOLD_SESSION = key(sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.deleted") followers.get(event.properties.info.id)?.kill()
    },
    dispose: async () => followers.forEach((child) => child.kill()),
  }
}
