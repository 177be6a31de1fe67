// The socket of the daemon: connects, starts the daemon with `toolctl info` once, and connects again after a loss.
// Knows nothing of calls and subscriptions: `rpc.js` gives the handlers.
"use strict";

const { execFile } = require("node:child_process");
const net = require("node:net");
const { distrust, lineDecoder } = require("./socket");

/** The first and the longest time between two attempts to connect. */
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5000;
/** The time that systemd or an upgrade may take to bring a lost daemon back before we start it. */
const RESTART_WAIT_MS = 1000;
/** The time that `toolctl info` may take. */
const AUTOSTART_TIMEOUT_MS = 20000;

/**
 * @typedef {"idle" | "connecting" | "up" | "away"} State
 * @typedef {{ socket: string, toolctl: string, autostart: boolean }} Place
 * @typedef {"loss" | "failure"} ReportKind
 * @typedef {object} Handlers
 * @property {() => void} onUp
 * @property {(message: any) => void} onMessage
 * @property {() => void} onLost The connection ended; what was not answered may have happened.
 * @property {(kind: string, message: string) => void} onUnreachable No daemon, and none could be started.
 * @property {(state: State) => void} onState
 * @property {(kind: ReportKind, message: string) => void} report Shows a message to the user.
 */

class Connection {
  /**
   * @param {() => Place} place The settings of now.
   * @param {Handlers} handlers
   */
  constructor(place, handlers) {
    this.place = place;
    this.handlers = handlers;
    /** @type {State} */
    this.state = "idle";
    /** @type {net.Socket | null} */
    this.socket = null;
    /** @type {NodeJS.Timeout | null} */
    this.retryTimer = null;
    this.retryMs = FIRST_RETRY_MS;
    this.isAutostartSpent = false;
    this.isStarting = false;
    /** @type {number | null} */
    this.lostAt = null;
    this.isLossReported = false;
    this.isClosed = false;
    /** @type {string | null} The failure that was reported last. */
    this.reported = null;
  }

  /** Connects now, if there is no connection. A user who wants something may start the daemon once more. */
  connectForUser() {
    if (this.state === "up" || this.isStarting || this.isClosed) return;
    this.isAutostartSpent = false;
    this.connect();
  }

  connect() {
    if (this.state === "up" || this.socket || this.isStarting || this.isClosed) return;
    this.stopTimer();
    const { socket: path } = this.place();
    const why = distrust(path, process.getuid?.() ?? 0);
    if (why) {
      this.fail("untrusted", why);
      return;
    }
    if (this.state === "idle") this.setState("connecting");
    const socket = net.connect({ path });
    this.socket = socket;
    socket.setEncoding("utf8");
    const decode = lineDecoder();
    let isUp = false;
    socket.on("connect", () => {
      isUp = true;
      this.onConnected();
    });
    socket.on("data", (chunk) => this.onChunk(socket, decode, String(chunk)));
    /** @type {Error | null} */
    let failure = null;
    socket.on("error", (error) => (failure = error));
    socket.on("close", () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (isUp) this.onLost();
      else this.onRefused(failure?.message ?? "the connection was closed");
    });
  }

  /** @param {any} message */
  send(message) {
    if (this.state === "up" && this.socket) this.socket.write(JSON.stringify(message) + "\n");
  }

  /** Ends the connection for good. Processes go on. */
  close() {
    this.isClosed = true;
    this.stopTimer();
    const socket = this.socket;
    this.socket = null;
    socket?.destroy();
    this.state = "idle";
  }

  /** @param {State} state */
  setState(state) {
    if (this.state === state) return;
    this.state = state;
    this.handlers.onState(state);
  }

  stopTimer() {
    if (this.retryTimer) clearTimeout(this.retryTimer);
    this.retryTimer = null;
  }

  connectLater() {
    if (this.isClosed) return;
    this.stopTimer();
    this.retryTimer = setTimeout(() => {
      this.retryTimer = null;
      this.connect();
    }, this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, MAX_RETRY_MS);
  }

  onConnected() {
    this.retryMs = FIRST_RETRY_MS;
    this.isAutostartSpent = false;
    this.reported = null;
    this.lostAt = null;
    this.setState("up");
    this.handlers.onUp();
  }

  /**
   * @param {net.Socket} socket
   * @param {(chunk: string) => any[]} decode
   * @param {string} chunk
   */
  onChunk(socket, decode, chunk) {
    if (this.socket !== socket) return;
    let messages;
    try {
      messages = decode(chunk);
    } catch (error) {
      this.handlers.report("failure", `the daemon sent what is not JSON: ${error}`);
      socket.destroy();
      return;
    }
    for (const message of messages) {
      // A daemon that answers works: its next loss is another one.
      this.isLossReported = false;
      this.handlers.onMessage(message);
    }
  }

  onLost() {
    this.lostAt = Date.now();
    this.retryMs = FIRST_RETRY_MS;
    this.setState("away");
    if (!this.isLossReported) {
      this.isLossReported = true;
      this.handlers.report("loss", "the daemon is away; processes go on, reconnecting");
    }
    this.handlers.onLost();
    this.connectLater();
  }

  /** @param {string} why */
  onRefused(why) {
    if (this.isClosed) return;
    const { socket, autostart } = this.place();
    if (this.lostAt !== null && Date.now() - this.lostAt < RESTART_WAIT_MS) {
      this.connectLater();
    } else if (autostart && !this.isAutostartSpent) {
      this.start();
    } else {
      this.fail("unreachable", `no daemon at ${socket}: ${why}`);
    }
  }

  /** Starts the daemon, by the program that does it for everyone. */
  start() {
    this.isAutostartSpent = true;
    this.isStarting = true;
    const { toolctl, socket } = this.place();
    const env = { ...process.env, TOOLD_SOCKET: socket };
    execFile(toolctl, ["info"], { env, timeout: AUTOSTART_TIMEOUT_MS }, (error, _stdout, stderr) => {
      this.isStarting = false;
      if (this.isClosed) return;
      if (!error) {
        this.connect();
        return;
      }
      const isMissing = /** @type {any} */ (error).code === "ENOENT";
      const why = isMissing ? "the program is not installed; set toold.toolctl to its path" : stderr.trim() || error.message;
      this.fail("unreachable", `\`${toolctl} info\` did not start the daemon: ${why}`);
    });
  }

  /**
   * @param {string} kind
   * @param {string} message
   */
  fail(kind, message) {
    this.setState("away");
    this.handlers.onUnreachable(kind, message);
    // The retries fail for the same reason in other texts: one message is enough until a daemon is there.
    if (this.reported === null) {
      this.reported = message;
      this.handlers.report("failure", message);
    }
    this.connectLater();
  }
}

module.exports = { Connection };
