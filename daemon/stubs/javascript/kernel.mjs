// Driver of a JavaScript kernel: takes cells from the channel, evaluates them in one global scope, reports their ends.
//
// V8's REPL mode evaluates: let, const and class may be declared again, await may stand at the top level. A call belongs to
// the cell whose code led to it, also from timers and promises.
//
// Two things end a cell and keep the state. The answer of kernel.stopping ends an await. SIGINT, which the daemon sends if
// that does not help, ends synchronous code up to the first await; between cells it does nothing. Neither ends a loop that
// runs after an await: node sees no signal then. SIGINT alone would not do: in the fraction of a millisecond in which node
// changes its handler, around the first await, a signal can be lost or end the process.
//
// Synchronous code is ended anywhere, also inside of a stream of node's, which then waits for ever for the end of its write.
// So output has no such state (Output), and the channel begins again on a new connection.
//
// A reset is an exec of the same program in the same process, so that its id, its pipes and its channel stay. A node that
// has no exec waits for the new one as for a child, and ends as it does.
import { AsyncLocalStorage } from "node:async_hooks";
import { spawnSync } from "node:child_process";
import { writeSync } from "node:fs";
import inspector from "node:inspector";
import module from "node:module";
import path from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import vm from "node:vm";
import * as stub from "./node_modules/toold/index.mjs";
import { describe, link, ToolError } from "./node_modules/toold/link.mjs";

const MAX_VALUE_BYTES = 64 * 1024;
const here = pathToFileURL(path.join(process.cwd(), "cell.mjs")).href;
const cells = new AsyncLocalStorage();
const session = new inspector.Session();
const AFTER = "TOOLD_KERNEL_AFTER"; // the last cell of the interpreter before this one
const start = { directory: process.cwd(), variables: { ...process.env } };
let interrupt; // ends the running cell

class Interrupted extends Error {}

/** Standard output or error: each write is whole before it returns, and leaves nothing behind if it is interrupted. */
class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: false });
    Object.assign(this, { fd, isTTY: false });
  }

  write(chunk, encoding, done) {
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    const data = typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = 0; at < data.length; ) {
      try {
        at += writeSync(this.fd, data, at);
      } catch (error) {
        if (error.code !== "EAGAIN") throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); // a program made the pipe non-blocking
      }
    }
    if (done) process.nextTick(done);
    return true;
  }

  end(chunk, encoding, done) {
    const last = [chunk, encoding, done].find((one) => typeof one === "function");
    if (chunk !== undefined && chunk !== null && chunk !== last) this.write(chunk, typeof encoding === "string" ? encoding : undefined);
    if (last) process.nextTick(last);
    return this;
  }

  cork() {}
  uncork() {}
  destroy() {
    return this;
  }
}

