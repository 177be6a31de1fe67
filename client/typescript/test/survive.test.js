// kill -9 of the daemon, slow readers, much output.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { test } = require("node:test");
const toold = require("../src/index.js");
const { Daemon, eventually } = require("./rig.js");
const { Toold } = toold;

// Bytes of output, and the memory that a client may have for it, in MiB.
const SIZE = 100_000_000;
const MAX_RSS_MIB = 220;

function withDaemon(use, options = {}) {
  return async () => {
    const daemon = new Daemon();
    if (options.start !== false) await daemon.start();
    const t = new Toold();
    try {
      await use(t, daemon);
    } finally {
      t.disconnect();
      await daemon.stop();
    }
  };
}

test("the first call starts the daemon", withDaemon(async (t, daemon) => {
  assert.equal((await (await t.exec("exit 3")).wait()).exit_code, 3);
  assert.equal((await t.daemon_info()).paths.socket, daemon.socket);
}, { start: false }));

test("without a daemon and autostart the error names the socket", async () => {
  const t = new Toold({ socket: "/nonexistent/toold.sock", autostart: false });
  await assert.rejects(t.list(), (error) => error instanceof toold.DaemonUnreachable && /at \/nonexistent\/toold.sock/.test(error.message));
});

test("nothing is sent to a directory of others", withDaemon(async (t, daemon) => {
  const place = path.join(daemon.root, "open");
  fs.mkdirSync(place);
  fs.chmodSync(place, 0o777);
  await assert.rejects(new Toold({ socket: path.join(place, "s") }).list(), /nothing was sent to .*has mode 777/);
}, { start: false }));

test("calls in flight that are safe are repeated, others fail with the reason", withDaemon(async (t, daemon) => {
  const waiting = [];
  for (let n = 0; n < 5; n += 1) waiting.push(await t.exec(`${daemon.waitForGate}; exit ${n}`));
  const waits = waiting.map((p) => p.wait());
  const executed = t.exec(`${daemon.waitForGate}; exit 5`, { yield_ms: 60000 });
  await eventually("all run", async () => (await t.list()).total === 6);
  const killed = t.kill({ id: waiting[0], signal: "SIGCONT", grace_ms: 600000 });
  const failed = assert.rejects(killed, (error) => error instanceof toold.ConnectionLost && error.method === "kill");
  await t.list();
  await daemon.kill9();
  daemon.openGate();
  assert.deepEqual((await Promise.all(waits)).map((p) => p.exit_code), [0, 1, 2, 3, 4]);
  assert.equal((await (await executed).wait()).exit_code, 5);
  await failed;
  assert.equal((await t.list()).total, 6);
}));

test("a follow goes on with the next byte", withDaemon(async (t, daemon) => {
  const p = await t.exec(`seq 1000; ${daemon.waitForGate}; seq 1001 3000`);
  const found = [];
  for await (const line of p.follow()) {
    found.push(Number(line));
    if (found.length === 1000) {
      await daemon.kill9();
      daemon.openGate();
    }
  }
  assert.deepEqual(found, Array.from({ length: 3000 }, (_, n) => n + 1));
}));

test("a subscription goes on with the next number", withDaemon(async (t, daemon) => {
  const events = await t.events_subscribe();
  const p = await t.exec(`${daemon.waitForGate}; exit 9`, { notify: true });
  const found = [(await events.next()).value];
  await daemon.kill9();
  daemon.openGate();
  while (found.length < 4) found.push((await events.next()).value);
  const kinds = ["started", "exited", "closed", "completion"];
  assert.deepEqual(found.map((e) => [e.type, e.id, e.seq]), kinds.map((kind, n) => [kind, p.id, found[0].seq + n]));
  assert.deepEqual([await t.events_unsubscribe({ subscription: events }), await t.events_unsubscribe({ subscription: events })], [true, false]);
  assert.equal((await events.next()).done, true);
}));

