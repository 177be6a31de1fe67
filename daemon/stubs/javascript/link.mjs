// Link of a process to the channel of its script: requests out, answers in, reconnect and repeat.
//
// Every request has an id that the daemon's journal knows, so the remedy for any damage of a connection is the same: drop
// it, connect again, send everything unanswered again. An open connection keeps the process alive only while an answer
// is due.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import net from "node:net";
import { dirname, join } from "node:path";

const MAX_PAUSE = 200; // milliseconds between two attempts to connect
const MAX_LINE_BYTES = 256 * 1024 * 1024; // an answer without an end is garbage
const MAX_BAD_LINKS = 8; // connections in a row that bring garbage
const LASTING = new Set(["denied", "invalid_params", "invalid_request", "method_not_found"]); // for a repeated hello too

/** A call that failed: `kind` and `data` are for programs, `message` is for people. */
export class ToolError extends Error {
  constructor(message, kind = "internal", data = {}, tool = undefined, call = undefined) {
    super(message);
    Object.assign(this, { kind, data, tool, call });
  }
  get name() {
    return this.constructor.name;
  }
}
export class ToolDenied extends ToolError {}
export class ToolTimeout extends ToolError {}
export class ToolLimit extends ToolError {}
export class ToolUnavailable extends ToolError {}
export class ToolInvalid extends ToolError {}
export class ToolConflict extends ToolError {}
export class ToolCancelled extends ToolError {}
export class OutcomeUnknown extends ToolError {}

const KINDS = {
  denied: ToolDenied,
  timeout: ToolTimeout,
  limit: ToolLimit,
  unavailable: ToolUnavailable,
  invalid_params: ToolInvalid,
  conflict: ToolConflict,
  cancelled: ToolCancelled,
  outcome_unknown: OutcomeUnknown,
};
const TIMEOUT_LIMITS = ["call_timeout_ms", "script.call_timeout_ms", "timeout_ms"];

function toolError(error, tool, call) {
  if (typeof error !== "object" || error === null) {
    return new ToolError(`${tool ?? "the daemon"}: the answer has neither a result nor an error`, "internal", {}, tool, call);
  }
  const data = typeof error.data === "object" && error.data !== null ? error.data : {};
  let kind = String(data.kind ?? { "-32602": "invalid_params", "-32800": "cancelled" }[error.code] ?? "internal");
  // A question that no person answered in time is `denied` with the reason `timeout`: to repeat it would ask again.
  if (TIMEOUT_LIMITS.includes(data.limit)) kind = "timeout";
  return new (Object.hasOwn(KINDS, kind) ? KINDS[kind] : ToolError)(String(error.message), kind, data, tool, call);
}

function encode(id, method, params) {
  const line = JSON.stringify({ jsonrpc: "2.0", id, method, params });
  if (line.includes("\\ud") && /(^|[^\\])(\\\\)*\\ud[89a-f]/.test(line)) {
    throw new ToolInvalid("an argument has a character that is not Unicode text", "invalid_params");
  }
  return line + "\n";
}

class Link {
  constructor() {
    const address = process.env.TOOLD_TOOLS ?? "";
    this.path = address.startsWith("unix:") ? address.slice(5) : undefined;
    this.prefix = randomBytes(4).toString("hex");
    this.count = 0;
    this.hellos = 0;
    this.hello = undefined; // id of the hello of this connection
    this.socket = undefined;
    this.timer = undefined; // of the next attempt to connect
    this.parts = []; // of a line whose end has not come
    this.size = 0;
    this.pending = new Map(); // id -> request, in the order in which they were sent
    this.cancelled = new Set(); // ids whose end has not come
    this.pause = 0;
    this.bad = 0;
    this.refused = undefined;
    // The kernel's cell that a call belongs to. A kernel replaces it; a program that a cell has started knows its variable.
    this.cellOf = () => (process.env.TOOLD_CELL ? Number(process.env.TOOLD_CELL) : undefined);
    if (this.path === undefined) {
      const message = "no channel for tools: run this as a script of toold, for example with `toolctl script`";
      this.refused = { message, data: { kind: "unavailable" } };
    }
  }

