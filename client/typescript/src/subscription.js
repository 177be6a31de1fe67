// Events as they come, over a connection of their own: a slow reader holds up no call.
"use strict";

const { Lost } = require("./connection.js");
const { ConnectionLost, TooldError, rpcError } = require("./errors.js");

// Pushes that are held for a reader before the connection is not read any more.
const MAX_HELD_PUSHES = 64;
const MAX_LOST_CONNECTIONS = 5;

/** An event: its fields, and `ack`. */
class Event {
  #client;
  #consumer;

  constructor(client, consumer, fields) {
    this.#client = client;
    this.#consumer = consumer;
    Object.assign(this, fields);
  }

  /** Acknowledges this event and all before it, for the consumer of the subscription. */
  async ack() {
    if (this.#consumer === undefined) throw new TooldError("only an event of a consumer can be acknowledged: events({consumer})");
    return this.#client.events_ack({ consumer: this.#consumer, seq: this.seq });
  }
}

class Subscription {
  #client;
  #connector;
  #params;
  #consumer;
  #from;
  #connection;
  #opening;
  #wasOpen = false;
  #closing = new AbortController();
  #last;
  #cursors = new Map();
  #pushes = [];
  #wake = () => {};

  constructor(client, connector, params, consumer, from, number) {
    this.#client = client;
    this.#connector = connector;
    this.#params = params;
    this.#consumer = consumer;
    this.#from = from;
    this.#last = params.after;
    this.subscription = number;
    this.onclose = () => {};
  }

  /** Subscribes, if that has not happened yet. */
  async open() {
    if (!this.#connection && !this.#isClosed) {
      this.#opening ??= this.#open(this.#closing.signal).finally(() => (this.#opening = undefined));
      try {
        await this.#opening;
      } catch (error) {
        // One that was closed meanwhile has ended, and has not failed.
        if (!this.#isClosed) throw error;
      }
    }
    return this;
  }

  get #isClosed() {
    return this.#closing.signal.aborted;
  }

  async #open(signal) {
    if (this.#consumer !== undefined && this.#last === undefined) {
      const { position } = await this.#client.call("events.next", { consumer: this.#consumer, limit: 1, from: this.#from }, { signal });
      this.#last = position;
    }
    // Without a number a loss before the first event would lose events.
    if (this.#last === undefined) this.#last = (await this.#client.call("daemon.info", {}, { signal })).events.last;
    for (let losses = 0; ; ) {
      const connection = await this.#connector.open(this.#wasOpen || losses > 0, signal);
      try {
        await this.#subscribe(connection);
        this.#connection = connection;
        this.#wasOpen = true;
        return;
      } catch (error) {
        connection.close();
        losses += 1;
        if (!(error instanceof Lost)) throw error;
        if (losses > MAX_LOST_CONNECTIONS) {
          throw new ConnectionLost(`${this.#connector.path}: the daemon ended ${losses} times in a row`, "events.subscribe");
        }
      }
    }
  }

  /** Subscribes. Events may come before the answer. */
  #subscribe(connection) {
    return new Promise((resolve, reject) => {
      connection.onlost = () => {
        reject(new Lost(true));
        if (this.#connection === connection) this.#connection = undefined;
        this.#wake();
      };
      connection.onmessage = (message) => {
        if (message.method === "events.event") this.#receive(connection, message.params.result);
        else if (message.error) reject(rpcError(message.error));
        else resolve();
      };
      const params = { ...this.#params, after: this.#last };
      connection.send({ jsonrpc: "2.0", id: 1, method: "events.subscribe", params });
    });
  }

  #receive(connection, push) {
    if (push.seq !== undefined) {
      if (push.seq <= this.#last) return;
      this.#last = push.seq;
    }
    if (this.#params.output && typeof push.id === "string") this.#checkOutput(push);
    this.#pushes.push(push);
    if (this.#pushes.length >= MAX_HELD_PUSHES) connection.pause();
    this.#wake();
  }

  /** Reports output that was missed between two connections. */
  #checkOutput(push) {
    const { type, id } = push;
    const known = this.#cursors.get(id);
    if (type === "started" && known === undefined) this.#cursors.set(id, 0);
    if (type === "lagged") this.#cursors.set(id, push.to);
    const start = type === "output" ? push.cursor : type === "closed" ? push.bytes : undefined;
    if (start === undefined) return;
    if (known !== undefined && start > known) this.#pushes.push({ type: "lagged", of: "output", id, from: known, to: start });
    if (type === "closed") this.#cursors.delete(id);
    else this.#cursors.set(id, push.next_cursor);
  }

  async next() {
    while (!this.#isClosed) {
      const push = this.#pushes.shift();
      if (push) {
        if (this.#pushes.length === 0) this.#connection?.resume();
        return { done: false, value: new Event(this.#client, this.#consumer, push) };
      }
      if (!this.#connection) {
        await this.open();
        continue;
      }
      await new Promise((resolve) => (this.#wake = resolve));
    }
    return { done: true, value: undefined };
  }

  async return() {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** Ends the subscription. */
  close() {
    this.#closing.abort();
    this.#connection = undefined;
    this.onclose();
    this.#wake();
  }
}

module.exports = { Event, Subscription };