test("output that a subscription missed is reported", withDaemon(async (t, daemon) => {
  const events = await t.events({ output: true, types: ["closed"] }).open();
  const p = await t.exec(`echo one; ${daemon.waitForGate}; echo two`);
  const first = (await events.next()).value;
  assert.deepEqual([first.type, first.data], ["output", "one\n"]);
  await daemon.kill9();
  daemon.openGate();
  await eventually("it has ended", () => !fs.existsSync(`/proc/${p.pid}`));
  const [missed, closed] = [(await events.next()).value, (await events.next()).value];
  assert.deepEqual({ ...missed }, { type: "lagged", of: "output", id: p.id, from: 4, to: 8 });
  assert.deepEqual([closed.type, closed.bytes], ["closed", 8]);
}));

test("registered tools are back after kill -9", withDaemon(async (t, daemon) => {
  const tools = [{ name: "echo", description: "Return the arguments.", input_schema: { type: "object" } }];
  await t.tools_register({ provider: "durable", tools, invoke: ({ args }) => args });
  await daemon.kill9();
  await daemon.start();
  await eventually("the tool is back", async () => {
    const { tools: listed } = await t.tools_list();
    return listed.find((one) => one.name === "durable.echo")?.state === "ready";
  });
  assert.deepEqual((await t.tools_call({ name: "durable.echo", args: { x: 1 } })).result, { x: 1 });
}));

/** Runs a script in a program of its own and returns what it prints, as JSON. */
function script(text) {
  const done = spawnSync(process.execPath, ["-e", text], { cwd: path.join(__dirname, ".."), timeout: 300000 });
  assert.equal(done.status, 0, done.stderr.toString());
  return JSON.parse(done.stdout);
}

// A program that has something open 5 s after the end of its script fails with the list of it.
const REQUIRE_EXIT = `setTimeout(() => {
  console.error("still open:", process.getActiveResourcesInfo());
  process.exit(1);
}, 5000).unref()`;

test("disconnect during a reconnect leaves nothing open and starts no daemon", withDaemon(async (_, daemon) => {
  const found = script(`(async () => {
    const sleep = require("node:timers/promises").setTimeout;
    const t = new (require(".").Toold)();
    const { pid } = await t.daemon_info();
    const events = await t.events({ types: ["exited"] }).open();
    await t.tools_register({ provider: "p", tools: [{ name: "x", description: "x", input_schema: { type: "object" } }], invoke: () => 1 });
    const next = events.next();
    process.kill(pid, "SIGKILL");
    await sleep(20);
    t.disconnect();
    console.log(JSON.stringify(await next));
    ${REQUIRE_EXIT};
  })()`);
  assert.deepEqual(found, { done: true });
  assert.equal(await daemon.ask("daemon.info"), null);
}));

test("disconnect during the start of a daemon ends the start", withDaemon(async (_, daemon) => {
  const toolctl = path.join(daemon.root, "toolctl");
  const started = path.join(daemon.root, "started");
  fs.writeFileSync(toolctl, `#!/bin/sh\necho $$ > ${started}.tmp; mv ${started}.tmp ${started}; exec sleep 1000\n`, { mode: 0o700 });
  const found = script(`(async () => {
    const sleep = require("node:timers/promises").setTimeout;
    const t = new (require(".").Toold)({ toolctl: ${JSON.stringify(toolctl)} });
    const next = t.events().next();
    const listed = t.list().catch((error) => error.message);
    while (!require("node:fs").existsSync(${JSON.stringify(started)})) await sleep(5);
    t.disconnect();
    console.log(JSON.stringify([await next, await listed]));
    ${REQUIRE_EXIT};
  })()`);
  assert.deepEqual(found, [{ done: true }, "the client was disconnected during `list`"]);
  assert.equal(fs.existsSync(`/proc/${fs.readFileSync(started, "utf8").trim()}`), false);
}, { start: false }));