  /** Calls a tool. `above` is the function whose callers the stack of an error shows. */
  async call(tool, args, { timeout, signal } = {}, above = undefined) {
    const place = {};
    Error.captureStackTrace(place, above);
    const params = { name: tool, args };
    if (timeout !== undefined && timeout !== null) {
      if (!(timeout > 0)) throw new RangeError(`timeout is a number of seconds above 0, not ${timeout}`);
      params.timeout_ms = Math.max(1, Math.trunc(timeout * 1000));
    }
    const cell = this.cellOf();
    if (cell !== undefined) params.cell = cell;
    try {
      const { id, answer } = await this.start("tools.call", params, signal, cell);
      return await value(await answer, tool, id);
    } catch (error) {
      if (error instanceof ToolError) {
        error.tool = tool;
        error.stack = `${error.name}: ${error.message}\n${place.stack.split("\n").slice(1).join("\n")}`;
      }
      throw error;
    }
  }

  /** Sends a request that is not a call of a tool, and returns its result. */
  async request(method, params) {
    const { id, answer } = this.start(method, params);
    const found = await answer;
    if (found.result === undefined) throw toolError(found.error, undefined, id);
    return found.result;
  }

  report(what) {
    return this.request("script.report", what);
  }

  start(method, params, signal = undefined, cell = undefined) {
    signal?.throwIfAborted();
    const id = `${this.prefix}-${++this.count}`;
    const request = { id, line: encode(id, method, params), cell };
    const answer = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
    if (this.refused !== undefined) {
      request.resolve({ error: this.refused });
      return { id, answer };
    }
    this.pending.set(id, request);
    if (signal !== undefined) {
      const abort = () => this.cancel(request, signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      answer.finally(() => signal.removeEventListener("abort", abort)).catch(() => {});
    }
    if (this.socket === undefined) this.connect();
    else if (this.hello !== undefined) this.socket.write(request.line);
    this.keepAlive();
    return { id, answer };
  }

  cancel(request, reason = undefined) {
    if (!this.pending.delete(request.id)) return;
    this.cancelled.add(request.id);
    if (this.hello !== undefined) this.socket?.write(cancelLine(request.id));
    request.reject(reason ?? new ToolCancelled("the call was cancelled", "cancelled", {}, undefined, request.id));
    this.keepAlive();
  }

  /** Cancels the calls of a kernel's cell. */
  cancelCell(cell) {
    for (const request of [...this.pending.values()]) if (request.cell === cell) this.cancel(request);
  }

  keepAlive() {
    const busy = this.pending.size > 0;
    for (const handle of [this.socket, this.timer]) busy ? handle?.ref() : handle?.unref();
  }

  connect() {
    if (this.timer !== undefined || this.refused !== undefined) return;
    const socket = net.createConnection(this.path);
    Object.assign(this, { socket, hello: undefined, parts: [], size: 0 });
    socket.on("connect", () => {
      this.hello = `${this.prefix}-h${++this.hellos}`;
      const hello = encode(this.hello, "script.hello", { token: process.env.TOOLD_TOKEN ?? "", pid: process.pid });
      const lines = [...this.pending.values()].map((request) => request.line);
      socket.write(hello + [...this.cancelled].map(cancelLine).join("") + lines.join(""));
    });
    socket.on("data", (data) => this.socket === socket && this.feed(data));
    socket.on("error", (error) => {
      if (error.code === "ENOENT" && this.isOver()) {
        const message = "denied: the script has ended, and its authority with it";
        this.refuse({ message, data: { kind: "denied", reason: "retired" } });
      } else if (error.code === "EACCES" || error.code === "EPERM") {
        this.refuse({ message: `the channel cannot be opened: ${error.message}`, data: { kind: "unavailable" } });
      }
    });
    socket.on("close", () => this.socket === socket && this.drop());
    this.keepAlive();
  }

  /** Returns true if the script has ended: the daemon then removes this file and the socket, in any order. */
  isOver() {
    return !existsSync(join(dirname(this.path), "owner"));
  }

  /** Gives up a connection. The next one comes after a pause, if an answer is due. */
  drop() {
    const socket = this.socket;
    Object.assign(this, { socket: undefined, hello: undefined, parts: [], size: 0 });
    socket?.destroy();
    if (this.refused !== undefined || this.timer !== undefined) return;
    const next = () => {
      this.timer = undefined;
      if (this.pending.size > 0 && this.socket === undefined) this.connect();
    };
    this.timer = setTimeout(next, this.pause);
    this.pause = Math.min(Math.max(this.pause * 2, 5), MAX_PAUSE);
    this.keepAlive();
  }

  feed(data) {
    const end = data.lastIndexOf(10);
    if (end < 0) {
      this.parts.push(data);
      this.size += data.length;
      if (this.size > MAX_LINE_BYTES) this.garbage();
      return;
    }
    const text = Buffer.concat([...this.parts, data.subarray(0, end)]).toString();
    this.parts = end + 1 < data.length ? [data.subarray(end + 1)] : [];
    this.size = data.length - end - 1;
    const socket = this.socket;
    for (const line of text.split("\n")) {
      if (line.trim() === "") continue;
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        message = undefined;
      }
      if (typeof message !== "object" || message === null || Array.isArray(message) || typeof message.id === "object" && message.id !== null) {
        this.garbage();
        return;
      }
      this.take(message);
      if (this.socket !== socket) return;
    }
    this.keepAlive();
  }

