// A daemon of its own for a test: own home, state and socket, and nothing left behind.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");

// The directory of `toold` and `toolctl`.
const BIN = path.resolve(process.env.TOOLD_BIN_DIR || path.join(__dirname, "../../../target/debug"));
// Milliseconds that everything that waits in these tests may take.
const DEADLINE_MS = 60000;

/** Waits for a condition that has no event. */
async function eventually(what, fact) {
  for (const deadline = Date.now() + DEADLINE_MS; !(await fact()); await sleep(5)) {
    if (Date.now() > deadline) throw new Error(`not in ${DEADLINE_MS} ms: ${what}`);
  }
}

class Daemon {
  #child;

  constructor() {
    this.root = fs.mkdtempSync("/tmp/toold-ts-");
    for (const name of ["home", "tmp", "run", "state", "config/toold"]) {
      fs.mkdirSync(path.join(this.root, name), { recursive: true, mode: 0o700 });
    }
    delete process.env.TOOLD_SOCKET;
    delete process.env.TOOLD_STATE_DIR;
    const at = (name) => path.join(this.root, name);
    Object.assign(process.env, {
      PATH: process.env.PATH.startsWith(BIN) ? process.env.PATH : `${BIN}:${process.env.PATH}`,
      HOME: at("home"), TMPDIR: at("tmp"), XDG_RUNTIME_DIR: at("run"), XDG_STATE_HOME: at("state"), XDG_CONFIG_HOME: at("config"),
    });
    this.socket = at("run/toold/toold.sock");
    this.gate = at("tmp/gate");
    this.waitForGate = `while [ ! -e ${this.gate} ]; do sleep 0.01; done`;
  }

  openGate() {
    fs.writeFileSync(this.gate, "");
  }

  async start() {
    const log = fs.openSync(path.join(this.root, "toold.log"), "a");
    this.#child = spawn(path.join(BIN, "toold"), [], { stdio: ["ignore", log, log], detached: true });
    fs.closeSync(log);
    await eventually("the daemon answers", async () => (await this.ask("daemon.info")) !== null);
    return this;
  }

  /** Calls a method without the client under test. Null if no daemon answers. */
  ask(method, params = {}) {
    return new Promise((resolve) => {
      const socket = net.connect(this.socket);
      let text = "";
      socket.on("error", () => resolve(null));
      socket.on("close", () => resolve(null));
      socket.on("data", (data) => {
        text += data;
        if (!text.includes("\n")) return;
        socket.destroy();
        resolve(JSON.parse(text).result ?? null);
      });
      socket.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) + "\n");
    });
  }

  async kill9() {
    const { pid } = await this.ask("daemon.info");
    process.kill(pid, "SIGKILL");
    await eventually("the daemon is gone", () => !isAlive(pid));
    this.#child = undefined;
  }

  async stop() {
    const info = await this.ask("daemon.info");
    await this.ask("daemon.shutdown", { kill: true });
    if (info) await eventually("the daemon is gone", () => !isAlive(info.pid));
    fs.rmSync(this.root, { recursive: true });
  }
}

function isAlive(pid) {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

module.exports = { BIN, DEADLINE_MS, Daemon, eventually };
