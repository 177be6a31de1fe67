// The whole output of one process, in order, from a byte to its end, across losses of the connection.
// Pushes of a subscription are used when they continue what was delivered. Everything else (output from before the
// subscription, a gap, a reconnect) is read with `poll` from the cursor on. So no byte is delivered twice or left out.
"use strict";

const { REPLAYED_EVENTS, factAfter, withFact } = require("./fact");

/** The most bytes of one page. The daemon's log is on disk, so a page is quick. */
const PAGE_BYTES = 256 * 1024;

/**
 * @typedef {object} FollowHandlers
 * @property {(process: any) => void} [onStart] Once, with the first answer.
 * @property {(data: string, end: number) => void} onOutput Output, and the offset of its end.
 * @property {(bytes: number) => void} [onGap] Bytes that the log has dropped.
 * @property {(process: any) => void} [onCurrent] All output of now was delivered.
 * @property {(process: any) => void} [onExit] After the output that came before the exit.
 * @property {(process: any) => void} [onClose] After all output.
 * @property {(error: import("./rpc").RpcError) => void} [onError]
 */

class Follower {
  /**
   * @param {import("./rpc").Rpc} rpc
   * @param {string} id
   * @param {FollowHandlers} handlers
   * @param {{ from?: number, ansi?: "keep" | "strip" }} [options]
   */
  constructor(rpc, id, handlers, options) {
    this.rpc = rpc;
    this.id = id;
    this.handlers = handlers;
    /** The end of what was delivered. */
    this.cursor = options?.from ?? 0;
    this.ansi = options?.ansi ?? "keep";
    /** @type {any} */
    this.process = null;
    /** @type {import("./fact").Fact | undefined} */
    this.fact = undefined;
    this.isExitDelivered = false;
    this.isPolling = false;
    this.isDirty = false;
    this.isEnded = false;
    const params = { id, output: true, ansi: this.ansi, types: ["exited", "closed"] };
    const onReady = () => this.catchUp();
    this.subscription = rpc.subscribe(params, (event) => this.onEvent(event), { onReady, replay: REPLAYED_EVENTS });
  }

  /** Ends the delivery. The process goes on. */
  stop() {
    if (this.isEnded) return;
    this.isEnded = true;
    this.rpc.unsubscribe(this.subscription);
  }

  /** Reads from the cursor on until the end of now. */
  async catchUp() {
    if (this.isPolling || this.isEnded) {
      this.isDirty = true;
      return;
    }
    this.isPolling = true;
    this.isDirty = false;
    const params = { id: this.id, cursor: this.cursor, max_bytes: PAGE_BYTES, ansi: this.ansi };
    try {
      const page = await this.rpc.call("poll", params);
      this.isPolling = false;
      if (!this.isEnded) this.onPage(page);
    } catch (failure) {
      const error = /** @type {import("./rpc").RpcError} */ (failure);
      this.isPolling = false;
      if (this.isEnded) return;
      this.handlers.onError?.(error);
      // If the daemon is away, the subscription catches up when it is back.
      if (error.kind !== "unreachable") this.stop();
    }
  }

  /** @param {any} page */
  onPage(page) {
    const isFirst = this.process === null;
    this.process = withFact(page, this.fact, Date.now());
    if (isFirst) this.handlers.onStart?.(this.process);
    if (page.from > this.cursor) this.handlers.onGap?.(page.from - this.cursor);
    if (page.output !== "") this.handlers.onOutput(page.output, page.next_cursor);
    const hasMore = page.next_cursor > this.cursor && page.next_cursor < page.cursor;
    this.cursor = Math.max(this.cursor, page.next_cursor);
    if (hasMore || this.isDirty) {
      this.catchUp();
      return;
    }
    this.deliverEnd();
  }

  deliverEnd() {
    const { status, closed } = this.process;
    this.handlers.onCurrent?.(this.process);
    if ((status === "exited" || status === "lost") && !this.isExitDelivered) {
      this.isExitDelivered = true;
      this.handlers.onExit?.(this.process);
    }
    if (closed && !this.isEnded) {
      this.handlers.onClose?.(this.process);
      this.stop();
    }
  }

  /** @param {any} event */
  onEvent(event) {
    if (this.isEnded) return;
    if (event.type !== "output") {
      this.fact = factAfter(this.fact, event, Date.now());
      this.catchUp();
    } else if (event.cursor === this.cursor && this.process && !this.isPolling) {
      this.cursor = event.next_cursor;
      this.handlers.onOutput(event.data, event.next_cursor);
    } else if (event.next_cursor > this.cursor) {
      this.catchUp();
    }
  }
}

module.exports = { Follower };
