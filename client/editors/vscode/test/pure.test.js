// Tests without a daemon: texts, facts, parameters, the socket.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
require("./stub");
const { environment, execParams } = require("../src/exec");
const { factAfter, withFact } = require("../src/fact");
const { Follower } = require("../src/follow");
const { bySession } = require("../src/model");
const { distrust, lineDecoder, socketPath } = require("../src/socket");
const { definitionOf, taskKey } = require("../src/tasks");
const text = require("../src/text");

const running = { id: "proc_1", name: "web", status: "running", needs_input: null };
const asking = { ...running, name: "vault", needs_input: { since: "", prompt: "Pass: ", echo: false } };

test("the status bar counts what runs and what asks", () => {
  const exited = { status: "exited", exit_code: 0 };
  assert.equal(text.statusText([running, asking, exited], true), "$(server-process) 2 · 1 asks");
  assert.equal(text.statusText([running, exited], true), "$(server-process) 1");
  assert.equal(text.statusText([], true), "$(server-process) 0");
  assert.equal(text.statusText([running], false), "$(server-process) away");
});

test("states are named as toolctl names them", () => {
  const states = [
    running,
    asking,
    { ...running, stopped: true },
    { status: "exited", exit_code: 4, reason: "exited" },
    { status: "exited", exit_code: 137, signal: "SIGKILL", reason: "killed" },
    { status: "exited", exit_code: 139, signal: "SIGSEGV", reason: "signaled" },
    { status: "exited", exit_code: null, reason: "failed_start" },
    { status: "lost", reason: "lost" },
  ];
  const expected = ["running", "asks", "stopped", "exited 4", "SIGKILL killed", "SIGSEGV", "failed start", "lost"];
  assert.deepEqual(states.map(text.stateOf), expected);
  assert.deepEqual([0, 450, 12000, 200000, 7300000, 3e8].map(text.duration), ["0.0s", "0.4s", "12s", "3m", "2h", "3d"]);
});

test("a row shows the question, else the ports and the last line, without control characters", () => {
  assert.equal(text.description(asking), "asks · Pass:");
  assert.equal(text.description({ ...running, ports: [8080], preview: "a\n\x1b[31mb\x1b[0m\n\n" }), "running :8080 · b");
});

