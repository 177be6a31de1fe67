// What the tests share: a daemon for the file, a run of the extension, a terminal that collects what is shown, a client.
"use strict";

const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { stub } = require("./stub");
const { socketPath } = require("../src/socket");
const extension = require("../src/extension");

/** The time limit of everything that waits. */
const DEADLINE_MS = 30000;
/** The interval of checks for a fact without an event. */
const POLL_MS = 10;

/** The directories of the daemon of this file. The extension starts it; `toolctl` is in PATH. */
const root = fs.mkdtempSync(path.join(os.tmpdir(), "vscode-"));
const PLACES = { HOME: "home", XDG_RUNTIME_DIR: "run", XDG_STATE_HOME: "state", XDG_CONFIG_HOME: "config" };
for (const [variable, dir] of Object.entries(PLACES)) {
  process.env[variable] = path.join(root, dir);
  fs.mkdirSync(process.env[variable], { mode: 0o700 });
}
for (const name of Object.keys(process.env)) if (name.startsWith("TOOLD_")) delete process.env[name];

test.after(async () => {
  const { pid } = await call("daemon.info", {});
  await call("daemon.shutdown", { kill: true });
  await eventually("the daemon is gone", () => !fs.existsSync(`/proc/${pid}`));
  fs.rmSync(root, { recursive: true });
});

/** Returns the first value of `fact` that is true. */
async function eventually(what, fact) {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await fact();
    if (value) return value;
    if (Date.now() > until) throw new Error(`it never came true that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Makes one call on a connection of its own, as another client does. */
function call(method, params) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(socketPath(undefined, process.env, process.getuid()));
    let text = "";
    socket.setEncoding("utf8").on("error", reject);
    socket.on("data", (chunk) => {
      text += chunk;
      if (!text.includes("\n")) return;
      socket.destroy();
      const { result, error } = JSON.parse(text);
      if (error) reject(new Error(error.message));
      else resolve(result);
    });
    socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
  });
}

/** Starts shell text and returns its process. */
function sh(script, more) {
  return call("exec", { argv: ["/bin/sh", "-c", script], ...more });
}

/** Starts shell text, and returns its process when it has printed `text`, and the views of the editor show that. */
async function shPrinting(editor, text, script, more) {
  const process = await sh(script, more);
  await call("wait", { id: process.id, until: { match: text }, timeout_ms: DEADLINE_MS });
  // Output alone causes no read of the list.
  await editor.model.refresh();
  return process;
}

/** Kills the daemon with signal 9, and returns when it is gone. */
async function kill9() {
  const { pid } = await call("daemon.info", {});
  process.kill(pid, "SIGKILL");
  await eventually("the daemon is gone", () => call("daemon.info", {}).then(() => false, () => true));
  return pid;
}

/** A terminal of the editor: the size, the text that was written to it, the exit code. */
class Screen {
  constructor(pty) {
    this.pty = pty;
    this.text = "";
    this.code = undefined;
    pty.onDidWrite((data) => (this.text += data));
    pty.onDidClose((code) => (this.code = code));
  }
  async open(dimensions = { rows: 24, columns: 80 }) {
    await this.pty.open(dimensions);
    return this;
  }
  shows(text) {
    return eventually(`the terminal shows ${JSON.stringify(text)}; it has ${JSON.stringify(this.text)}`, () => this.text.includes(text));
  }
  async ends() {
    await eventually("the terminal ends", () => this.code !== undefined);
    return this.code;
  }
}

/** A memory of the workspace, which a second run of the editor gets too. */
function memory() {
  const values = new Map();
  return { get: (key, fallback) => values.get(key) ?? fallback, update: async (key, value) => void values.set(key, value) };
}

/** Runs the extension in a folder, as an editor does. */
function activate(folder, workspaceState = memory()) {
  stub.vscode.workspace.workspaceFolders = [{ uri: stub.vscode.Uri.file(folder), name: path.basename(folder), index: 0 }];
  stub.shown.values = [];
  Object.assign(stub.answers, { message: async () => undefined, input: async () => undefined, pick: async () => undefined });
  Object.assign(stub.state, { terminals: [], executed: [] });
  const context = { subscriptions: [], workspaceState };
  return { ...extension.activate(context), deactivate: extension.deactivate, workspaceState };
}

/** Returns the rows of a view: sessions, and below them names with their descriptions. */
function rows(part) {
  const { provider } = stub.state.views[`toold.${part}`];
  const lines = [];
  for (const group of provider.getChildren()) {
    const item = provider.getTreeItem(group);
    lines.push(`${item.label} ${item.description}`);
    for (const node of provider.getChildren(group)) {
      const child = provider.getTreeItem(node);
      lines.push(`  ${child.label}: ${child.description} [${child.contextValue}]`);
    }
  }
  return lines;
}

/** Waits until a view has exactly these rows. */
async function sees(part, expected) {
  let found;
  const isSame = () => JSON.stringify((found = rows(part))) === JSON.stringify(expected);
  await eventually(`${part} shows ${JSON.stringify(expected)}`, isSame).catch((error) => {
    throw new Error(`${error.message}; it shows ${JSON.stringify(found)}`);
  });
}

/** Returns the node of a process, as a menu of the view gives it to a command. */
function node(name) {
  for (const part of ["running", "ended"]) {
    const { provider } = stub.state.views[`toold.${part}`];
    for (const group of provider.getChildren()) {
      const found = provider.getChildren(group).find((child) => child.process.name === name);
      if (found) return found;
    }
  }
  throw new Error(`${name} is in no view`);
}

module.exports = { stub, eventually, call, sh, shPrinting, kill9, Screen, memory, activate, rows, sees, node };
