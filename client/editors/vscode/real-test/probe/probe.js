// A second extension, for the test in the real editor: does what a user would do by the API, and writes what it sees to a file.
"use strict";

const fs = require("node:fs");
const vscode = require("vscode");

/** The time limit of everything that waits. */
const DEADLINE_MS = 60000;
const POLL_MS = 50;

const { TOOLD_PROBE_FINDINGS: findings, TOOLD_PROBE_GATE: gate } = process.env;

/** Adds a line of JSON to the findings. */
function record(name, value) {
  fs.appendFileSync(findings, `${JSON.stringify({ name, value })}\n`);
}

async function eventually(fact) {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await fact();
    if (value) return value;
    if (Date.now() > until) throw new Error(`it never came true: ${fact}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Runs a task and returns its exit code. */
function runToEnd(task) {
  return new Promise((resolve) => {
    vscode.tasks.onDidEndTaskProcess((event) => event.execution.task.name === task.name && resolve(event.exitCode));
    vscode.tasks.executeTask(task);
  });
}

/** The first window: tasks of tasks.json, with problems and exit codes; one of them goes on. */
async function firstWindow({ rpc }) {
  const tasks = await eventually(async () => {
    const all = await vscode.tasks.fetchTasks({ type: "toold" });
    return all.length === 2 && all;
  });
  const named = (name) => tasks.find((task) => task.name === name);
  record("tasks", tasks.map((task) => task.name).sort());
  record("exit code of build", await runToEnd(named("build")));
  const problems = await eventually(() => {
    const all = vscode.languages.getDiagnostics().flatMap(([uri, list]) => list.map((each) => `${uri.path.split("/").pop()}:${each.range.start.line + 1}: ${each.message}`));
    return all.length > 0 && all;
  });
  record("problems", problems);
  await vscode.tasks.executeTask(named("serve"));
  const { processes } = await eventually(async () => {
    const list = await rpc.call("list", { status: "running" });
    return list.processes.length === 1 && list;
  });
  await vscode.commands.executeCommand("toold.attach", { process: { id: processes[0].id, name: "attached" } });
  const terminal = await eventually(() => vscode.window.terminals.find((each) => each.name === "attached"));
  terminal.dispose();
  await eventually(() => !vscode.window.terminals.includes(terminal));
  record("serve after its terminal was closed", (await rpc.call("inspect", { id: processes[0].id })).status);
  record("serve runs", true);
}

/** The second window: the task of the first one is there again, and its end is seen. */
async function secondWindow() {
  vscode.tasks.onDidEndTaskProcess((event) => record("exit code after the reload", [event.execution.task.name, event.exitCode]));
  const running = await eventually(() => vscode.tasks.taskExecutions.length > 0 && vscode.tasks.taskExecutions);
  record("restored", running.map((execution) => execution.task.name));
  fs.writeFileSync(gate, "");
}

async function activate() {
  try {
    const extension = await eventually(() => vscode.extensions.getExtension("toold.toold"));
    await eventually(() => extension.isActive);
    record("activated", [vscode.version, extension.extensionKind === vscode.ExtensionKind.Workspace]);
    const isFirst = !fs.readFileSync(findings, "utf8").includes("serve runs");
    await (isFirst ? firstWindow(extension.exports) : secondWindow());
  } catch (error) {
    record("failure", String(error.stack ?? error));
  }
}

module.exports = { activate };
