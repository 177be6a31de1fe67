// Terminals and tasks with a real daemon: keys, sizes, exit codes, and editors that end before their tasks.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { stub, activate, call, eventually, kill9, memory, Screen, sh } = require("./harness");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "vscode-folder-"));
test.after(() => fs.rmSync(folder, { recursive: true }));

/** Starts an editor whose connection is up. */
async function editorIn(dir, workspaceState) {
  const editor = activate(dir, workspaceState);
  await eventually("the daemon is there", () => editor.rpc.state === "up");
  return editor;
}

/** Runs a task as VS Code does: resolved by the provider, with the definition of tasks.json. */
async function runTask(definition, name = "build") {
  const found = new stub.vscode.Task({ type: "toold", ...definition }, stub.vscode.workspace.workspaceFolders[0], name, "toold");
  const task = stub.state.providers.toold.resolveTask(found);
  assert.equal(task.definition, found.definition);
  return new Screen(await task.execution.callback(task.definition)).open();
}

test("a terminal types into the program, gives it its size, and closing it leaves it running", async () => {
  const editor = await editorIn(folder);
  try {
    const { id } = await sh("stty -echo; while read -r line; do stty size; echo \"line $line\"; done", { name: "loop", pty: true });
    await stub.state.commands["toold.attach"]({ process: { id, name: "loop" } });
    const screen = await new Screen(stub.state.terminals[0].pty).open({ rows: 30, columns: 100 });
    await eventually("it has the size", async () => (await call("screen", { id })).cols === 100);
    for (const key of "grüß\r") screen.pty.handleInput(key);
    await screen.shows("30 100\r\nline grüß\r\n");
    screen.pty.setDimensions({ rows: 10, columns: 40 });
    await eventually("it has the new size", async () => (await call("screen", { id })).rows === 10);
    screen.pty.handleInput("x\r");
    await screen.shows("10 40\r\nline x\r\n");
    screen.pty.close();
    assert.equal((await call("inspect", { id })).status, "running");
    await call("kill", { id });
  } finally {
    editor.deactivate();
  }
});

test("queries of before are not answered again, and later ones are shown", async () => {
  const editor = await editorIn(folder);
  try {
    const { id } = await sh("stty raw -echo; printf 'a\\033[6nb'; head -c 1; printf 'c\\033[6nd'; exec sleep 300", { name: "query", pty: true });
    await call("wait", { id, until: { match: "b" }, timeout_ms: 20000 });
    await editor.actions.attach({ id, name: "query" });
    const screen = await new Screen(stub.state.terminals[0].pty).open();
    await screen.shows("ab");
    screen.pty.handleInput("k");
    await screen.shows("d");
    assert.equal(screen.text, "abkc\x1b[6nd");
    await call("kill", { id });
  } finally {
    editor.deactivate();
  }
});

test("a line is edited here for a program whose input is a pipe", async () => {
  const editor = await editorIn(folder);
  try {
    const { id } = await sh("while read -r line; do echo \"got $line\"; done; echo end", { name: "pipe", stdin: "pipe" });
    await editor.actions.attach({ id, name: "pipe" });
    const screen = await new Screen(stub.state.terminals[0].pty).open();
    screen.pty.handleInput("abx\x7fc\r");
    await screen.shows("got abc\r\n");
    screen.pty.handleInput("\x04");
    await screen.shows("end\r\n");
    await screen.shows("pipe exited 0 after");
    screen.pty.handleInput("q");
    assert.equal(await screen.ends(), 0);
  } finally {
    editor.deactivate();
  }
});

test("a task runs in its folder with the environment of the editor and ends with its true exit code", async () => {
  const editor = await editorIn(folder);
  try {
    const command = "pwd; echo \"$MINE\"; test -t 1 && echo tty; exit 7";
    const screen = await runTask({ command, env: { MINE: "own" } });
    assert.equal(await screen.ends(), 7);
    assert.equal(screen.text, `${folder}\r\nown\r\ntty\r\n`);
    const piped = await runTask({ argv: ["/bin/sh", "-c", "echo out; echo err >&2; kill -9 $$"], pty: false }, "piped");
    assert.equal(await piped.ends(), 137);
    assert.equal(piped.text, "out\r\nerr\r\n");
  } finally {
    editor.deactivate();
  }
});