  take(message) {
    let request = this.pending.get(message.id);
    if (request === undefined && message.id === null && message.error && this.pending.size > 0) {
      // The daemon could not read a request, so it does not know the id. The longest is the one that can be too long.
      request = [...this.pending.values()].reduce((a, b) => (b.line.length > a.line.length ? b : a));
    }
    if (request !== undefined) {
      this.pending.delete(request.id);
      this.bad = this.pause = 0; // not at the hello: a daemon may break at each call
      request.resolve(message);
    } else if (message.id !== undefined && message.id === this.hello) {
      if (LASTING.has(message.error?.data?.kind)) this.refuse(message.error);
      else if (message.result === undefined) this.drop();
    } else {
      this.cancelled.delete(message.id); // or an answer that came twice
    }
  }

  garbage() {
    if (++this.bad >= MAX_BAD_LINKS) {
      this.bad = 0;
      this.fail({ message: "the channel sends what is not JSON-RPC", data: { kind: "parse_error" } });
    }
    this.drop();
  }

  refuse(error) {
    this.refused = error;
    this.fail(error);
    this.drop();
  }

  fail(error) {
    for (const request of this.pending.values()) request.resolve({ error });
    this.pending.clear();
  }
}

function cancelLine(id) {
  return `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"${id}"}}\n`;
}

/** Returns the result of a tool from an answer, or throws its error. */
async function value(answer, tool, id) {
  const found = answer.result;
  if (typeof found !== "object" || found === null) throw toolError(answer.error, tool, id);
  if ("result" in found) return found.result;
  if (found.file === undefined) throw toolError(answer.error, tool, id);
  try {
    return JSON.parse(await readFile(found.file.path, "utf8"));
  } catch (error) {
    throw new ToolError(`${tool}: its large result cannot be read: ${error.message}`, "internal", {}, tool, id);
  }
}

export const link = new Link();

/** Describes an exception for a report. Frames of the runner, of the stub and of node itself are left out. */
export function describe(error, isOwn) {
  const isError = typeof error === "object" && error !== null && typeof error.stack === "string";
  const wellFormed = (text) => Buffer.from(String(text)).toString().slice(-65536);
  if (!isError) return { type: typeof error, message: wellFormed(error), line: null, traceback: wellFormed(error) };
  const hidden = /node_modules\/toold\/|\/run\.mjs:|\/kernel\.mjs:|\bnode:(internal|vm)\b/;
  const all = error.stack.split("\n");
  const driver = all.findIndex((line) => /^\s+at .*\bnode:inspector\b/.test(line)); // it evaluates the cells of a kernel
  const lines = all.slice(0, driver < 0 ? all.length : driver).filter((line) => !(/^\s+at /.test(line) && hidden.test(line)));
  const place = lines.map((line) => /^\s+at /.test(line) && isOwn(line)).find((found) => found);
  const type = error.name ?? error.constructor?.name ?? "Error";
  return {
    type: wellFormed(type),
    message: wellFormed(error.message),
    line: place ? Number(place[1]) : null,
    traceback: wellFormed(lines.join("\n") + "\n"),
  };
}
