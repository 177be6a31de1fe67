// Views, the status bar, questions, logs and the commands of the menus, with a real daemon.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { stub, activate, call, eventually, node, sees, sh, shPrinting } = require("./harness");

const ASK = "stty -echo; printf 'Passphrase: '; read -r a; stty echo; echo; echo \"got ${#a}\"";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "vscode-folder-"));
test.after(() => fs.rmSync(folder, { recursive: true }));

/** Runs a test in an editor, and leaves no process behind. */
function inEditor(name, run) {
  test(name, async () => {
    const editor = activate(folder);
    try {
      await eventually("the daemon is there", () => editor.rpc.state === "up");
      await run(editor);
    } finally {
      editor.deactivate();
      await call("kill", { all: true, grace_ms: 100 });
      const { processes } = await call("list", {});
      await call("forget", { ids: processes.map(({ id }) => id) });
    }
  });
}

inEditor("running and ended processes are shown by session, live", async (editor) => {
  await shPrinting(editor, "ready", "echo ready; exec sleep 300", { name: "web", session_key: "claude:1" });
  await sees("running", ["claude:1 1", "  web: running · ready [process running]"]);
  await sh("exit 2", { name: "lint", session_key: "codex:2" });
  await sees("ended", ["codex:2 1", "  lint: exited 2 [process ended]"]);
  await sh("read -r line", { name: "reader", stdin: "pipe" });
  await sees("running", ["no session 1", "  reader: asks [process running input asks]", "claude:1 1", "  web: running · ready [process running]"]);
  assert.equal(stub.state.statusBar.text, "$(server-process) 2 · 1 asks");
  assert.deepEqual(stub.state.views["toold.running"].badge, { value: 1, tooltip: "1 asks" });
});

inEditor("a question is answered in a box that hides what is typed, and the view follows", async () => {
  stub.answers.message = async (_message, ...choices) => choices.find((choice) => choice === "Answer");
  stub.answers.input = async () => "open sesame";
  const { id } = await sh(`${ASK}; exec sleep 300`, { name: "vault", pty: true });
  await sees("running", ["no session 1", "  vault: running · got 11 [process running pty input]"]);
  assert.equal(stub.state.statusBar.text, "$(server-process) 1");
  const box = { level: "input", title: "vault", prompt: "Passphrase:", password: true, ignoreFocusOut: true };
  assert.deepEqual(stub.shown.values, [{ level: "info", message: "vault asks: Passphrase:" }, box]);
  assert.equal(JSON.stringify(await call("events.next", { consumer: "t", limit: 1000 })).includes("sesame"), false);
  assert.equal((await call("inspect", { id })).needs_input, null);
});

inEditor("a question with echo is shown as it is typed, and the notice can be turned off", async () => {
  stub.settings.questions = "off";
  stub.answers.input = async () => "y";
  try {
    await sh("printf 'Overwrite? '; read -r a; echo \"said $a\"; exec sleep 300", { name: "setup", pty: true });
    await sees("running", ["no session 1", "  setup: asks · Overwrite? [process running pty input asks]"]);
    assert.deepEqual(stub.shown.values, []);
    await stub.state.commands[stub.state.statusBar.command]();
    await sees("running", ["no session 1", "  setup: running · said y [process running pty input]"]);
    const box = { level: "input", title: "setup", prompt: "Overwrite?", password: false, ignoreFocusOut: true };
    assert.deepEqual(stub.shown.values, [box]);
  } finally {
    delete stub.settings.questions;
  }
});

inEditor("a box that the user leaves answers nothing", async () => {
  stub.settings.questions = "input";
  try {
    await sh(ASK, { name: "vault", pty: true });
    await eventually("the box was shown", () => stub.shown.values.length === 1);
    await sees("running", ["no session 1", "  vault: asks · Passphrase: [process running pty input asks]"]);
    assert.equal(stub.shown.values[0].password, true);
  } finally {
    delete stub.settings.questions;
  }
});

inEditor("a notice that is answered too late types nothing", async () => {
  let choose;
  stub.answers.message = (_message, ...choices) => new Promise((resolve) => (choose = () => resolve(choices[0])));
  const { id } = await sh("printf 'Go? '; read -r a; exec sleep 300", { name: "setup", pty: true });
  await eventually("the notice is shown", () => choose);
  await call("submit", { id, data: "y" });
  await eventually("it does not ask", async () => (await call("inspect", { id })).needs_input === null);
  await sees("running", ["no session 1", "  setup: running · Go? y [process running pty input]"]);
  choose();
  await eventually("the user is informed", () => stub.shown.values.length === 2);
  assert.deepEqual(stub.shown.values.map(({ message }) => message), ["setup asks: Go?", "toold: setup does not ask any more"]);
});

