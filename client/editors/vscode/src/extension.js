// The extension: connects the views, terminals, tasks, documents and notices with the daemon.
"use strict";

const vscode = require("vscode");
const { Actions } = require("./actions");
const { Logs, SCHEME } = require("./logs");
const { Model } = require("./model");
const { Rpc } = require("./rpc");
const settings = require("./settings");
const { Tasks, TYPE } = require("./tasks");
const { isAsking, isLive, statusText } = require("./text");
const { ProcessTree } = require("./tree");

/** The place of the status bar among other items on the left. */
const STATUS_PRIORITY = 50;

/** @type {(() => void)[]} Steps of the end, last first. */
let ends = [];

/** @param {unknown} error */
function showError(error) {
  vscode.window.showErrorMessage(`toold: ${error instanceof Error ? error.message : error}`);
}

/**
 * @param {import("./connection").ReportKind} kind
 * @param {string} message
 */
function report(kind, message) {
  if (kind === "loss") vscode.window.showWarningMessage(`toold: ${message}`);
  else vscode.window.showErrorMessage(`toold: ${message}`);
}

/**
 * @param {vscode.ExtensionContext} context
 * @param {Actions} actions
 * @param {Model} model
 */
function registerCommands(context, actions, model) {
  /**
   * @param {string} name
   * @param {(process: any) => Promise<void>} act
   * @param {(process: any) => boolean} isOffered
   */
  const add = (name, act, isOffered) => {
    const run = async (/** @type {any} */ node) => {
      try {
        // From the command palette there is no node.
        const offered = model.processes().filter(isOffered);
        const process = node?.process ?? (await actions.pick(offered, "there is no such process"));
        if (process) await act(process);
      } catch (error) {
        showError(error);
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(`toold.${name}`, run));
  };
  /**
   * @param {string} name
   * @param {() => Promise<void>} act
   */
  const addPlain = (name, act) => {
    context.subscriptions.push(vscode.commands.registerCommand(`toold.${name}`, () => act().catch(showError)));
  };
  add("log", (process) => actions.log(process), () => true);
  add("attach", (process) => actions.attach(process), isLive);
  add("answer", (process) => actions.answer(process), isLive);
  add("kill", (process) => actions.kill(process), isLive);
  add("copyId", (process) => actions.copyId(process), () => true);
  add("rerun", (process) => actions.rerun(process), () => true);
  addPlain("run", () => actions.run());
  addPlain("search", () => actions.search());
  addPlain("answerAny", () => actions.answerAny());
  addPlain("refresh", () => model.refresh());
}

/**
 * @param {vscode.ExtensionContext} context
 * @param {Rpc} rpc
 * @param {Model} model
 */
function registerViews(context, rpc, model) {
  const running = new ProcessTree(model, rpc, "running");
  const ended = new ProcessTree(model, rpc, "ended");
  const runningView = vscode.window.createTreeView("toold.running", { treeDataProvider: running });
  const endedView = vscode.window.createTreeView("toold.ended", { treeDataProvider: ended });
  const status = vscode.window.createStatusBarItem("toold", vscode.StatusBarAlignment.Left, STATUS_PRIORITY);
  status.name = "toold";
  const update = () => {
    const processes = model.processes();
    const asking = processes.filter(isAsking).length;
    const isUp = rpc.state === "up";
    status.text = statusText(processes, isUp);
    status.tooltip = isUp ? "Processes of toold" : "No daemon answers; processes go on";
    status.command = asking > 0 ? "toold.answerAny" : "toold.running.focus";
    runningView.badge = asking > 0 ? { value: asking, tooltip: `${asking} asks` } : undefined;
  };
  model.listeners.add(update);
  update();
  status.show();
  context.subscriptions.push(runningView, endedView, status);
}

/** Offers `toolctl mcp` to the agents of VS Code. */
function registerMcpServer() {
  // VS Code before 1.101 has no such servers.
  if (!vscode.lm?.registerMcpServerDefinitionProvider) return { dispose() {} };
  return vscode.lm.registerMcpServerDefinitionProvider("toold", {
    provideMcpServerDefinitions: () => {
      const { socket, toolctl } = settings.place();
      return [new vscode.McpStdioServerDefinition("toold", toolctl, ["mcp"], { TOOLD_SOCKET: socket })];
    },
  });
}

/** @param {vscode.ExtensionContext} context */
function activate(context) {
  const rpc = new Rpc(settings.place, report);
  const model = new Model(rpc);
  const actions = new Actions(rpc, model);
  const logs = new Logs(rpc);
  const tasks = new Tasks(rpc, context.workspaceState, (id) => actions.killNow(id).catch(showError));
  registerCommands(context, actions, model);
  registerViews(context, rpc, model);
  context.subscriptions.push(
    vscode.tasks.registerTaskProvider(TYPE, tasks),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, logs),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (document.uri.scheme === SCHEME) logs.forget(document.uri);
    }),
    registerMcpServer(),
  );
  model.eventListeners.add((event) => {
    if (event.type === "needs_input") actions.onQuestion(event).catch(showError);
  });
  model.start();
  restoreOnce(rpc, tasks);
  ends = [() => rpc.close(), () => logs.stop(), () => model.stop(), () => (tasks.isStopped = true)];
  return { rpc, model, actions, tasks, logs };
}

/**
 * Shows the tasks of earlier runs of the editor, when the daemon answers for the first time.
 * @param {Rpc} rpc
 * @param {Tasks} tasks
 */
function restoreOnce(rpc, tasks) {
  if (!settings.restoresTasks()) return;
  const listener = () => {
    if (rpc.state !== "up") return;
    rpc.stateListeners.delete(listener);
    tasks.restore().catch(showError);
  };
  rpc.stateListeners.add(listener);
}

/** Ends the connection. Processes go on. */
function deactivate() {
  while (ends.length > 0) ends.pop()?.();
}

module.exports = { activate, deactivate };
