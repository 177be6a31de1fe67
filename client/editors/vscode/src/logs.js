// Read-only documents of scheme `toold:`: the log of a process, live while it is open, and searches over all logs.
"use strict";

const vscode = require("vscode");
const { Follower } = require("./follow");
const { asPage, nameOf } = require("./text");

const SCHEME = "toold";
/** The most characters of a document. VS Code gives up on much larger ones; `toolctl log` has all. */
const MAX_PAGE_LEN = 8 * 1024 * 1024;
/** The time between two updates of a document while output comes. */
const UPDATE_MS = 300;
/** The most lines of a search. */
const MAX_MATCHES = 1000;

/** @param {any} process */
function logUri(process) {
  const name = nameOf(process).replace(/[^\w.-]+/g, "_");
  return vscode.Uri.from({ scheme: SCHEME, path: `/${name}.log`, query: process.id });
}

/** @param {string} pattern */
function searchUri(pattern) {
  return vscode.Uri.from({ scheme: SCHEME, path: "/search.log", query: `grep=${encodeURIComponent(pattern)}` });
}

/** The text of one log that is open. */
class Page {
  /**
   * @param {import("./rpc").Rpc} rpc
   * @param {string} id
   * @param {() => void} onChange
   */
  constructor(rpc, id, onChange) {
    this.output = "";
    this.cut = 0;
    /** @type {NodeJS.Timeout | null} */
    this.timer = null;
    this.onChange = onChange;
    this.isCurrent = false;
    this.ready = new Promise((resolve, reject) => {
      const handlers = {
        onOutput: (/** @type {string} */ data) => this.append(data),
        onGap: (/** @type {number} */ bytes) => this.append(`\n[${bytes} bytes are not in the log any more]\n`),
        onCurrent: () => {
          this.isCurrent = true;
          resolve(undefined);
        },
        onError: reject,
      };
      this.follower = new Follower(rpc, id, handlers, { ansi: "strip" });
    });
  }

  /** @param {string} data */
  append(data) {
    this.output += data;
    if (this.output.length > 2 * MAX_PAGE_LEN) {
      this.cut += this.output.length - MAX_PAGE_LEN;
      this.output = this.output.slice(-MAX_PAGE_LEN);
    }
    if (!this.isCurrent || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.onChange();
    }, UPDATE_MS);
  }

  text() {
    const head = this.cut > 0 ? `[${this.cut} characters before this; toolctl log has all]\n` : "";
    return head + asPage(this.output);
  }

  stop() {
    if (this.timer) clearTimeout(this.timer);
    this.follower?.stop();
  }
}

/** @implements {vscode.TextDocumentContentProvider} */
class Logs {
  /** @param {import("./rpc").Rpc} rpc */
  constructor(rpc) {
    this.rpc = rpc;
    /** @type {Map<string, Page>} */
    this.pages = new Map();
    /** @type {vscode.EventEmitter<vscode.Uri>} */
    this.changed = new vscode.EventEmitter();
    this.onDidChange = this.changed.event;
  }

  /** @param {vscode.Uri} uri */
  async provideTextDocumentContent(uri) {
    if (uri.query.startsWith("grep=")) return this.search(decodeURIComponent(uri.query.slice("grep=".length)));
    const key = uri.toString();
    let page = this.pages.get(key);
    if (!page) {
      page = new Page(this.rpc, uri.query, () => this.changed.fire(uri));
      this.pages.set(key, page);
    }
    try {
      await page.ready;
    } catch (error) {
      this.forget(uri);
      throw error;
    }
    return page.text();
  }

  /**
   * Ends the updates of a document that was closed.
   * @param {vscode.Uri} uri
   */
  forget(uri) {
    const key = uri.toString();
    this.pages.get(key)?.stop();
    this.pages.delete(key);
  }

  stop() {
    for (const page of this.pages.values()) page.stop();
    this.pages.clear();
  }

  /** @param {string} pattern */
  async search(pattern) {
    const found = await this.rpc.call("log", { grep: pattern, limit: MAX_MATCHES });
    const head = `${found.matches.length} lines match ${pattern} in ${found.searched} logs`;
    const lines = found.matches.map((/** @type {any} */ { id, name, line, text }) => `${name ?? id}:${line + 1}: ${text}\n`);
    return `${head}${found.truncated ? "; some were left out" : ""}\n\n${lines.join("")}`;
  }
}

module.exports = { Logs, SCHEME, logUri, searchUri };