inEditor("kill asks first, and kills the whole tree", async (editor) => {
  await shPrinting(editor, "up", "sleep 300 & echo up; exec sleep 300", { name: "web" });
  await sees("running", ["no session 1", "  web: running · up [process running]"]);
  await stub.state.commands["toold.kill"](node("web"));
  assert.deepEqual(stub.shown.values, [{ level: "warning", message: "Kill web (2 processes)?" }]);
  await sees("running", ["no session 1", "  web: running · up [process running]"]);
  stub.answers.message = async () => "Kill";
  await stub.state.commands["toold.kill"](node("web"));
  await sees("ended", ["no session 1", "  web: SIGTERM killed · up [process ended]"]);
});

inEditor("an id is copied, and a process is run again", async () => {
  const { id } = await sh("echo \"$MARK\"", { name: "mark" });
  await sees("ended", ["no session 1", "  mark: exited 0 [process ended]"]);
  await stub.state.commands["toold.copyId"](node("mark"));
  assert.equal(stub.state.clipboard, id);
  process.env.MARK = "from the editor";
  await stub.state.commands["toold.rerun"](node("mark"));
  delete process.env.MARK;
  const expected = ["no session 2", "  mark: exited 0 · from the editor [process ended]", "  mark: exited 0 [process ended]"];
  await sees("ended", expected);
});

inEditor("a log is a document that grows with the output, without escape sequences", async () => {
  const gate = path.join(folder, "log-gate");
  const script = `printf '\\033[31mred\\033[0m\\n10%%\\r90%%\\r\\n'; until [ -e ${gate} ]; do sleep 0.05; done; echo done`;
  const process = await sh(script, { name: "a b", pty: true });
  const logs = stub.state.documents.toold;
  const uri = stub.vscode.Uri.from({ scheme: "toold", path: "/a_b.log", query: process.id });
  const text = () => logs.provideTextDocumentContent(uri);
  await eventually("the output is there", async () => (await text()) === "red\n90%\n");
  const changed = new Promise((resolve) => logs.onDidChange(resolve));
  fs.writeFileSync(gate, "");
  assert.equal((await changed).toString(), uri.toString());
  await eventually("the document has all", async () => (await text()) === "red\n90%\ndone\n");
  stub.closedDocuments.fire({ uri });
  assert.equal(logs.pages.size, 0);
});

inEditor("a search finds lines in the logs of all processes", async () => {
  for (const name of ["one", "two"]) await sh(`echo 'error in ${name}'; echo fine`, { name });
  const closed = async () => (await call("list", { status: "exited" })).processes.filter((process) => process.closed);
  await eventually("both have ended", async () => (await closed()).length === 2);
  const uri = stub.vscode.Uri.from({ scheme: "toold", path: "/search.log", query: "grep=error%20in" });
  const text = await stub.state.documents.toold.provideTextDocumentContent(uri);
  assert.equal(text, "2 lines match error in in 2 logs\n\ntwo:1: error in two\none:1: error in one\n");
});

inEditor("the tooltip has the command and the ports", async (editor) => {
  const script = "const s = require('net').createServer().listen(0, '127.0.0.1', () => console.log('port ' + s.address().port))";
  const { id } = await call("exec", { argv: [process.execPath, "-e", script], name: "web", session_key: "s" });
  await call("wait", { id, until: { match: "port" }, timeout_ms: 20000 });
  const port = (await call("poll", { id })).output.trim().split(" ")[1];
  await editor.model.refresh();
  await sees("running", ["s 1", `  web: running :${port} · port ${port} [process running]`]);
  const { provider } = stub.state.views["toold.running"];
  const found = node("web");
  const item = await provider.resolveTreeItem(provider.getTreeItem(found), found);
  assert.match(item.tooltip.value, new RegExp(`listens on 127.0.0.1:${port}`));
});

inEditor("the agents of VS Code are offered toolctl mcp", () => {
  const { id, provider } = stub.state.mcp;
  const [server] = provider.provideMcpServerDefinitions();
  assert.deepEqual([id, server.label, server.command, server.args], ["toold", "toold", "toolctl", ["mcp"]]);
});
