// The verbs of the contract, against a real daemon.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync, spawnSync } = require("node:child_process");
const path = require("node:path");
const { after, before, test } = require("node:test");
const toold = require("../src/index.js");
const { METHODS } = require("../src/methods.js");
const { Daemon } = require("./rig.js");
const { Toold } = toold;

let daemon;
before(async () => (daemon = await new Daemon().start()));
after(() => daemon.stop());

async function collect(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}

function withClient(use) {
  return async () => {
    const t = new Toold();
    try {
      await use(t);
    } finally {
      t.disconnect();
    }
  };
}

test("a build is started, followed and waited for", withClient(async (t) => {
  const p = await t.exec("printf 'one\\ntwo\\n'; exit 3", { cwd: ".", name: "build", notify: true });
  assert.deepEqual([p.name, p.cwd, p.notify], ["build", process.cwd(), true]);
  assert.deepEqual(await collect(p.follow()), ["one", "two"]);
  const r = await p.wait({ timeout_ms: 60000 });
  assert.deepEqual([r.exit_code, r.signal, r.status, r === p], [3, null, "exited", true]);
}));

test("a stream has cursors, streams and bytes, and characters come out whole", withClient(async (t) => {
  const text = "grüß € 😀\n";
  const octets = [...Buffer.from(text)].map((byte) => `printf '\\${byte.toString(8).padStart(3, "0")}'; sleep 0.002`);
  const p = await t.exec(["sh", "-c", `${octets.join("; ")}; printf '\\303'`]);
  const raw = await collect(p.stream({ raw: true }));
  assert.deepEqual(Buffer.concat(raw.map((one) => one.data)), Buffer.concat([Buffer.from(text), Buffer.from([0xc3])]));
  assert.deepEqual([raw[0].cursor, raw[0].stream], [0, "stdout"]);
  assert.equal((await collect(p.stream())).map((one) => one.data).join(""), text + "\ufffd");
  assert.deepEqual(await collect(p.follow()), [text.trimEnd(), "\ufffd"]);
}));

test("a wait that times out leaves the process running", withClient(async (t) => {
  const p = await t.exec("read x; echo got $x", { stdin: "pipe" });
  await assert.rejects(p.wait({ timeout_ms: 50 }), (error) => error instanceof toold.WaitTimeout && error.process.status === "running");
  assert.equal((await p.submit("y")).bytes_written, 2);
  await p.wait();
  assert.deepEqual([p.exit_code, p.output], [0, "got y\n"]);
}));

test("kill ends the tree and gives a receipt", withClient(async (t) => {
  const p = await t.exec({ argv: ["sleep", "100"] });
  const { status, survivors, exit_code } = await p.kill();
  assert.deepEqual([status, survivors, exit_code, p.reason, p.signal], ["killed", [], 143, "killed", "SIGTERM"]);
}));

test("run is like a child process that outlives us", withClient(async (t) => {
  const { returncode, stdout, stderr } = await t.run(["sh", "-c", "cat; echo err >&2; exit 2"], {
    input: "grüß\n", capture_output: true, encoding: "utf8",
  });
  assert.deepEqual([returncode, stdout, stderr], [2, "grüß\n", "err\n"]);
  assert.equal((await t.run("kill -9 $$", { shell: true })).returncode, -9);
  await assert.rejects(t.run(["sh", "-c", "exit 4"], { check: true }), (error) => error instanceof toold.CalledProcessError && error.returncode === 4);
  await assert.rejects(t.run(["/nonexistent"]), toold.SpawnFailed);
  const { stdout: here } = await t.run(["pwd"], { capture_output: true, encoding: "utf8" });
  assert.equal(here, process.cwd() + "\n");
}));

