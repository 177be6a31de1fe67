// A terminal of the editor that shows a process: its output by subscription, keys to its input. Closing it detaches.
"use strict";

const vscode = require("vscode");
const { Follower } = require("./follow");
const { uniqueKey } = require("./rpc");
const { ending, nameOf, withoutQueries } = require("./text");

/** The most output of before that a terminal shows again: more than its scrollback keeps. */
const ATTACH_BYTES = 1024 * 1024;
/** The time that output may take after the exit of a program. A descendant can hold its end open for ever. */
const CLOSE_WAIT_MS = 500;
/** The time in which VS Code calls an end with an error a failure to launch, and a margin. */
const LAUNCH_MS = 600;
/** The exit code of a task whose process has none: its end was not observed, or it could not start. */
const UNKNOWN_EXIT = -1;
/** The most characters of one write. */
const MAX_WRITE_LEN = 64 * 1024;

/**
 * @typedef {object} TerminalOptions
 * @property {(size: { rows: number, cols: number } | undefined) => Promise<{ process: any, isNew: boolean }>} find
 *   Starts the process, or finds it.
 * @property {boolean} isWhole Show all output from the first byte on.
 * @property {boolean} closesAtExit Report the exit code as that of the terminal.
 * @property {(process: any) => void} [onProcess]
 * @property {(process: any) => void} [onExit]
 * @property {(process: any) => void} [onDetach] The terminal was closed while the process runs.
 */

/** @implements {vscode.Pseudoterminal} */
class ProcessTerminal {
  /**
   * @param {import("./rpc").Rpc} rpc
   * @param {TerminalOptions} options
   */
  constructor(rpc, options) {
    this.rpc = rpc;
    this.options = options;
    /** @type {vscode.EventEmitter<string>} */
    this.written = new vscode.EventEmitter();
    /** @type {vscode.EventEmitter<number>} */
    this.closed = new vscode.EventEmitter();
    /** @type {vscode.EventEmitter<string>} */
    this.named = new vscode.EventEmitter();
    this.onDidWrite = this.written.event;
    this.onDidClose = this.closed.event;
    this.onDidChangeName = this.named.event;
    /** @type {Follower | null} */
    this.follower = null;
    /** @type {any} */
    this.process = null;
    /** Output that ends before this offset is of the past. */
    this.liveFrom = 0;
    this.openedAt = 0;
    this.isClosed = false;
    this.hasEnded = false;
    this.endsWithReturn = false;
    /** Keys that wait for the write before them. */
    this.keys = "";
    this.isWriting = false;
    /** The line that is typed to a process without a terminal. */
    this.line = "";
    /** @type {NodeJS.Timeout | null} */
    this.closeTimer = null;
  }

  /** @param {vscode.TerminalDimensions | undefined} dimensions */
  async open(dimensions) {
    this.openedAt = Date.now();
    const size = dimensions && { rows: dimensions.rows, cols: dimensions.columns };
    try {
      const { process, isNew } = await this.options.find(size);
      this.process = process;
      this.options.onProcess?.(process);
      if (this.isClosed) return;
      if (!isNew && dimensions) this.setDimensions(dimensions);
      this.follow(isNew);
    } catch (failure) {
      const error = /** @type {import("./rpc").RpcError} */ (failure);
      this.note(error.message);
      this.end(error.data?.process ?? { exit_code: null });
    }
  }

  /** Detaches. The process goes on. */
  close() {
    this.isClosed = true;
    if (this.closeTimer) clearTimeout(this.closeTimer);
    this.follower?.stop();
    if (this.process && !this.hasEnded) this.options.onDetach?.(this.process);
  }

  /** @param {vscode.TerminalDimensions} dimensions */
  setDimensions({ rows, columns }) {
    if (!this.process?.pty || this.hasEnded) return;
    this.rpc.call("resize", { id: this.process.id, rows, cols: columns }).catch(() => {
      // It has ended: its exit is shown in a moment.
    });
  }

  /** @param {string} data */
  handleInput(data) {
    if (this.hasEnded) {
      if (!this.options.closesAtExit) this.closed.fire(0);
    } else if (!this.process || this.process.stdin === "null" || this.process.stdin === null) {
      this.written.fire("\x07");
    } else if (this.process.pty) {
      this.keys += data;
      this.write();
    } else {
      for (const key of data) this.editLine(key);
    }
  }

  /** @param {boolean} isNew */
  follow(isNew) {
    const { cursor } = this.process;
    const from = this.options.isWhole ? 0 : Math.max(0, (cursor ?? 0) - ATTACH_BYTES);
    if (from > 0) this.note(`${from} bytes before this are in the log`);
    this.liveFrom = isNew ? 0 : Infinity;
    const handlers = {
      onStart: (/** @type {any} */ process) => {
        this.process = process;
        if (!isNew) this.liveFrom = process.cursor;
      },
      onOutput: (/** @type {string} */ data, /** @type {number} */ end) => this.show(data, end),
      onGap: (/** @type {number} */ bytes) => this.note(`${bytes} bytes are not in the log any more`),
      onExit: (/** @type {any} */ process) => this.onExit(process),
      onClose: (/** @type {any} */ process) => this.end(process),
      onError: (/** @type {import("./rpc").RpcError} */ error) => this.onError(error),
    };
    this.follower = new Follower(this.rpc, this.process.id, handlers, { from });
  }

