// The views "Running" and "Ended": processes by session, live.
"use strict";

const vscode = require("vscode");
const { bySession } = require("./model");
const { clean, description, duration, isAsking, isLive, kindOf, nameOf, stateOf } = require("./text");

/** Icon and colour of each kind of process. @type {Record<string, [string, string]>} */
const ICONS = {
  asks: ["question", "charts.yellow"],
  running: ["circle-filled", "charts.green"],
  ok: ["pass", "charts.green"],
  failed: ["error", "charts.red"],
  lost: ["warning", "charts.orange"],
};

/**
 * @typedef {{ session: string | null, processes: any[] }} Group
 * @typedef {{ group: Group } | { process: any }} Node
 */

/**
 * Returns the features of a process that menus depend on: `process running pty input asks`.
 * @param {any} process
 */
function contextValue(process) {
  const parts = ["process", isLive(process) ? "running" : "ended"];
  if (process.pty) parts.push("pty");
  if (isLive(process) && (process.stdin === "pipe" || process.stdin === "pty")) parts.push("input");
  if (isAsking(process)) parts.push("asks");
  return parts.join(" ");
}

/**
 * @param {any} process
 * @param {any[]} listeners
 */
function tooltip(process, listeners) {
  const text = new vscode.MarkdownString();
  text.appendCodeblock(clean(process.command ?? ""), "sh");
  const age = isLive(process) ? `for ${duration(process.uptime_ms)}` : `after ${duration(process.uptime_ms ?? 0)}`;
  text.appendText(`${process.id}\n${stateOf(process)} ${age}\nin ${process.cwd}`);
  for (const { address, port } of listeners) text.appendText(`\nlistens on ${address}:${port}`);
  return text;
}

/** @implements {vscode.TreeDataProvider<Node>} */
class ProcessTree {
  /**
   * @param {import("./model").Model} model
   * @param {import("./rpc").Rpc} rpc
   * @param {"running" | "ended"} part
   */
  constructor(model, rpc, part) {
    this.model = model;
    this.rpc = rpc;
    this.part = part;
    /** @type {vscode.EventEmitter<void>} */
    this.changed = new vscode.EventEmitter();
    this.onDidChangeTreeData = this.changed.event;
    model.listeners.add(() => this.changed.fire());
  }

  /**
   * @param {Node} [node]
   * @returns {Node[]}
   */
  getChildren(node) {
    if (!node) return bySession(this.model.processes(), this.part).map((group) => ({ group }));
    return "group" in node ? node.group.processes.map((process) => ({ process })) : [];
  }

  /** @param {Node} node */
  getTreeItem(node) {
    if ("group" in node) {
      const { session, processes } = node.group;
      const item = new vscode.TreeItem(session ? clean(session) : "no session", vscode.TreeItemCollapsibleState.Expanded);
      item.id = `${this.part}:${session ?? ""}`;
      item.description = String(processes.length);
      item.contextValue = "session";
      return item;
    }
    const { process } = node;
    const item = new vscode.TreeItem(nameOf(process), vscode.TreeItemCollapsibleState.None);
    const [icon, colour] = ICONS[kindOf(process)];
    item.id = process.id;
    item.description = description(process);
    item.contextValue = contextValue(process);
    item.iconPath = new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
    item.command = { command: "toold.log", title: "Open Log", arguments: [node] };
    return item;
  }

  /**
   * Reads the details of a process when the mouse rests on it.
   * @param {vscode.TreeItem} item
   * @param {Node} node
   */
  async resolveTreeItem(item, node) {
    if (!("process" in node)) return item;
    const process = await this.rpc.call("inspect", { id: node.process.id });
    item.tooltip = tooltip(process, process.listeners ?? []);
    return item;
  }
}

module.exports = { ProcessTree, contextValue };
