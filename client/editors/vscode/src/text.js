// Text for people: names, states, ages, the status bar; and the clean-up of output. Pure.
"use strict";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The most characters of a name that is made of a command. */
const MAX_NAME_LEN = 40;
/** The label of a process that has the name of its task. */
const TASK_LABEL = "vscode_task";

/**
 * Returns text that cannot move the cursor or hide: control characters and line ends become spaces.
 * @param {string} text
 */
function clean(text) {
  return text.replace(/\x1b\[[\d;:?]*[A-Za-z]/g, "").replace(/[\x00-\x1f\x7f]/g, " ");
}

/**
 * Returns the name of a process for people: its name, that of its task, or the start of its command.
 * @param {any} process
 */
function nameOf(process) {
  const name = clean(process.name ?? process.labels?.[TASK_LABEL] ?? process.command ?? process.id ?? "");
  return name.length > MAX_NAME_LEN ? `${name.slice(0, MAX_NAME_LEN - 1)}…` : name;
}

/** @param {any} process */
function isLive(process) {
  return process.status === "running" || process.status === "starting" || process.status === "pending";
}

/** @param {any} process */
function isAsking(process) {
  return isLive(process) && Boolean(process.needs_input);
}

/**
 * @param {any} process
 * @returns {"asks" | "running" | "ok" | "failed" | "lost"}
 */
function kindOf(process) {
  if (isAsking(process)) return "asks";
  if (isLive(process)) return "running";
  if (process.status === "lost") return "lost";
  return process.exit_code === 0 ? "ok" : "failed";
}

/**
 * Returns `running`, `asks`, `stopped`, `exited 2`, `SIGKILL killed`, `lost`.
 * @param {any} process
 */
function stateOf(process) {
  if (isAsking(process)) return "asks";
  if (isLive(process)) return process.stopped ? "stopped" : process.status;
  if (process.status === "lost") return "lost";
  if (process.signal) return process.reason === "signaled" ? process.signal : `${process.signal} ${process.reason}`;
  if (process.reason && process.reason !== "exited") return process.reason.replace("_", " ");
  return `exited ${process.exit_code}`;
}

/**
 * Returns `0.4s`, `12s`, `3m`, `2h`, `4d`.
 * @param {number} ms
 */
function duration(ms) {
  const time = Math.max(0, ms);
  if (time < SECOND_MS) return `${(Math.floor(time / 100) / 10).toFixed(1)}s`;
  if (time < MINUTE_MS) return `${Math.floor(time / SECOND_MS)}s`;
  if (time < HOUR_MS) return `${Math.floor(time / MINUTE_MS)}m`;
  if (time < DAY_MS) return `${Math.floor(time / HOUR_MS)}h`;
  return `${Math.floor(time / DAY_MS)}d`;
}

/**
 * Returns the text of the status bar: `$(server-process) 2 · 1 asks`. The first number counts all that run.
 * @param {any[]} processes
 * @param {boolean} isUp
 */
function statusText(processes, isUp) {
  if (!isUp) return "$(server-process) away";
  const running = processes.filter(isLive).length;
  const asking = processes.filter(isAsking).length;
  return `$(server-process) ${running}${asking > 0 ? ` · ${asking} asks` : ""}`;
}

/**
 * Describes a process in one line beside its name.
 * @param {any} process
 */
function description(process) {
  const parts = [stateOf(process)];
  for (const port of process.ports ?? []) parts.push(`:${port}`);
  const prompt = isAsking(process) ? clean(process.needs_input.prompt ?? "").trim() : "";
  const line = prompt || lastLine(process.preview ?? "");
  return line ? `${parts.join(" ")} · ${line}` : parts.join(" ");
}

/**
 * Returns the last line that has text.
 * @param {string} preview
 */
function lastLine(preview) {
  const lines = preview.split(/[\r\n]+/).map(clean);
  return (lines.filter((line) => line.trim() !== "").pop() ?? "").trim();
}

/**
 * Describes the end of a process: `exited 4 after 1s`.
 * @param {any} process
 */
function ending(process) {
  return `${stateOf(process)} after ${duration(process.uptime_ms ?? 0)}`;
}

/** Sequences by which a program asks its terminal for an answer: DSR, DA, XTVERSION, DECRQM, window reports, colours, DECRQSS. */
const QUERIES = new RegExp(
  [
    "\\x1b\\[\\??[56]n",
    "\\x1b\\[[>=?]?[0-9;]*c",
    "\\x1bZ",
    "\\x1b\\[>[0-9;]*q",
    "\\x1b\\[\\??[0-9;]*\\$p",
    "\\x1b\\[(?:1[13-9]|2[01])(?:;[0-9;]*)?t",
    "\\x1b\\[\\?u",
    "\\x1b\\](?:[0-9]+;)+\\?(?:\\x07|\\x1b\\\\)",
    "\\x1b\\](?:4;[0-9]+;\\?;?)+(?:\\x07|\\x1b\\\\)",
    "\\x1bP[$+]q[^\\x1b\\x07]*(?:\\x07|\\x1b\\\\)",
  ].join("|"),
  "g",
);

/**
 * Returns output of the past without queries: the terminal would answer them now, and type the answer into the program.
 * @param {string} output
 */
function withoutQueries(output) {
  return output.replace(QUERIES, "");
}

/**
 * Returns output as a page of text: a line that was drawn over itself is as it stood last.
 * @param {string} output Without escape sequences.
 */
function asPage(output) {
  return output.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "").replace(/\r$/gm, "");
}

module.exports = {
  TASK_LABEL,
  clean,
  nameOf,
  isLive,
  isAsking,
  kindOf,
  stateOf,
  duration,
  statusText,
  description,
  lastLine,
  ending,
  withoutQueries,
  asPage,
};