test("queries in old output are removed, and nothing else", () => {
  const queries = "\x1b[6n\x1b[?6n\x1b[c\x1b[>0c\x1b[?2026$p\x1b]11;?\x07\x1b]4;1;?\x1b\\\x1bP$qm\x1b\\\x1b[>q\x1b[14t\x1b[18;2t\x1b[?u";
  const kept = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x1b[1;1H\x1b[?25l\x1b[5 q\x1b[22;0t";
  assert.equal(text.withoutQueries(`a${queries}${kept}`), `a${kept}`);
});

test("a page shows a line that was drawn over itself as it stood last", () => {
  assert.equal(text.asPage("one\r\n10%\r50%\r100%\nend\r\r\nlast"), "one\n100%\nend\nlast");
});

test("an event counts more than an older answer", () => {
  const exited = { type: "exited", at: "T", exit_code: 7, reason: "exited", duration_ms: 5 };
  const fact = factAfter(factAfter(undefined, { type: "started" }, 0), exited, 0);
  const expected = { ...running, status: "exited", exit_code: 7, signal: null, reason: "exited", exited_at: "T", uptime_ms: 5 };
  assert.deepEqual(withFact(running, fact, 0), expected);
  assert.deepEqual(withFact({ ...running, status: "lost" }, fact, 0), { ...running, status: "lost" });
});

test("a closed event counts more than an older answer", () => {
  const fact = factAfter(undefined, { type: "closed" }, 0);
  assert.deepEqual(withFact({ ...running, closed: false }, fact, 0), { ...running, closed: true });
});

/** A daemon of one process: its log is text, and pushes and answers come when the test wants. */
function fakeDaemon(log) {
  const daemon = { log, polls: [], ended: false };
  daemon.rpc = {
    subscribe: (_params, onEvent, { onReady }) => Object.assign(daemon, { push: onEvent, reconnect: onReady }),
    unsubscribe: () => (daemon.ended = true),
    call: (_method, { cursor }) => new Promise((resolve) => daemon.polls.push({ cursor, resolve })),
  };
  daemon.answer = async (more) => {
    const { cursor, resolve } = daemon.polls.shift();
    const end = daemon.log.length;
    resolve({ from: cursor, output: daemon.log.slice(cursor), next_cursor: end, cursor: end, status: "running", closed: false, ...more });
    await new Promise(setImmediate);
  };
  daemon.write = (data) => {
    daemon.push({ type: "output", cursor: daemon.log.length, next_cursor: daemon.log.length + data.length, data });
    daemon.log += data;
  };
  return daemon;
}

test("output is delivered once and in order, if pushes overlap with answers or are missing", async () => {
  const daemon = fakeDaemon("abc");
  let shown = "";
  const ends = [];
  const handlers = { onOutput: (data) => (shown += data), onExit: ({ exit_code: code }) => ends.push(code), onClose: () => ends.push("closed") };
  new Follower(daemon.rpc, "proc_1", handlers);
  daemon.reconnect();
  daemon.write("def");
  await daemon.answer();
  // The push came while the answer was read: the answer has its bytes, and one more look finds nothing.
  await daemon.answer();
  assert.deepEqual([shown, daemon.polls.length], ["abcdef", 0]);
  daemon.write("ghi");
  assert.equal(shown, "abcdefghi");
  daemon.push({ type: "output", cursor: 0, next_cursor: 3, data: "abc" });
  assert.deepEqual([shown, daemon.polls.length], ["abcdefghi", 0]);
  daemon.log += "lost";
  daemon.write("jkl");
  assert.equal(shown, "abcdefghi");
  await daemon.answer();
  assert.equal(shown, "abcdefghilostjkl");
  daemon.push({ type: "exited", exit_code: 6 });
  daemon.write("mno");
  assert.equal(shown, "abcdefghilostjkl");
  await daemon.answer();
  await daemon.answer();
  assert.equal(shown, "abcdefghilostjklmno");
  daemon.push({ type: "closed" });
  await daemon.answer();
  assert.deepEqual([ends, daemon.ended], [[6, "closed"], true]);
});

test("a question of an event counts until the daemon must have shown it", () => {
  const fact = factAfter(undefined, { type: "needs_input", at: "T", prompt: "Go? ", echo: true }, 1000);
  assert.deepEqual(withFact(running, fact, 1100).needs_input, { since: "T", prompt: "Go? ", echo: true });
  assert.equal(withFact(running, fact, 1300).needs_input, null);
});

test("processes are grouped by session, the newest first", () => {
  const processes = [
    { id: "4", session_key: "a", status: "running" },
    { id: "3", session_key: null, status: "running" },
    { id: "2", session_key: "a", status: "exited" },
    { id: "1", session_key: "a", status: "pending" },
  ];
  const ids = (part) => bySession(processes, part).map(({ session, processes: all }) => [session, all.map(({ id }) => id)]);
  assert.deepEqual(ids("running"), [["a", ["4", "1"]], [null, ["3"]]]);
  assert.deepEqual(ids("ended"), [["a", ["2"]]]);
});

test("a command gets the editor's environment without the variables of VS Code", () => {
  const env = { PATH: "/bin", VSCODE_PID: "1", ELECTRON_RUN_AS_NODE: "1" };
  assert.deepEqual(environment(env, { A: "1" }, false), { PATH: "/bin", A: "1" });
  const around = { cwd: "/w", env, shell: "/bin/bash", session: "vscode", size: { rows: 9, cols: 8 }, labels: { a: "b" } };
  const { request_id: key, ...params } = execParams({ command: "make", name: "build" }, around);
  assert.match(key, /^vscode-[0-9a-f-]{36}$/);
  assert.deepEqual(params, {
    command: "make",
    login: false,
    shell: "/bin/bash",
    cwd: "/w",
    env: { PATH: "/bin", TERM: "xterm-256color", COLORTERM: "truecolor" },
    env_mode: "replace",
    name: "build",
    pty: { rows: 9, cols: 8 },
    session_key: "vscode",
    labels: { client: "vscode", a: "b" },
  });
  const { request_id: _key, ...piped } = execParams({ argv: ["ls"], pty: false }, { ...around, shell: "pwsh" });
  const expected = { argv: ["ls"], cwd: "/w", env: { PATH: "/bin" }, env_mode: "replace", stdin: "pipe", merge: true };
  assert.deepEqual(piped, { ...expected, session_key: "vscode", labels: { client: "vscode", a: "b" } });
});

test("a process has the definition of its task again, and the same key", () => {
  const shell = { argv: ["/bin/sh", "-c", "make"], command: "make", cwd: "/w", pty: true, name: null };
  assert.deepEqual(definitionOf(shell), { type: "toold", command: "make", cwd: "/w" });
  const plain = { argv: ["ls", "-l"], command: "ls -l", cwd: "/w", pty: false, name: "n" };
  assert.deepEqual(definitionOf(plain), { type: "toold", argv: ["ls", "-l"], cwd: "/w", pty: false, name: "n" });
  assert.equal(taskKey("b", definitionOf(shell), "/w"), taskKey("b", { command: "make", pty: true }, "/w"));
  assert.notEqual(taskKey("b", { command: "make" }, "/w"), taskKey("b", { command: "make" }, "/x"));
});

test("messages are split by lines, wherever the chunks end", () => {
  const decode = lineDecoder();
  assert.deepEqual(["{\"a\":", "1}\n\n{\"b\":\"ü\"}\n[", "2]\n"].map(decode), [[], [{ a: 1 }, { b: "ü" }], [[2]]]);
});

test("the socket is where toolctl looks for it", () => {
  assert.equal(socketPath("/s", { TOOLD_SOCKET: "/t" }, 1), "/s");
  assert.equal(socketPath("", { TOOLD_SOCKET: "/t", XDG_RUNTIME_DIR: "/r" }, 1), "/t");
  assert.equal(socketPath("", { XDG_RUNTIME_DIR: "/r" }, 1), "/r/toold/toold.sock");
  assert.equal(socketPath("", { TMPDIR: "/x" }, 7), "/x/toold-7/toold.sock");
});

test("a directory that others can write to is not trusted", () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "toold-vscode-"));
  const socket = path.join(dir, "toold.sock");
  try {
    fs.chmodSync(dir, 0o700);
    assert.equal(distrust(socket, process.getuid()), null);
    fs.chmodSync(dir, 0o770);
    assert.match(distrust(socket, process.getuid()), /can be written by others; set TOOLD_SOCKET/);
  } finally {
    fs.rmdirSync(dir);
  }
});

test("the manifest contributes what the extension registers", () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(__dirname, "../package.json"), "utf8"));
  const source = fs.readFileSync(path.join(__dirname, "../src/extension.js"), "utf8");
  const registered = [...source.matchAll(/\badd(?:Plain)?\("(\w+)"/g)].map(([, name]) => `toold.${name}`);
  const contributed = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual(contributed.sort(), registered.sort());
  assert.deepEqual([manifest.extensionKind, manifest.activationEvents, manifest.dependencies], [["workspace"], ["onStartupFinished"], undefined]);
});
