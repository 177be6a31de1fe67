// Settings of the extension, read when they are needed: a change counts at once.
"use strict";

const os = require("node:os");
const vscode = require("vscode");
const { socketPath } = require("./socket");

function section() {
  return vscode.workspace.getConfiguration("toold");
}

/** @returns {import("./connection").Place} */
function place() {
  const settings = section();
  return {
    socket: socketPath(settings.get("socket"), process.env, process.getuid?.() ?? 0),
    toolctl: settings.get("toolctl") || "toolctl",
    autostart: settings.get("autostart", true),
  };
}

/** The `session_key` of processes that the editor starts. */
function session() {
  return section().get("session") || process.env.TOOLD_SESSION || "vscode";
}

/** @returns {"notice" | "input" | "off"} */
function questions() {
  return section().get("questions", "notice");
}

/** @returns {boolean} */
function restoresTasks() {
  return section().get("restoreTasks", true);
}

/** The directory of the first folder, else the home. */
function folderPath() {
  return vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? os.homedir();
}

module.exports = { place, session, questions, restoresTasks, folderPath };
