// The connection: where the daemon is, how it is started, and messages in lines.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const { DaemonUnreachable } = require("./errors.js");

// Milliseconds that, after a loss, systemd or an upgrade may take to bring the daemon back before the client starts it.
const RESTART_WAIT_MS = 1000;
// The same when the client may not start it.
const RESTART_WAIT_NO_AUTOSTART_MS = 10000;
// The first delay between two tries to connect, and the longest.
const RETRY_DELAY_MS = [2, 100];
// Milliseconds that `toolctl` may take to start a daemon.
const START_TIMEOUT_MS = 30000;
const NEWLINE = 10;

/** The connection ended. `sent` is false if the daemon cannot have seen the request. */
class Lost extends Error {
  constructor(sent) {
    super("connection lost");
    this.sent = sent;
  }
}

/** Returns the path of the socket, as `toolctl` does. */
function defaultSocket() {
  if (process.env.TOOLD_SOCKET) return process.env.TOOLD_SOCKET;
  if (process.env.XDG_RUNTIME_DIR) return path.join(process.env.XDG_RUNTIME_DIR, "toold", "toold.sock");
  return path.join(process.env.TMPDIR || "/tmp", `toold-${process.getuid()}`, "toold.sock");
}

/** Refuses a directory into which others can put a socket. Node cannot ask for the user who listens. */
function checkDir(socket) {
  const dir = path.dirname(path.resolve(socket));
  const found = fs.lstatSync(dir, { throwIfNoEntry: false });
  if (found === undefined) return;
  const own = process.geteuid();
  const parent = fs.lstatSync(path.dirname(dir), { throwIfNoEntry: false });
  const isOfUser = own === 0 && parent?.uid === found.uid && parent.isDirectory() && !(parent.mode & 0o022);
  let problem;
  if (!found.isDirectory()) problem = "is not a directory; choose another socket with TOOLD_SOCKET";
  else if (found.uid !== own && found.uid !== 0 && !isOfUser) {
    problem = `belongs to uid ${found.uid}, and you are uid ${own}; set TOOLD_SOCKET to a place of your own`;
  } else if (found.mode & 0o022) {
    problem = `has mode ${(found.mode & 0o7777).toString(8)}, so others can put a socket there; use a directory of your own`;
  }
  if (problem) throw new DaemonUnreachable(`nothing was sent to ${socket}: ${dir} ${problem}`);
}

function isNotListening(error) {
  return error.code === "ENOENT" || error.code === "ECONNREFUSED";
}

/** Starts the daemon with `toolctl`, which waits until it answers. */
function startDaemon(socket, toolctl, signal) {
  const failed = (why) => new DaemonUnreachable(`no daemon answers at ${socket}${why}`);
  return new Promise((resolve, reject) => {
    const env = { ...process.env, TOOLD_SOCKET: path.resolve(socket) };
    const child = spawn(toolctl ?? "toolctl", ["info", "--json"], {
      env, stdio: ["ignore", "ignore", "pipe"], timeout: START_TIMEOUT_MS, signal,
    });
    let stderr = "";
    child.stderr.on("data", (data) => (stderr += data));
    child.on("error", (error) => {
      const missing = error.code === "ENOENT";
      reject(failed(missing ? ", and toolctl is not in PATH: install it, or start toold yourself" : `: ${error.message}`));
    });
    child.on("close", (code) => (code === 0 ? resolve() : reject(failed(`: ${stderr.trim() || "toolctl was stopped"}`))));
  });
}

/** One connection: messages out, messages in. */
class Connection {
  #socket;
  #parts = [];

  constructor(socket) {
    this.#socket = socket;
    this.onmessage = () => {};
    this.onlost = () => {};
    socket.on("data", (data) => this.#receive(data));
    socket.on("error", () => {});
    socket.on("close", () => this.onlost());
  }

  /** False as soon as nothing can be sent any more: `onlost` is called later. */
  get isOpen() {
    return !this.#socket.destroyed;
  }

  #receive(data) {
    let start = 0;
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, start)) {
      this.#parts.push(data.subarray(start, end));
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
      this.#parts = [];
      start = end + 1;
      this.onmessage(JSON.parse(line.toString("utf8")));
    }
    if (start < data.length) this.#parts.push(data.subarray(start));
  }

  send(message) {
    if (!this.isOpen) throw new Lost(false);
    this.#socket.write(JSON.stringify(message) + "\n");
  }

  pause() {
    this.#socket.pause();
  }

  resume() {
    this.#socket.resume();
  }

  /** Lets the program end while nothing waits for this connection. */
  keepAlive(isWaiting) {
    // Without a handle, each call would leave a listener on the socket.
    if (!this.isOpen) return;
    if (isWaiting) this.#socket.ref();
    else this.#socket.unref();
  }

  close() {
    this.#socket.destroy();
  }
}

/** The place of the daemon, and the permission to start it. */
class Connector {
  constructor(socket, autostart, toolctl) {
    this.path = socket;
    this.autostart = autostart;
    this.toolctl = toolctl;
  }

  /**
   * Connects; starts the daemon first if no process listens. After a loss another may bring it back first.
   * `signal` ends the attempt with `Lost`, and later the connection.
   */
  async open(afterLoss, signal) {
    try {
      return await this.#retry(afterLoss, signal);
    } catch (error) {
      throw signal.aborted ? new Lost(false) : error;
    }
  }

  async #retry(afterLoss, signal) {
    const patience = this.autostart ? RESTART_WAIT_MS : RESTART_WAIT_NO_AUTOSTART_MS;
    const deadline = Date.now() + (afterLoss ? patience : 0);
    let [delay] = RETRY_DELAY_MS;
    for (;;) {
      try {
        return await this.#open(signal);
      } catch (error) {
        if (error instanceof DaemonUnreachable) throw error;
        if (!isNotListening(error)) throw new DaemonUnreachable(`${this.path}: ${error.message}`);
        if (Date.now() >= deadline) {
          if (!this.autostart) throw new DaemonUnreachable(`no daemon answers at ${this.path}: ${error.message}`);
          break;
        }
      }
      await sleep(delay, undefined, { signal });
      delay = Math.min(delay * 1.5, RETRY_DELAY_MS[1]);
    }
    signal.throwIfAborted();
    await startDaemon(this.path, this.toolctl, signal);
    return this.#open(signal).catch((error) => {
      throw error instanceof DaemonUnreachable ? error : new DaemonUnreachable(`${this.path}: ${error.message}`);
    });
  }

  #open(signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      checkDir(this.path);
      const socket = net.connect(this.path);
      const abort = () => socket.destroy(new Lost(false));
      signal.addEventListener("abort", abort, { once: true });
      socket.once("close", () => signal.removeEventListener("abort", abort));
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }
}

module.exports = { Connection, Connector, Lost, defaultSocket };
