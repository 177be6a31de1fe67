// A process: the fields of the last answer about it, and the methods that take its id.
"use strict";

const { randomUUID } = require("node:crypto");
const { AlreadyExited, OutputLost, StdinUnavailable, WaitTimeout } = require("./errors.js");

// Milliseconds that one call waits: below `max_wait_ms` of any sensible config.
const CALL_WAIT_MS = 600000;
// Bytes of a page of output.
const PAGE_BYTES = 1 << 18;
// Bytes of one write.
const WRITE_BYTES = 1 << 16;
// The fields of a page; a process may have large others.
const PAGE_FIELDS = ["status", "closed", "output", "from", "next_cursor", "gap", "spans"];

/** Yields the pages of the output until it is closed. */
async function* pages(client, id, cursor, params) {
  for (;;) {
    const own = { id, cursor, wait_ms: CALL_WAIT_MS, max_bytes: PAGE_BYTES, fields: PAGE_FIELDS };
    const page = await client.call("poll", { ...params, ...own });
    if (page.gap) throw new OutputLost(page.gap.from, page.gap.to);
    const isAtEnd = page.next_cursor <= cursor;
    cursor = page.next_cursor;
    yield page;
    if (isAtEnd && (page.closed || page.status === "lost")) return;
  }
}

/** Splits a page of bytes by stream. */
function pageParts(page) {
  const data = Buffer.from(page.output, "base64");
  const part = ({ stream, from, to }) => ({ cursor: from, stream, data: data.subarray(from - page.from, to - page.from) });
  return (page.spans ?? []).map(part).filter((one) => one.data.length > 0);
}

/** Returns the exit code as most libraries have it: the negative number of a signal. */
function returnCode(process) {
  return process.exit_code !== null && process.signal ? 128 - process.exit_code : process.exit_code;
}

function dataParams(data) {
  if (data === undefined || data === null) return {};
  return typeof data === "string" ? { data } : { data_base64: Buffer.from(data).toString("base64") };
}

class Process {
  #client;

  constructor(client, fields) {
    this.#client = client;
    Object.assign(this, fields);
  }

  #update(fields) {
    return Object.assign(this, fields);
  }

  /** Asks the daemon for the fields again. */
  async refresh() {
    return this.#update(await this.#client.call("inspect", { id: this.id }));
  }

  inspect() {
    return this.refresh();
  }

  async poll(params = {}) {
    return this.#update(await this.#client.call("poll", { ...params, id: this.id }));
  }

  log(params = {}) {
    return this.#client.log({ ...params, id: this.id });
  }

  /** Waits for the exit, or for `until`. Without `timeout_ms` it waits without end. */
  async wait({ timeout_ms, ...params } = {}, options = undefined) {
    const deadline = timeout_ms === undefined ? Infinity : Date.now() + timeout_ms;
    for (;;) {
      const left = Math.max(1, Math.min(deadline - Date.now(), CALL_WAIT_MS));
      const answer = await this.#client.call("wait", { ...params, id: this.id, timeout_ms: left }, options);
      this.#update(answer.processes[0]);
      if (answer.status !== "timeout") return this;
      if (Date.now() >= deadline) throw new WaitTimeout(`timed out after ${timeout_ms} ms; the process keeps running`, this);
    }
  }

  /** Yields the lines of the output, without their ends, until it is closed. */
  async *follow({ cursor = 0, ...params } = {}) {
    let rest = "";
    for await (const page of pages(this.#client, this.id, cursor, params)) {
      const lines = (rest + page.output).split("\n");
      rest = lines.pop();
      for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (rest) yield rest;
  }

  /** Yields the output as it comes: cursor, stream, and text; with `raw`, bytes. */
  async *stream({ cursor = 0, raw = false, stream } = {}) {
    const decoders = {};
    let end = cursor;
    for await (const page of pages(this.#client, this.id, cursor, { encoding: "base64", spans: true, stream })) {
      for (const part of pageParts(page)) {
        end = part.cursor + part.data.length;
        if (raw) {
          yield part;
          continue;
        }
        decoders[part.stream] ??= new TextDecoder("utf-8", { ignoreBOM: true });
        const text = decoders[part.stream].decode(part.data, { stream: true });
        if (text) yield { ...part, data: text };
      }
    }
    for (const [name, decoder] of Object.entries(decoders)) {
      const text = decoder.decode();
      if (text) yield { cursor: end, stream: name, data: text };
    }
  }

  /** `write`, repeated after a lost connection and written once. */
  write(data, params = {}) {
    return this.#client.write({ write_id: randomUUID(), ...params, ...dataParams(data), id: this.id });
  }

  /** `submit`: the data and a newline. */
  submit(data = "", params = {}) {
    return this.#client.submit({ write_id: randomUUID(), ...params, ...dataParams(data), id: this.id });
  }

  /** Writes all of stdin and closes it. A program that ends before is not an error. */
  async _feed(data) {
    try {
      for (let done = 0; done < data.length; ) {
        done += (await this.write(data.subarray(done, done + WRITE_BYTES))).bytes_written;
      }
      await this.close();
    } catch (error) {
      if (!(error instanceof AlreadyExited || error instanceof StdinUnavailable)) throw error;
    }
  }

  close() {
    return this.#client.close({ id: this.id });
  }

  /** Kills the whole tree. Returns the receipt. */
  async kill(params = {}) {
    const receipt = (await this.#client.kill({ ...params, id: this.id })).results[0];
    await this.refresh();
    return receipt;
  }

  /** Sends a signal to the group. `signal` is the field of the wire: the one that ended it. */
  send_signal(signal) {
    return this.#client.signal({ id: this.id, signal: String(signal) });
  }

  async pause() {
    return this.#update(await this.#client.call("pause", { id: this.id }));
  }

  async resume() {
    return this.#update(await this.#client.call("resume", { id: this.id }));
  }

  /** Starts it again. Returns the new process. */
  restart(params = {}) {
    return this.#client.restart({ ...params, id: this.id });
  }

  resize({ rows, cols }) {
    return this.#client.resize({ id: this.id, rows, cols });
  }

  screen() {
    return this.#client.screen({ id: this.id });
  }

  forget() {
    return this.#client.forget({ ids: [this.id] });
  }

  events(params = {}) {
    return this.#client.events({ ...params, id: this.id });
  }
}

module.exports = { Process, pageParts, pages, returnCode };