/** Imports a module as a file of the working directory would. */
async function importFromHere(specifier, options) {
  if (specifier === "toold") return stub;
  if (/^\.{0,2}\//.test(specifier)) return import(new URL(specifier, here), options);
  if (/^[a-z][a-z0-9+.-]+:/i.test(specifier) || module.isBuiltin(specifier)) return import(specifier, options);
  return import(pathToFileURL(module.createRequire(here).resolve(specifier)), options);
}

/** Rewrites imports, which a script cannot have, and keeps the lines. */
function withImports(code) {
  const statement = /^([ \t]*)import\s+(?:([\w$*\s{},]+?)\s+from\s+)?(["'])([^"'\n]+)\3[ \t]*;?/gm;
  const found = code.replace(statement, (whole, indent, clause, quote, name) => {
    const load = `await __toold_import(${JSON.stringify(name)});`;
    const lines = "\n".repeat(whole.split("\n").length - 1);
    if (clause === undefined) return `${indent}${load}${lines}`;
    const all = /\*\s*as\s+([\w$]+)/.exec(clause);
    const names = /\{([^}]*)\}/.exec(clause)?.[1].split(",").map((part) => part.trim()).filter(Boolean) ?? [];
    const parts = names.map((part) => part.replace(/\s+as\s+/, ": "));
    const first = /^\s*([\w$]+)/.exec(clause);
    if (first) parts.unshift(`default: ${first[1]}`);
    if (all) return `${indent}const ${all[1]} = ${load}${first ? ` const {default: ${first[1]}} = ${all[1]};` : ""}${lines}`;
    return `${indent}const {${parts.join(", ")}} = ${load}${lines}`;
  });
  return found.replace(/(?<![\w$.'"`])import\s*\((?!\s*\))/g, "__toold_import(");
}

function post(method, params) {
  return new Promise((resolve, reject) => session.post(method, params, (error, found) => (error ? reject(error) : resolve(found))));
}

/** Returns the value behind a description of it. */
async function valueOf(remote) {
  if (remote.objectId === undefined) {
    if (remote.unserializableValue === undefined) return remote.value;
    return new vm.Script(`(${remote.unserializableValue})`).runInThisContext();
  }
  let found;
  globalThis.__toold_take = (value) => (found = { value });
  await post("Runtime.callFunctionOn", {
    objectId: remote.objectId,
    functionDeclaration: "function () { __toold_take(this) }",
    silent: true,
  });
  delete globalThis.__toold_take;
  await post("Runtime.releaseObject", { objectId: remote.objectId });
  return found.value;
}

/** Evaluates code and returns its value. */
async function evaluate(code, number, name) {
  const expression = `${withImports(code)}\n//# sourceURL=${name}`;
  let running;
  globalThis.__toold_begin = () => {
    // An interrupt waits for this: before it, a signal would find nothing to interrupt.
    link.report({ cell: { number, status: "running" } }).catch(() => {});
    running = post("Runtime.evaluate", { expression, replMode: true, awaitPromise: true });
  };
  const interrupted = new Promise((resolve, reject) => (interrupt = () => reject(new Interrupted())));
  interrupted.catch(() => {});
  const end = interrupt;
  const stopping = link.request("kernel.stopping", { cell: number });
  stopping.then(({ stopping }) => stopping && end(), () => {}); // SIGINT is left
  try {
    new vm.Script("__toold_begin()").runInThisContext({ breakOnSigint: true });
  } catch (error) {
    if (error.code !== "ERR_SCRIPT_EXECUTION_INTERRUPTED") throw error;
    link.drop();
    throw new Interrupted();
  }
  const found = await Promise.race([running, interrupted]);
  if (found.exceptionDetails === undefined) return valueOf(found.result);
  const { exception, lineNumber } = found.exceptionDetails;
  throw Object.assign(new Failed(), { thrown: exception ? await valueOf(exception) : undefined, line: lineNumber + 1 });
}

/** What a cell threw. */
class Failed extends Error {}

function bounded(text) {
  const data = Buffer.from(text);
  if (data.length <= MAX_VALUE_BYTES) return data.toString();
  let end = MAX_VALUE_BYTES;
  while ((data[end] & 0xc0) === 0x80) end--; // not inside a character
  return `${data.subarray(0, end)}… (${data.length - end} more bytes)`;
}

async function run(number, code) {
  const end = { number, status: "ok" };
  const name = `cell-${number}`;
  try {
    const value = await cells.run(number, () => evaluate(code, number, name));
    if (value !== undefined) {
      globalThis._ = value;
      end.value = bounded(inspect(value, { maxArrayLength: 1000, maxStringLength: MAX_VALUE_BYTES }));
    }
  } catch (error) {
    if (error instanceof Interrupted) {
      link.cancelCell(number);
      const message = "the cell was interrupted; its state is kept";
      Object.assign(end, { status: "interrupted", error: { type: "Interrupted", message, line: null, traceback: `${message}\n` } });
    } else {
      const thrown = error instanceof Failed ? error.thrown : error;
      const description = describe(thrown, (line) => new RegExp(`\\b${name}:(\\d+)`).exec(line));
      if (error instanceof Failed && thrown instanceof SyntaxError) description.line ??= error.line;
      Object.assign(end, { status: "error", error: description });
    }
    process.stderr.write(end.error.traceback);
  } finally {
    interrupt = undefined;
  }
  return end;
}

/** Replaces the interpreter by a new one, with the directory and the variables of the first. */
function renew(cell) {
  try {
    process.chdir(start.directory);
  } catch {
    // removed by a cell
  }
  const args = [...process.execArgv, process.argv[1]];
  const env = { ...start.variables, [AFTER]: String(cell) };
  process.execve?.(process.execPath, [process.execPath, ...args], env);
  link.socket?.destroy();
  const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit", env });
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.reallyExit(status ?? 1);
}

for (const [name, fd] of [["stdout", 1], ["stderr", 2]]) {
  const output = new Output(fd);
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => output });
}
process.on("SIGINT", () => interrupt?.());
process.on("uncaughtException", (error) => process.stderr.write(describe(error, () => null).traceback));
process.exit = (code) => {
  throw new Error(`process.exit(${code ?? ""}) ends no kernel: close it with kernel.close`);
};
const { default: _, ...names } = { default: undefined, ...stub };
Object.assign(globalThis, names, { __toold_import: importFromHere, require: module.createRequire(here) });
session.connect();
setInterval(() => {}, 2 ** 30); // a cell that awaits what never comes must not end the process
link.cellOf = () => cells.getStore();
try {
  let after = Number(process.env[AFTER] ?? 0);
  delete process.env[AFTER];
  for (;;) {
    const { cell, code } = await link.request("kernel.next", { after });
    if (code === undefined) renew(cell);
    process.env.TOOLD_CELL = cell; // for the programs that it starts
    const end = await run(cell, code);
    await link.report({ cell: end });
    after = cell;
  }
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  process.stderr.write(`the kernel ends: ${error.message}\n`);
  process.reallyExit(1);
}
