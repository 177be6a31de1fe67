// The connection with a real daemon: the first start, kill -9, resume by number, failures.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { stub, activate, call, eventually, kill9, sees, shPrinting, Screen } = require("./harness");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "vscode-folder-"));
test.after(() => fs.rmSync(folder, { recursive: true }));

test("the extension starts a daemon that is not there, once, and without a message", async () => {
  const editor = activate(folder);
  try {
    await eventually("the daemon is there", () => editor.rpc.state === "up");
    await eventually("the list was read", () => stub.state.statusBar.text === "$(server-process) 0");
    assert.deepEqual(stub.shown.values, []);
  } finally {
    editor.deactivate();
  }
});

test("after kill -9 the extension reconnects, reports it once, and has every event and byte once", async () => {
  const editor = activate(folder);
  const seen = [];
  editor.model.eventListeners.add(({ seq, type }) => seen.push([seq, type]));
  try {
    const gate = path.join(folder, "gate");
    const script = `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "line $i"; done; until [ -e ${gate} ]; do sleep 0.05; done; echo last; exit 6`;
    const { id } = await shPrinting(editor, "line 300", script, { name: "counter", session_key: "a", pty: true });
    await sees("running", ["a 1", "  counter: running · line 300 [process running pty input]"]);
    await editor.actions.attach({ id, name: "counter" });
    const screen = await new Screen(stub.state.terminals[0].pty).open();
    await screen.shows("line 300\r\n");
    await kill9();
    // It ends while no daemon runs.
    fs.writeFileSync(gate, "");
    await screen.shows("counter exited 6 after");
    await sees("ended", ["a 1", "  counter: exited 6 · last [process ended pty]"]);
    const lines = Array.from({ length: 300 }, (_, i) => `line ${i + 1}\r\n`).join("");
    assert.equal(screen.text.split("\r\n\x1b[0;2m[counter")[0], `${lines}last\r\n`);
    assert.deepEqual(stub.shown.values, [{ level: "warning", message: "toold: the daemon is away; processes go on, reconnecting" }]);
    await eventually("all events came", () => seen.some(([, type]) => type === "closed"));
    const { events } = await call("events.next", { consumer: "test", wait_ms: 0, limit: 100 });
    const first = seen[0][0];
    assert.deepEqual(seen, events.filter(({ seq }) => seq >= first).map(({ seq, type }) => [seq, type]));
  } finally {
    editor.deactivate();
  }
});

test("a call that was lost with the daemon is sent again by its key, and starts one process", async () => {
  const editor = activate(folder);
  try {
    await eventually("the daemon is there", () => editor.rpc.state === "up");
    await kill9();
    const params = { argv: ["/bin/sh", "-c", "exit 3"], name: "once", request_id: "vscode-once", yield_ms: 10000 };
    const process = await editor.rpc.call("exec", params);
    assert.equal(process.exit_code, 3);
    const again = await editor.rpc.call("exec", params);
    assert.equal(again.id, process.id);
    assert.equal((await call("list", { name: "once" })).processes.length, 1);
  } finally {
    editor.deactivate();
  }
});

test("a program that does not start the daemon is reported once, and calls fail with its reason", async () => {
  stub.settings.socket = path.join(folder, "none/toold.sock");
  stub.settings.toolctl = path.join(folder, "toolctl");
  const count = path.join(folder, "count");
  fs.writeFileSync(stub.settings.toolctl, `#!/bin/sh\necho "$*" >> ${count}\necho 'no disk' >&2\nexit 4\n`, { mode: 0o755 });
  const editor = activate(folder);
  const expected = `\`${stub.settings.toolctl} info\` did not start the daemon: no disk`;
  try {
    await eventually("the failure is shown", () => stub.shown.values.length > 0);
    // The next attempts of the extension itself start nothing.
    await eventually("it tried again", () => editor.rpc.connection.retryMs > 400);
    assert.deepEqual(stub.shown.values, [{ level: "error", message: `toold: ${expected}` }]);
    assert.equal(fs.readFileSync(count, "utf8"), "info\n");
    assert.equal(stub.state.statusBar.text, "$(server-process) away");
    await assert.rejects(editor.rpc.call("list", {}), { kind: "unreachable", message: expected });
    assert.equal(fs.readFileSync(count, "utf8"), "info\ninfo\n");
  } finally {
    editor.deactivate();
    delete stub.settings.socket;
    delete stub.settings.toolctl;
  }
});

test("with autostart off no program is run", async () => {
  Object.assign(stub.settings, { socket: path.join(folder, "none/toold.sock"), toolctl: path.join(folder, "toolctl"), autostart: false });
  fs.rmSync(path.join(folder, "count"), { force: true });
  const editor = activate(folder);
  try {
    await eventually("it tried again", () => editor.rpc.connection.retryMs > 400);
    const message = `toold: no daemon at ${stub.settings.socket}: connect ENOENT ${stub.settings.socket}`;
    assert.deepEqual(stub.shown.values, [{ level: "error", message }]);
    assert.equal(fs.existsSync(path.join(folder, "count")), false);
  } finally {
    editor.deactivate();
    for (const name of ["socket", "toolctl", "autostart"]) delete stub.settings[name];
  }
});
