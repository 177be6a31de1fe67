// The programs of README.md print what is printed there.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const { Daemon } = require("./rig.js");

test("the programs of the README run as printed", async () => {
  const daemon = new Daemon();
  try {
    const place = path.join(daemon.root, "program");
    fs.mkdirSync(path.join(place, "node_modules"), { recursive: true });
    fs.symlinkSync(path.join(__dirname, ".."), path.join(place, "node_modules", "toold"));
    const text = fs.readFileSync(path.join(__dirname, "..", "README.md"), "utf8");
    const programs = [...text.matchAll(/```js\n(.*?)```\n+```text\n(.*?)```/gs)];
    assert.equal(programs.length, 4);
    for (const [, program, expected] of programs) {
      fs.writeFileSync(path.join(place, "program.mjs"), program);
      const done = spawnSync(process.execPath, ["program.mjs"], { cwd: place, timeout: 60000 });
      assert.equal(done.stdout.toString(), expected, done.stderr.toString());
    }
  } finally {
    await daemon.stop();
  }
});