  /**
   * @param {string} data
   * @param {number} end
   */
  show(data, end) {
    const isPast = end <= this.liveFrom;
    const output = isPast || !this.process.pty ? withoutQueries(data) : data;
    this.written.fire(this.process.pty ? output : this.asTerminalLines(output));
  }

  /**
   * Returns output of a pipe with the line ends of a terminal.
   * @param {string} output
   */
  asTerminalLines(output) {
    const isSplit = this.endsWithReturn && output.startsWith("\n");
    this.endsWithReturn = output.endsWith("\r");
    const lines = output.replace(/\r?\n/g, "\r\n");
    return isSplit ? lines.slice(1) : lines;
  }

  /** @param {string} message */
  note(message) {
    this.written.fire(`\r\n\x1b[0;2m[${message}]\x1b[0m\r\n`);
  }

  /** @param {import("./rpc").RpcError} error */
  onError(error) {
    if (error.kind === "unreachable") return;
    this.note(error.message);
    this.end({ ...this.process, exit_code: null });
  }

  /** @param {any} process */
  onExit(process) {
    this.process = process;
    this.closeTimer = setTimeout(() => this.end(process), CLOSE_WAIT_MS);
  }

  /** @param {any} process */
  end(process) {
    if (this.closeTimer) clearTimeout(this.closeTimer);
    if (this.hasEnded || this.isClosed) return;
    this.hasEnded = true;
    this.follower?.stop();
    if (process.status) this.options.onExit?.(process);
    if (this.options.closesAtExit) {
      if (process.status === "lost") this.note(`${nameOf(process)} is lost: its end was not observed`);
      this.closeWith(process.exit_code ?? UNKNOWN_EXIT);
    } else if (process.status) {
      this.note(`${nameOf(process)} ${ending(process)}; press a key to close`);
    }
  }

  /** @param {number} code */
  closeWith(code) {
    const wait = code === 0 ? 0 : this.openedAt + LAUNCH_MS - Date.now();
    if (wait <= 0) this.closed.fire(code);
    else this.closeTimer = setTimeout(() => this.closed.fire(code), wait);
  }

  /** Sends the keys, one write after the other, each with a key of its own: nothing is typed twice. */
  async write() {
    if (this.isWriting) return;
    this.isWriting = true;
    while (this.keys !== "" && !this.isClosed) {
      const data = this.keys.slice(0, MAX_WRITE_LEN);
      this.keys = this.keys.slice(MAX_WRITE_LEN);
      try {
        const params = { id: this.process.id, data, write_id: uniqueKey() };
        const { bytes_written: written } = await this.rpc.call("write", params);
        if (written < Buffer.byteLength(data)) this.note("the program does not read; keys were dropped");
      } catch (failure) {
        const error = /** @type {import("./rpc").RpcError} */ (failure);
        if (error.kind !== "already_exited" && !this.hasEnded) this.note(error.message);
      }
    }
    this.isWriting = false;
  }

  /**
   * Edits the line for a process whose input is a pipe: there is no terminal that would do it.
   * @param {string} key
   */
  editLine(key) {
    const { id } = this.process;
    const onError = (/** @type {Error} */ error) => this.note(error.message);
    if (key === "\r") {
      this.written.fire("\r\n");
      this.rpc.call("submit", { id, data: this.line, write_id: uniqueKey() }).catch(onError);
      this.line = "";
    } else if (key === "\x7f") {
      if (this.line !== "") this.written.fire("\b \b");
      this.line = [...this.line].slice(0, -1).join("");
    } else if (key === "\x03") {
      this.written.fire("^C");
      this.rpc.call("signal", { id, signal: "SIGINT" }).catch(onError);
    } else if (key === "\x04") {
      if (this.line === "") this.rpc.call("close", { id }).catch(onError);
    } else if (key >= " " || key === "\t") {
      this.line += key;
      this.written.fire(key);
    }
  }
}

/**
 * Opens a terminal on a process that exists.
 * @param {import("./rpc").Rpc} rpc
 * @param {any} process
 * @param {(process: any) => void} onClosed
 */
function attach(rpc, process, onClosed) {
  const pty = new ProcessTerminal(rpc, {
    find: async () => ({ process: await rpc.call("inspect", { id: process.id }), isNew: false }),
    isWhole: false,
    closesAtExit: false,
    onExit: onClosed,
    onDetach: onClosed,
  });
  const iconPath = new vscode.ThemeIcon("server-process");
  return vscode.window.createTerminal({ name: nameOf(process), pty, iconPath });
}

module.exports = { ProcessTerminal, attach };
