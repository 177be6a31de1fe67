// Tasks of type "toold": processes of the daemon that outlive the editor. A task whose process runs attaches to it.
"use strict";

const { createHash } = require("node:crypto");
const path = require("node:path");
const vscode = require("vscode");
const { execParams } = require("./exec");
const settings = require("./settings");
const { ProcessTerminal } = require("./terminal");
const { TASK_LABEL, isLive, nameOf } = require("./text");

const TYPE = "toold";
/** Labels of the processes of tasks beside the task's name: the folder, and a hash of all that makes it the same task. */
const FOLDER_LABEL = "vscode_folder";
const KEY_LABEL = "vscode_key";
/** The most characters of a name in a label. */
const MAX_LABEL_LEN = 100;
/** The place of the ids of processes whose end a task of this workspace has shown, and their most. */
const SHOWN_KEY = "toold.shownTasks";
const MAX_SHOWN = 200;
/** The age at which a process that ended without an editor is not shown any more. */
const RESTORE_WITHIN_MS = 3600 * 1000;

/**
 * Returns the key of a task: the same name, command and directory are the same task.
 * @param {string} name
 * @param {import("./exec").Command} command
 * @param {string} cwd
 */
function taskKey(name, command, cwd) {
  const parts = JSON.stringify([name, command.command ?? null, command.argv ?? null, cwd]);
  return createHash("sha256").update(parts).digest("hex").slice(0, 16);
}

/**
 * Returns the definition of the task that started a process.
 * @param {any} process
 */
function definitionOf(process) {
  const isShell = process.argv?.[process.argv.length - 1] === process.command;
  return {
    type: TYPE,
    ...(isShell ? { command: process.command } : { argv: process.argv }),
    cwd: process.cwd,
    ...(process.pty ? {} : { pty: false }),
    ...(process.name ? { name: process.name } : {}),
  };
}

/** @implements {vscode.TaskProvider} */
class Tasks {
  /**
   * @param {import("./rpc").Rpc} rpc
   * @param {vscode.Memento} memory
   * @param {(id: string) => void} kill
   */
  constructor(rpc, memory, kill) {
    this.rpc = rpc;
    this.memory = memory;
    this.kill = kill;
    /** @type {Set<string>} Processes that a task of this editor shows. */
    this.open = new Set();
    this.isStopped = false;
  }

  /** Tasks that this folder has had lately. */
  async provideTasks() {
    if (this.rpc.state !== "up") return [];
    const processes = await this.processesOfFolder();
    const tasks = new Map();
    for (const process of processes) {
      const key = process.labels[KEY_LABEL];
      if (!tasks.has(key)) tasks.set(key, this.make(definitionOf(process), process.labels[TASK_LABEL]));
    }
    return [...tasks.values()];
  }

  /** @param {vscode.Task} task */
  resolveTask(task) {
    const { command, argv } = task.definition;
    if (!command && !argv) return undefined;
    const scope = task.scope ?? vscode.TaskScope.Workspace;
    // The definition must be the same object, or VS Code does not take the task for the one of tasks.json.
    return this.make(task.definition, task.name, scope, task.definition);
  }

  /**
   * Shows the processes of earlier runs of the editor in tasks again: those that run, and those that ended unseen.
   * @returns {Promise<vscode.Task[]>}
   */
  async restore() {
    /** @type {string[]} */
    const shown = this.memory.get(SHOWN_KEY, []);
    const processes = await this.processesOfFolder();
    const wanted = processes.filter((process) => !this.open.has(process.id) && !shown.includes(process.id));
    const tasks = [];
    // The daemon lists the newest first; the terminal that is opened last is in front.
    for (const process of wanted.reverse()) {
      const task = this.make(definitionOf(process), process.labels[TASK_LABEL], undefined, undefined, process);
      task.presentationOptions = { reveal: vscode.TaskRevealKind.Silent, panel: vscode.TaskPanelKind.New, clear: false };
      this.open.add(process.id);
      await vscode.tasks.executeTask(task);
      tasks.push(task);
    }
    return tasks;
  }

  /** @returns {Promise<any[]>} newest first */
  async processesOfFolder() {
    const label = `${FOLDER_LABEL}=${settings.folderPath()}`;
    return (await this.rpc.call("list", { label, ended_within_ms: RESTORE_WITHIN_MS })).processes;
  }

  /**
   * @param {any} definition
   * @param {string} name
   * @param {vscode.WorkspaceFolder | vscode.TaskScope} [scope]
   * @param {any} [own] The definition to give to VS Code.
   * @param {any} [process] The process that it shows in any case.
   */
  make(definition, name, scope, own, process) {
    const folder = scope && typeof scope === "object" ? scope.uri.fsPath : settings.folderPath();
    const execution = new vscode.CustomExecution(async (resolved) => {
      return this.terminal(/** @type {any} */ (resolved ?? definition), name, folder, process);
    });
    const place = scope ?? vscode.workspace.workspaceFolders?.[0] ?? vscode.TaskScope.Workspace;
    return new vscode.Task(own ?? definition, place, name, TYPE, execution, []);
  }

  /**
   * @param {any} definition
   * @param {string} name
   * @param {string} folder
   * @param {any} [known]
   */
  terminal(definition, name, folder, known) {
    return new ProcessTerminal(this.rpc, {
      find: async (size) => {
        if (known) return { process: known, isNew: false };
        return this.findOrStart(definition, name, folder, size);
      },
      isWhole: true,
      closesAtExit: true,
      onProcess: (process) => this.open.add(process.id),
      onExit: (process) => {
        this.open.delete(process.id);
        /** @type {string[]} */
        const shown = this.memory.get(SHOWN_KEY, []);
        this.memory.update(SHOWN_KEY, [...shown, process.id].slice(-MAX_SHOWN));
      },
      onDetach: (process) => this.onDetach(process),
    });
  }

  /**
   * @param {any} definition
   * @param {string} name
   * @param {string} folder
   * @param {{ rows: number, cols: number } | undefined} size
   */
  async findOrStart(definition, name, folder, size) {
    const cwd = path.resolve(folder, definition.cwd ?? "");
    const key = taskKey(name, definition, cwd);
    const { processes } = await this.rpc.call("list", { label: `${KEY_LABEL}=${key}`, ended_within_ms: 0 });
    const running = processes.find(isLive);
    if (running) return { process: running, isNew: false };
    const labels = { [TASK_LABEL]: name.slice(0, MAX_LABEL_LEN), [FOLDER_LABEL]: settings.folderPath(), [KEY_LABEL]: key };
    const around = { cwd, env: process.env, shell: vscode.env.shell, session: settings.session(), size, labels };
    return { process: await this.rpc.call("exec", execParams(definition, around)), isNew: true };
  }

  /** @param {any} process */
  async onDetach(process) {
    this.open.delete(process.id);
    if (this.isStopped) return;
    const choice = await vscode.window.showInformationMessage(`${nameOf(process)} keeps running in toold`, "Kill");
    if (choice === "Kill") this.kill(process.id);
  }
}

module.exports = { Tasks, TYPE, taskKey, definitionOf };
