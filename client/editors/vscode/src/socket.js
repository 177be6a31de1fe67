// The path of the daemon's socket, the check of its directory, and the split of the bytes into messages.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

/** Mode bits that let others put a socket of theirs into a directory. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Returns the path of the daemon's socket, by the rules of `toolctl`.
 * @param {string | undefined} setting
 * @param {NodeJS.ProcessEnv} env
 * @param {number} uid
 */
function socketPath(setting, env, uid) {
  if (setting) return setting;
  if (env.TOOLD_SOCKET) return env.TOOLD_SOCKET;
  if (env.XDG_RUNTIME_DIR) return path.join(env.XDG_RUNTIME_DIR, "toold/toold.sock");
  return path.join(env.TMPDIR || "/tmp", `toold-${uid}`, "toold.sock");
}

/** @param {string} file */
function lstat(file) {
  return fs.lstatSync(file, { throwIfNoEntry: false });
}

/**
 * Returns the reason why nothing may be sent to this socket, or null. A request carries commands and environment values, and
 * another user could have made the directory in $TMPDIR first.
 * @param {string} socket
 * @param {number} uid
 * @returns {string | null}
 */
function distrust(socket, uid) {
  const dir = path.dirname(socket);
  const found = lstat(dir);
  if (!found) return null;
  const advice = "set TOOLD_SOCKET to a path in a directory of your own";
  if (!found.isDirectory()) return `${dir} is not a directory; ${advice}`;
  const above = lstat(path.dirname(dir));
  // Root may use the daemon of a user whose directory only that user can write to.
  const isOfUser = uid === 0 && above?.uid === found.uid && (above.mode & WRITABLE_BY_OTHERS) === 0;
  /** @param {fs.Stats} stat */
  const isForeign = (stat) => stat.uid !== uid && stat.uid !== 0 && !isOfUser;
  if (isForeign(found)) return `${dir} belongs to uid ${found.uid}, and you are uid ${uid}; ${advice}`;
  if (found.mode & WRITABLE_BY_OTHERS) return `${dir} can be written by others; ${advice}`;
  const stat = lstat(socket);
  if (stat && isForeign(stat)) return `${socket} belongs to uid ${stat.uid}, and you are uid ${uid}`;
  return null;
}

/**
 * Returns a function that takes text and returns the messages that it completes, one of each line.
 * @returns {(chunk: string) => any[]}
 */
function lineDecoder() {
  /** @type {string[]} */
  let rest = [];
  return (chunk) => {
    const lines = chunk.split("\n");
    const messages = [];
    for (let i = 0; i < lines.length - 1; i++) {
      const line = rest.join("") + lines[i];
      rest = [];
      if (line !== "") messages.push(JSON.parse(line));
    }
    rest.push(lines[lines.length - 1]);
    return messages;
  };
}

module.exports = { socketPath, distrust, lineDecoder };
