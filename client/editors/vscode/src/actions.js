// Acts on one process: log, attach, answer, kill, run again. Shows errors to the user.
"use strict";

const vscode = require("vscode");
const { environment, execParams } = require("./exec");
const { withFact } = require("./fact");
const { logUri, searchUri } = require("./logs");
const { uniqueKey } = require("./rpc");
const settings = require("./settings");
const { attach } = require("./terminal");
const { clean, isAsking, isLive, nameOf, stateOf } = require("./text");

class Actions {
  /**
   * @param {import("./rpc").Rpc} rpc
   * @param {import("./model").Model} model
   */
  constructor(rpc, model) {
    this.rpc = rpc;
    this.model = model;
    /** @type {Map<string, vscode.Terminal>} Terminals by process. */
    this.terminals = new Map();
    /** @type {Set<string>} Processes whose question a notice shows. */
    this.asked = new Set();
  }

  /** Runs a command line of the user on a terminal. */
  async run() {
    const command = await vscode.window.showInputBox({ prompt: "Command to run in toold", placeHolder: "make -j4" });
    if (!command) return;
    const around = {
      cwd: settings.folderPath(),
      env: process.env,
      shell: vscode.env.shell,
      session: settings.session(),
      size: undefined,
      labels: {},
    };
    this.showTerminal(await this.rpc.call("exec", execParams({ command }, around)));
  }

  /** @param {any} process */
  async log(process) {
    const document = await vscode.workspace.openTextDocument(logUri(process));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Searches the logs of all processes, also of those that have ended. */
  async search() {
    const pattern = await vscode.window.showInputBox({ prompt: "Regular expression to find in all logs" });
    if (!pattern) return;
    const document = await vscode.workspace.openTextDocument(searchUri(pattern));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** @param {any} process */
  async attach(process) {
    this.showTerminal(process);
  }

  /** @param {any} process */
  showTerminal(process) {
    const open = this.terminals.get(process.id);
    const terminal = open ?? attach(this.rpc, process, () => this.terminals.delete(process.id));
    this.terminals.set(process.id, terminal);
    terminal.show();
  }

  /** @param {any} process */
  async copyId(process) {
    await vscode.env.clipboard.writeText(process.id);
  }

  /**
   * Asks the user for the answer to the question of a process, or for a line to its input. What is typed is hidden when the
   * program has turned the echo off, and never kept.
   * @param {any} listed
   * @param {"question" | "line"} [want] With "question", a process that does not ask any more gets nothing.
   */
  async answer(listed, want = "line") {
    const inspected = await this.rpc.call("inspect", { id: listed.id });
    const process = withFact(inspected, this.model.facts.get(listed.id), Date.now());
    const name = nameOf(process);
    if (!isLive(process)) {
      vscode.window.showInformationMessage(`toold: ${name} has ended: ${stateOf(process)}`);
      return;
    }
    if (process.stdin !== "pipe" && process.stdin !== "pty") {
      vscode.window.showInformationMessage(`toold: ${name} has no open input`);
      return;
    }
    const question = process.needs_input;
    if (!question && want === "question") {
      vscode.window.showInformationMessage(`toold: ${name} does not ask any more`);
      return;
    }
    const isHidden = Boolean(question) && process.pty && question.echo !== true;
    const prompt = clean(question?.prompt ?? "").trim() || `input for ${name}`;
    const line = await vscode.window.showInputBox({ title: name, prompt, password: isHidden, ignoreFocusOut: true });
    if (line === undefined) return;
    // `secret` makes the daemon refuse the write if the terminal shows what is typed by then.
    const params = { id: process.id, data: line, write_id: uniqueKey(), ...(question?.echo === false ? { secret: true } : {}) };
    await this.rpc.call("submit", params);
    this.model.forgetQuestion(process.id);
  }

  /** Answers the question of the only process that asks, or of the one that the user picks. */
  async answerAny() {
    const asking = this.model.processes().filter(isAsking);
    const process = asking.length === 1 ? asking[0] : await this.pick(asking, "no process asks");
    if (process) await this.answer(process, "question");
  }

  /**
   * Reports a question as it comes.
   * @param {any} event
   */
  async onQuestion(event) {
    const mode = settings.questions();
    const terminal = this.terminals.get(event.id);
    const isSeen = terminal !== undefined && vscode.window.activeTerminal === terminal;
    if (mode === "off" || isSeen || this.asked.has(event.id)) return;
    this.asked.add(event.id);
    try {
      await this.ask(event, mode);
    } finally {
      this.asked.delete(event.id);
    }
  }

  /**
   * @param {any} event
   * @param {"notice" | "input"} mode
   */
  async ask(event, mode) {
    // A box that opens by itself would take the keys that the user types into a file.
    const message = `${nameOf(event)} asks: ${clean(event.prompt ?? "").trim()}`;
    const choice =
      mode === "input" ? "Answer" : await vscode.window.showInformationMessage(message, "Answer", "Open Terminal");
    if (choice === "Answer") await this.answer(event, "question");
    if (choice === "Open Terminal") this.showTerminal(await this.rpc.call("inspect", { id: event.id }));
  }

  /** @param {any} listed */
  async kill(listed) {
    const process = await this.rpc.call("inspect", { id: listed.id });
    const count = process.tree?.length ?? 1;
    const question = `Kill ${nameOf(process)} (${count === 1 ? "1 process" : `${count} processes`})?`;
    const choice = await vscode.window.showWarningMessage(question, { modal: true }, "Kill");
    if (choice === "Kill") await this.killNow(process.id);
  }

  /**
   * Kills the whole tree.
   * @param {string} id
   */
  async killNow(id) {
    const { results } = await this.rpc.call("kill", { id });
    const survivors = results.flatMap((/** @type {any} */ result) => result.survivors ?? []);
    if (survivors.length > 0) throw new Error(`${survivors.length} processes of ${id} are still there`);
  }

  /**
   * Starts a process again, with the editor's environment.
   * @param {any} listed
   */
  async rerun(listed) {
    const process = await this.rpc.call("inspect", { id: listed.id });
    if (isLive(process)) {
      const question = `${nameOf(process)} runs. Kill it and run it again?`;
      const choice = await vscode.window.showWarningMessage(question, { modal: true }, "Rerun");
      if (choice !== "Rerun") return;
    }
    const env = environment(globalThis.process.env, undefined, process.pty);
    const started = await this.rpc.call("restart", { id: process.id, env });
    if (started.pty) this.showTerminal(started);
    else await this.log(started);
  }

  /**
   * @param {any[]} processes
   * @param {string} none
   */
  async pick(processes, none) {
    if (processes.length === 0) {
      vscode.window.showInformationMessage(`toold: ${none}`);
      return undefined;
    }
    const items = processes.map((process) => ({ label: nameOf(process), description: stateOf(process), process }));
    return (await vscode.window.showQuickPick(items, { placeHolder: "Process" }))?.process;
  }
}

module.exports = { Actions };