test("errors have their kinds", withClient(async (t) => {
  const isNotFound = (error) => error instanceof toold.NotFound && error.code === -32001 && error.kind === "not_found" && error.data.id === "ghost";
  await assert.rejects(t.poll({ id: "ghost" }), isNotFound);
  await assert.rejects(t.call("exec", { comand: "x" }), (error) => error instanceof toold.InvalidParams && error.data.param === "comand");
  await assert.rejects(t.exec("x".repeat(17 << 20)), toold.RpcError);
  assert.equal((await (await t.exec("exit 4")).wait()).exit_code, 4);
}));

test("every method of the list is there", withClient(async (t) => {
  const document = await t.rpc_discover();
  assert.deepEqual(document.methods.map((m) => m.name.replace(".", "_")), Object.keys(METHODS));
  for (const name of Object.keys(METHODS)) assert.equal(typeof t[name], "function", name);
}));

test("a consumer gets each completion once", withClient(async (t) => {
  const session_key = "example";
  const ids = [];
  for (const n of [1, 2]) ids.push((await (await t.exec(`exit ${n}`, { notify: true, session_key })).wait()).id);
  const found = [];
  for await (const e of t.events({ types: ["completion"], consumer: "me", session_key })) {
    found.push(e.id);
    await e.ack();
    if (found.length === 2) break;
  }
  assert.deepEqual(found.sort(), ids.sort());
  const third = await (await t.exec("exit 3", { notify: true, session_key })).wait();
  for await (const e of t.events({ types: ["completion"], consumer: "me", session_key })) {
    assert.deepEqual([e.id, e.exit_code], [third.id, 3]);
    break;
  }
  for await (const e of t.events({ types: ["completion"], after: 0, session_key })) {
    await assert.rejects(e.ack(), /consumer/);
    break;
  }
}));

test("a call is cancelled by its signal, and others go on", withClient(async (t) => {
  const p = await t.exec("read x; exit 3", { stdin: "pipe" });
  const controller = new AbortController();
  const waits = Array.from({ length: 20 }, (_, n) => t.wait({ id: p }, n % 2 ? {} : { signal: controller.signal }));
  await t.list();
  controller.abort();
  const settled = await Promise.allSettled(waits.filter((_, n) => n % 2 === 0));
  assert.ok(settled.every((one) => one.status === "rejected" && one.reason.name === "AbortError"));
  await p.submit("go");
  const done = await Promise.all(waits.filter((_, n) => n % 2));
  assert.ok(done.every((one) => one.processes[0].exit_code === 3));
}));

test("tools are served, fail and are withdrawn", withClient(async (t) => {
  const input_schema = { type: "object" };
  const tools = [{ name: "add", description: "Add.", input_schema }, { name: "fail", description: "Fail.", input_schema }];
  const invoke = async ({ name, args }) => {
    if (name === "fail") throw new Error("as asked");
    return { sum: args.a + args.b };
  };
  await t.tools_register({ provider: "node", tools, invoke });
  assert.deepEqual((await t.tools_call({ name: "node.add", args: { a: 1, b: 2 } })).result, { sum: 3 });
  await assert.rejects(t.tools_call({ name: "node.fail" }), (error) => error instanceof toold.ToolFailed && /as asked/.test(error.message));
  assert.deepEqual((await t.tools_unregister({ provider: "node" })).tools, ["node.add", "node.fail"]);
}));

test("a program that has made its calls ends by itself", () => {
  const script = 'const { Toold } = require("."); const t = new Toold(); t.exec("exit 5").then((p) => p.wait()).then((p) => console.log(p.exit_code));';
  const options = { cwd: path.join(__dirname, ".."), timeout: 60000 };
  assert.equal(execFileSync(process.execPath, ["-e", script], options).toString(), "5\n");
});

test("import and require give the same package", () => {
  const script = 'import * as toold from "./src/index.mjs"; console.log(Object.keys(toold).sort().join())';
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", script], { cwd: path.join(__dirname, "..") });
  assert.equal(done.stdout.toString().trim(), Object.keys(toold).sort().join(), done.stderr.toString());
});
