// Calls and subscriptions over the one connection to the daemon.
// After a loss, calls that may be repeated are sent again, and subscriptions go on after the last event that was received.
"use strict";

const { randomUUID } = require("node:crypto");
const { Connection } = require("./connection");

/** Methods that may be sent again after a lost connection: they read, or doing them twice is the same. */
const REPEATABLE = new Set(["daemon.info", "inspect", "kill", "list", "log", "poll", "resize"]);
/** Parameters that bind the effect of a call to a key. @type {Record<string, string>} */
const KEYS = { exec: "request_id", submit: "write_id", write: "write_id" };

/** An error of a call: `kind` is for programs, the message for people. */
class RpcError extends Error {
  /**
   * @param {string} kind
   * @param {string} message
   * @param {any} [data]
   */
  constructor(kind, message, data) {
    super(message);
    this.kind = kind;
    this.data = data ?? {};
  }
}

/** Returns a key that no other call has. */
function uniqueKey() {
  return `vscode-${randomUUID()}`;
}

/**
 * @typedef {object} Call
 * @property {number} id
 * @property {string} method
 * @property {any} params
 * @property {(result: any) => void} resolve
 * @property {(error: RpcError) => void} reject
 * @property {boolean} isSent
 * @property {boolean} isInternal Part of the opening of a subscription, which is opened again as a whole.
 */

/** Events of one filter, from now on, each once, also after a loss of the connection. */
class Subscription {
  /**
   * @param {any} params
   * @param {(event: any, isPast: boolean) => void} onEvent
   * @param {{ onReady?: () => void, replay?: number }} options
   */
  constructor(params, onEvent, options) {
    this.params = params;
    this.onEvent = onEvent;
    /** Called when it is open, and again after each reconnect: the time to read what came before. */
    this.onReady = options.onReady;
    /** Number of events of before that are wanted. */
    this.replay = options.replay ?? 0;
    /** @type {number | undefined} The newest event when it was first open. */
    this.base = undefined;
    /** @type {number | undefined} The last event that was received. */
    this.after = undefined;
    /** @type {number | undefined} The daemon's number, while it is open. */
    this.number = undefined;
    /** The parameters of the call that opens it. @type {any} */
    this.opening = undefined;
    this.isEnded = false;
  }
}

class Rpc {
  /**
   * @param {() => import("./connection").Place} place
   * @param {(kind: import("./connection").ReportKind, message: string) => void} report
   */
  constructor(place, report) {
    this.report = report;
    this.nextId = 1;
    /** @type {Map<number, Call>} */
    this.calls = new Map();
    /** @type {Set<Subscription>} */
    this.subscriptions = new Set();
    /** @type {Set<(state: import("./connection").State) => void>} */
    this.stateListeners = new Set();
    this.connection = new Connection(place, {
      onUp: () => this.onUp(),
      onMessage: (message) => this.onMessage(message),
      onLost: () => this.onLost(),
      onUnreachable: (kind, message) => this.rejectAll(kind, message),
      onState: (state) => this.stateListeners.forEach((listener) => listener(state)),
      report,
    });
  }

  get state() {
    return this.connection.state;
  }

  /**
   * Calls a method. Connects first if need be, and starts the daemon if none runs.
   * @param {string} method
   * @param {any} [params]
   * @returns {Promise<any>}
   */
  call(method, params) {
    const answer = this.addCall(method, params ?? {}, false);
    this.connection.connectForUser();
    return answer;
  }

  /**
   * Receives events from now on.
   * @param {any} params Of `events.subscribe`.
   * @param {(event: any, isPast: boolean) => void} onEvent
   * @param {{ onReady?: () => void, replay?: number }} [options]
   */
  subscribe(params, onEvent, options) {
    const subscription = new Subscription(params, onEvent, options ?? {});
    this.subscriptions.add(subscription);
    if (this.state === "up") this.open(subscription);
    else this.connection.connect();
    return subscription;
  }

  /** @param {Subscription} subscription */
  unsubscribe(subscription) {
    subscription.isEnded = true;
    this.subscriptions.delete(subscription);
    if (subscription.number !== undefined && this.state === "up") this.closeNumber(subscription.number);
  }