test("a program that cannot start and a command that is missing have an exit code too", async () => {
  const editor = await editorIn(folder);
  try {
    const screen = await runTask({ argv: [path.join(folder, "missing")] });
    assert.equal(await screen.ends(), -1);
    assert.match(screen.text, /missing/);
    assert.equal(stub.state.providers.toold.resolveTask(new stub.vscode.Task({ type: "toold" }, undefined, "x", "toold")), undefined);
  } finally {
    editor.deactivate();
  }
});

test("a task ends with its program, also if a child of it holds the output", async () => {
  const editor = await editorIn(folder);
  try {
    const screen = await runTask({ argv: ["/bin/sh", "-c", "sleep 300 & echo started; exit 3"], pty: false }, "daemonize");
    assert.equal(await screen.ends(), 3);
    assert.equal(screen.text, "started\r\n");
    await call("kill", { all: true, grace_ms: 100 });
  } finally {
    editor.deactivate();
  }
});

test("a task outlives the editor, and the next editor shows its whole output and its exit code", async () => {
  const dir = fs.mkdtempSync(path.join(folder, "restore-"));
  const gate = path.join(dir, "gate");
  const command = `echo begin; until [ -e ${gate} ]; do sleep 0.05; done; echo finish; exit 5`;
  const kept = memory();
  const first = await editorIn(dir, kept);
  const screen = await runTask({ command });
  await screen.shows("begin\r\n");
  first.deactivate();
  screen.pty.close();

  const second = await editorIn(dir, kept);
  const [task] = await eventually("the task is restored", () => stub.state.executed.length === 1 && stub.state.executed);
  assert.deepEqual([task.name, task.definition], ["build", { type: "toold", command, cwd: dir }]);
  const again = await new Screen(await task.execution.callback(task.definition)).open();
  await again.shows("begin\r\n");
  await kill9();
  fs.writeFileSync(gate, "");
  assert.equal(await again.ends(), 5);
  assert.equal(again.text, "begin\r\nfinish\r\n");
  second.deactivate();

  // Its end was shown: the third editor has nothing to show.
  const third = await editorIn(dir, kept);
  assert.deepEqual(await third.tasks.restore(), []);
  assert.deepEqual((await third.tasks.provideTasks()).map(({ name }) => name), ["build"]);
  third.deactivate();
});

test("a task that ended while no editor ran is shown with its output and exit code", async () => {
  const dir = fs.mkdtempSync(path.join(folder, "unseen-"));
  const gate = path.join(dir, "gate");
  const first = await editorIn(dir);
  const screen = await runTask({ command: `echo begin; until [ -e ${gate} ]; do sleep 0.05; done; exit 9` });
  await screen.shows("begin");
  first.deactivate();
  fs.writeFileSync(gate, "");
  await call("wait", { id: screen.pty.process.id, timeout_ms: 20000 });
  const second = await editorIn(dir);
  const [task] = await eventually("the task is restored", () => stub.state.executed.length === 1 && stub.state.executed);
  const again = await new Screen(await task.execution.callback(task.definition)).open();
  assert.equal(await again.ends(), 9);
  assert.equal(again.text, "begin\r\n");
  second.deactivate();
});

test("running a task that runs attaches to it, and closing its terminal offers to kill it", async () => {
  const editor = await editorIn(folder);
  try {
    const first = await runTask({ command: "echo once; exec sleep 300" }, "serve");
    await first.shows("once\r\n");
    first.pty.close();
    const { id } = first.pty.process;
    const expected = { level: "info", message: "serve keeps running in toold" };
    await eventually("a notice is shown", () => stub.shown.values.length === 1);
    assert.deepEqual(stub.shown.values, [expected]);
    const second = await runTask({ command: "echo once; exec sleep 300" }, "serve");
    await second.shows("once\r\n");
    assert.equal(second.pty.process.id, id);
    stub.answers.message = async () => "Kill";
    second.pty.close();
    await eventually("it was killed", async () => (await call("inspect", { id })).status === "exited");
  } finally {
    editor.deactivate();
  }
});
