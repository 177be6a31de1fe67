// The parameters of `exec` for a command of the editor: its directory, its environment, keys of its own. Pure.
"use strict";

const path = require("node:path");
const { uniqueKey } = require("./rpc");

/** Variables that VS Code sets for its own processes. */
const OWN_VARIABLES = /^(VSCODE_|ELECTRON_|CHROME_DESKTOP$|GIO_LAUNCHED_DESKTOP_FILE)/;
/** Shells that take `-c` as sh does. */
const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh", "fish"]);
/** The terminal that VS Code is. */
const TERM = "xterm-256color";

/**
 * Returns the editor's environment, without the variables of VS Code itself.
 * @param {NodeJS.ProcessEnv} env
 * @param {Record<string, string> | undefined} extra
 * @param {boolean} hasPty
 * @returns {Record<string, string>}
 */
function environment(env, extra, hasPty) {
  /** @type {Record<string, string>} */
  const result = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !OWN_VARIABLES.test(name)) result[name] = value;
  }
  if (hasPty) Object.assign(result, { TERM, COLORTERM: "truecolor" });
  for (const [name, value] of Object.entries(extra ?? {})) result[name] = String(value);
  return result;
}

/**
 * @typedef {object} Command
 * @property {string} [command] A command line for the shell.
 * @property {string[]} [argv] A program and its arguments.
 * @property {string} [name]
 * @property {Record<string, string>} [env]
 * @property {boolean} [pty] Give the program a terminal. Default: true.
 *
 * @typedef {object} Surroundings
 * @property {string} cwd
 * @property {NodeJS.ProcessEnv} env
 * @property {string} shell The user's shell, or an empty text.
 * @property {string} session
 * @property {{ rows: number, cols: number } | undefined} size
 * @property {Record<string, string>} labels
 */

/**
 * Builds the parameters.
 * @param {Command} command
 * @param {Surroundings} around
 */
function execParams(command, around) {
  const hasPty = command.pty !== false;
  const isKnownShell = path.isAbsolute(around.shell) && SHELLS.has(path.basename(around.shell));
  const program = command.argv
    ? { argv: command.argv }
    : { command: command.command, login: false, ...(isKnownShell ? { shell: around.shell } : {}) };
  return {
    ...program,
    cwd: around.cwd,
    env: environment(around.env, command.env, hasPty),
    env_mode: "replace",
    ...(command.name ? { name: command.name } : {}),
    ...(hasPty ? { pty: around.size ?? true } : { stdin: "pipe", merge: true }),
    session_key: around.session,
    request_id: uniqueKey(),
    labels: { client: "vscode", ...around.labels },
  };
}

module.exports = { environment, execParams };