test("many calls that lose their connection at once cause no warning", withDaemon(async () => {
  const [statuses, warnings] = script(`(async () => {
    const t = new (require(".").Toold)();
    const warnings = [];
    process.on("warning", (warning) => warnings.push(String(warning)));
    process.kill((await t.daemon_info()).pid, "SIGKILL");
    const calls = await Promise.allSettled(Array.from({ length: 12 }, () => t.list({ limit: 1 })));
    await new Promise(setImmediate);
    console.log(JSON.stringify([calls.map((one) => one.status), warnings]));
  })()`);
  assert.deepEqual([statuses, warnings], [Array(12).fill("fulfilled"), []]);
}));

test("a call that disconnect ends says so, and a later call connects again", withDaemon(async (t) => {
  const isDisconnected = (method, tail) => (error) => {
    assert.ok(error instanceof toold.ConnectionLost, error.stack);
    assert.deepEqual([error.method, error.message], [method, `the client was disconnected during \`${method}\`${tail}`]);
    return true;
  };
  const p = await t.exec("sleep 1000");
  const waited = assert.rejects(p.wait(), isDisconnected("wait", ""));
  const unknown = ", and it is not known whether the call had an effect";
  const killed = assert.rejects(t.kill({ id: p, signal: "SIGCONT", grace_ms: 600000 }), isDisconnected("kill", unknown));
  await t.list();
  t.disconnect();
  const listed = t.list();
  await Promise.all([waited, killed]);
  assert.equal((await listed).total, 1);
  process.kill((await t.daemon_info()).pid, "SIGKILL");
  const lost = assert.rejects(t.list(), isDisconnected("list", ""));
  t.disconnect();
  await lost;
  assert.equal((await t.list()).total, 1);
}));

test("much output is followed in little memory", withDaemon(async () => {
  const [lines, size, rss] = script(`(async () => {
    const t = new (require(".").Toold)();
    const p = await t.exec("head -c ${SIZE} /dev/zero | tr '\\\\0' x | fold -w 99");
    let lines = 0, size = 0;
    for await (const _ of p.follow()) lines += 1;
    for await (const { data } of p.stream({ raw: true })) size += data.length;
    console.log(JSON.stringify([lines, size, process.resourceUsage().maxRSS / 1024]));
  })()`);
  assert.deepEqual([lines, size], [Math.ceil(SIZE / 99), SIZE + Math.floor(SIZE / 99)]);
  assert.ok(rss < MAX_RSS_MIB, `${rss} MiB`);
}));

test("a slow reader of a subscription holds up no call and misses nothing silently", withDaemon(async (t) => {
  const events = await t.events({ output: true, session_key: "slow" }).open();
  const p = await t.exec("head -c 30000000 /dev/zero | tr '\\0' y | fold -w 99; exit 3", { session_key: "slow" });
  assert.equal((await p.wait({ until: "closed" })).exit_code, 3);
  let end = 0;
  for await (const e of events) {
    if (e.type === "output") assert.equal(e.cursor, end), (end = e.next_cursor);
    if (e.type === "lagged") assert.equal(e.from, end), (end = e.to);
    if (e.type === "closed") break;
  }
  assert.equal(end, 30000000 + Math.floor(30000000 / 99));
}));

test("a daemon that dies of a call is given up, and a call that changes something is sent once", async () => {
  const place = fs.mkdtempSync("/tmp/toold-ts-");
  const socket = path.join(place, "s");
  const seen = [];
  const server = net.createServer((peer) => peer.once("data", (data) => (seen.push(JSON.parse(data).method), peer.destroy())));
  await new Promise((done) => server.listen(socket, done));
  const t = new Toold({ socket, autostart: false });
  try {
    await assert.rejects(t.list(), /ended 6 times in a row during `list`/);
    await assert.rejects(t.signal({ id: "x", signal: "SIGHUP" }), /during `signal`, and it is not known/);
    assert.deepEqual(seen, [...Array(6).fill("list"), "signal"]);
  } finally {
    t.disconnect();
    server.close();
    fs.rmSync(place, { recursive: true });
  }
});