  /** Ends the connection and forgets calls and subscriptions. Processes go on. */
  close() {
    this.connection.close();
    this.subscriptions.clear();
    this.rejectAll("unreachable", "the connection was closed");
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {boolean} isInternal
   * @returns {Promise<any>}
   */
  addCall(method, params, isInternal) {
    return new Promise((resolve, reject) => {
      const call = { id: this.nextId++, method, params, resolve, reject, isSent: false, isInternal };
      this.calls.set(call.id, call);
      this.send(call);
    });
  }

  /** @param {Call} call */
  send(call) {
    if (this.state !== "up") return;
    call.isSent = true;
    this.connection.send({ jsonrpc: "2.0", id: call.id, method: call.method, params: call.params });
  }

  /** @param {number} number */
  closeNumber(number) {
    this.addCall("events.unsubscribe", { subscription: number }, true).catch(() => {
      // The connection went, and the subscription with it.
    });
  }

  /**
   * Subscribes after the newest event of now, which is read before: no event between is lost.
   * @param {Subscription} subscription
   */
  async open(subscription) {
    try {
      const { events } = await this.addCall("daemon.info", {}, true);
      if (subscription.isEnded) return;
      const oldest = events.oldest ?? 1;
      const first = Math.max(events.last - subscription.replay, oldest - 1, 0);
      subscription.base ??= events.last;
      // A journal that was removed counts from 1 again.
      subscription.after = Math.min(subscription.after ?? first, events.last);
      const params = { ...subscription.params, after: subscription.after };
      subscription.opening = params;
      const number = await this.addCall("events.subscribe", params, true);
      if (subscription.isEnded) this.closeNumber(number);
      else subscription.onReady?.();
    } catch (error) {
      const { kind, message } = /** @type {RpcError} */ (error);
      // After a loss all subscriptions are opened again.
      if (kind !== "unreachable") this.report("failure", `events: ${message}`);
    }
  }

  onUp() {
    for (const call of [...this.calls.values()]) if (!call.isSent) this.send(call);
    for (const subscription of this.subscriptions) this.open(subscription);
  }

  onLost() {
    for (const subscription of this.subscriptions) subscription.number = undefined;
    for (const call of [...this.calls.values()]) {
      const key = KEYS[call.method];
      const isRepeatable = REPEATABLE.has(call.method) || (key !== undefined && call.params[key] !== undefined);
      if (!call.isInternal && isRepeatable) {
        call.isSent = false;
      } else if (call.isSent) {
        const message = "the daemon went away before it answered; look at the list before you repeat it";
        this.finish(call, () => call.reject(new RpcError("unreachable", message)));
      }
    }
  }

  /**
   * @param {string} kind
   * @param {string} message
   */
  rejectAll(kind, message) {
    for (const call of [...this.calls.values()]) this.finish(call, () => call.reject(new RpcError(kind, message)));
  }

  /**
   * @param {Call} call
   * @param {() => void} settle
   */
  finish(call, settle) {
    if (this.calls.delete(call.id)) settle();
  }

  /** @param {any} message */
  onMessage(message) {
    if (message.method === "events.event") {
      this.onEvent(message.params);
      return;
    }
    const call = this.calls.get(message.id);
    if (!call) return;
    if (message.error) {
      const { message: text, data } = message.error;
      this.finish(call, () => call.reject(new RpcError(data?.kind ?? "internal", text, data)));
      return;
    }
    if (call.method === "events.subscribe") this.onOpen(call.params, message.result);
    this.finish(call, () => call.resolve(message.result));
  }

  /**
   * Gives a subscription its number before the next message is handled: events follow the answer at once.
   * @param {any} params
   * @param {number} number
   */
  onOpen(params, number) {
    for (const subscription of this.subscriptions) {
      if (subscription.opening === params) subscription.number = number;
    }
  }

  /** @param {{ subscription: number, result: any }} push */
  onEvent({ subscription: number, result: event }) {
    for (const subscription of [...this.subscriptions]) {
      if (subscription.number !== number) continue;
      if (event.seq !== undefined) subscription.after = Math.max(subscription.after ?? 0, event.seq);
      try {
        subscription.onEvent(event, event.seq !== undefined && event.seq <= (subscription.base ?? 0));
      } catch (error) {
        this.report("failure", `${error}`);
      }
    }
  }
}

module.exports = { Rpc, RpcError, uniqueKey };
