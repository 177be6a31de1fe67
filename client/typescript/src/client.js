// The client: calls over one connection that is made again when it is lost.
"use strict";

const { randomUUID } = require("node:crypto");
const path = require("node:path");
const { Connector, Lost, defaultSocket } = require("./connection.js");
const { CalledProcessError, ConnectionLost, rpcError } = require("./errors.js");
const { METHODS } = require("./methods.js");
const { Process, pages, pageParts, returnCode } = require("./process.js");
const { Subscription } = require("./subscription.js");
const { Provider } = require("./provider.js");

// Connections that may be lost in a row without an answer between: more means that the daemon dies of this call.
const MAX_LOST_CONNECTIONS = 5;
// The parameter that limits how long a call waits. A repeated call waits for the rest.
const WAITS = { wait: "timeout_ms", poll: "wait_ms", "events.next": "wait_ms", "script.result": "wait_ms" };
const REPEAT = Object.fromEntries(Object.values(METHODS).map((one) => [one.method, one.repeat]));

/** Returns the parameters as they are sent: those that were given, with ids in place of processes. */
function prepare(method, params) {
  const sent = {};
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || value === null) continue;
    if (value instanceof Process) sent[name] = value.id;
    else if (Array.isArray(value)) sent[name] = value.map((one) => (one instanceof Process ? one.id : one));
    else sent[name] = value;
  }
  if (sent.cwd !== undefined && method !== "session.configure") sent.cwd = path.resolve(sent.cwd);
  // With a key the call can be repeated after a crash of the daemon, and starts nothing twice.
  if (method === "exec") sent.request_id ??= randomUUID();
  return sent;
}

function mayRepeat(method, params) {
  const repeat = REPEAT[method];
  return repeat === true || (typeof repeat === "string" && params[repeat] !== undefined);
}

function shorten(method, params, passed) {
  const name = WAITS[method];
  return params[name] ? { ...params, [name]: Math.max(1, params[name] - passed) } : params;
}

class Toold {
  #connector;
  // Aborted by `disconnect`, which makes a new one.
  #lifetime = new AbortController();
  #connecting;
  #connection;
  #wasLost = false;
  #waiting = new Map();
  #number = 0;
  #subscriptions = new Map();
  #subscriptionNumber = 0;
  #providers = new Map();
  // Also those that are not registered yet, or not any more.
  #openProviders = new Set();

  constructor({ socket, autostart = true, toolctl } = {}) {
    this.socket = socket ?? defaultSocket();
    this.#connector = new Connector(this.socket, autostart, toolctl);
  }

  /** Calls a method by its name on the wire, and returns its result unchanged. */
  async call(method, params = {}, { signal } = {}) {
    const sent = prepare(method, params);
    const begin = Date.now();
    const lifetime = this.#lifetime.signal;
    let wasSent = false;
    for (let losses = 0; ; ) {
      try {
        const now = losses ? shorten(method, sent, Date.now() - begin) : sent;
        return await this.#request(method, now, signal);
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        losses += 1;
        wasSent ||= error.sent;
        if (lifetime.aborted) throw new ConnectionLost(disconnectedMessage(method, wasSent), method);
        const isSafe = !error.sent || mayRepeat(method, sent);
        if (!isSafe || losses > MAX_LOST_CONNECTIONS) throw new ConnectionLost(lostMessage(this.socket, method, losses), method);
      }
    }
  }

  async #request(method, params, signal) {
    signal?.throwIfAborted();
    const connection = await this.#connect();
    signal?.throwIfAborted();
    const id = ++this.#number;
    const message = { jsonrpc: "2.0", id, method, params };
    return new Promise((resolve, reject) => {
      const abort = () => {
        if (connection.isOpen) connection.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
        settle(reject)(signal.reason);
      };
      const settle = (done) => (value) => {
        signal?.removeEventListener("abort", abort);
        this.#waiting.delete(id);
        connection.keepAlive(this.#waiting.size > 0);
        done(value);
      };
      const length = params?.command?.length ?? params?.data?.length ?? params?.data_base64?.length ?? 0;
      this.#waiting.set(id, { connection, resolve: settle(resolve), reject: settle(reject), length });
      signal?.addEventListener("abort", abort, { once: true });
      connection.keepAlive(true);
      try {
        connection.send(message);
      } catch (error) {
        settle(reject)(error);
      }
    });
  }

  /** Returns the connection. Several calls that find none share one attempt. */
  async #connect() {
    if (this.#connection?.isOpen) return this.#connection;
    if (this.#connection) this.#lose(this.#connection);
    this.#connecting ??= this.#open(this.#lifetime.signal);
    return this.#connecting;
  }

  async #open(lifetime) {
    try {
      const connection = await this.#connector.open(this.#wasLost, lifetime);
      if (lifetime.aborted) throw new Lost(false);
      connection.onmessage = (message) => this.#receive(message);
      connection.onlost = () => this.#lose(connection);
      // The calls that asked for it may have been cancelled.
      connection.keepAlive(false);
      this.#connection = connection;
      return connection;
    } finally {
      // After `disconnect` it is another attempt.
      if (!lifetime.aborted) this.#connecting = undefined;
    }
  }

  #receive(message) {
    let id = message.id;
    if (id === null && message.error) {
      // The daemon refuses to read a message that is too long, and cannot know its number.
      const longest = [...this.#waiting].sort(([, a], [, b]) => b.length - a.length)[0];
      id = longest?.[0];
    }
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    if (message.error) waiting.reject(rpcError(message.error));
    else waiting.resolve(message.result);
  }

  #lose(connection) {
    if (this.#connection === connection) {
      this.#connection = undefined;
      this.#wasLost = true;
    }
    for (const waiting of [...this.#waiting.values()]) {
      if (waiting.connection === connection) waiting.reject(new Lost(true));
    }
  }

  async _invoke({ method, process }, params, options) {
    if (method === "events.subscribe") return this.#subscribe(params, undefined).open();
    if (method === "events.unsubscribe") return this.#unsubscribe(params.subscription);
    if (method === "tools.register") return this.#register(params);
    if (method === "tools.unregister" && this.#providers.has(params.provider)) return this.#unregister(params.provider);
    const result = await this.call(method, params, options);
    return process ? new Process(this, result) : result;
  }

  #subscribe(params, consumer, from) {
    const number = ++this.#subscriptionNumber;
    const subscription = new Subscription(this, this.#connector, prepare("events.subscribe", params), consumer, from, number);
    this.#subscriptions.set(number, subscription);
    subscription.onclose = () => this.#subscriptions.delete(number);
    return subscription;
  }

  async #unsubscribe(subscription) {
    const known = this.#subscriptions.get(subscription?.subscription ?? subscription);
    known?.close();
    return known !== undefined;
  }

  async #register({ invoke, ...params }) {
    const provider = new Provider(this.#connector, invoke, prepare("tools.register", params));
    const lifetime = this.#lifetime.signal;
    this.#openProviders.add(provider);
    provider.onclose = () => this.#openProviders.delete(provider);
    let result;
    try {
      result = await provider.open();
    } catch (error) {
      provider.close();
      if (!(error instanceof Lost)) throw error;
      const method = "tools.register";
      throw new ConnectionLost(lifetime.aborted ? disconnectedMessage(method, error.sent) : lostMessage(this.socket, method, 1), method);
    }
    this.#providers.get(params.provider)?.close();
    this.#providers.set(params.provider, provider);
    return result;
  }

  #unregister(name) {
    const provider = this.#providers.get(name);
    this.#providers.delete(name);
    return provider.unregister();
  }

  /** Subscribes at the first `for await`. With `consumer` it begins after the last event that was acknowledged. */
  events({ consumer, from, ...params } = {}) {
    return this.#subscribe(params, consumer, from);
  }

  /** Returns a process by its id, its name or a unique prefix. */
  get(id) {
    return this.inspect({ id });
  }

  /** Returns the processes that `list` selects, the newest first. */
  async processes(params) {
    return (await this.list(params)).processes.map((one) => new Process(this, one));
  }

  /** Runs a program to its end: here, with this environment, its output on our own streams or captured. */
  async run(args, options = {}) {
    const { input, capture_output = false, encoding, check = false, timeout_ms, cwd, env, shell = false, ...params } = options;
    const list = Array.isArray(args) ? args : [args];
    const argv = shell ? ["/bin/sh", "-c", ...list] : list;
    const stdin = input === undefined ? "null" : "pipe";
    const whole = { env: { ...(env ?? process.env) }, env_mode: "replace" };
    const job = await this.exec({ argv, cwd: cwd ?? process.cwd(), ...whole, stdin, timeout_ms, ...params });
    if (input !== undefined) await job._feed(Buffer.from(input));
    const captured = { stdout: [], stderr: [] };
    for await (const page of pages(this, job.id, 0, { encoding: "base64", spans: true })) {
      for (const { stream, data } of pageParts(page)) {
        const name = stream === "stderr" ? "stderr" : "stdout";
        if (capture_output) captured[name].push(data);
        else await new Promise((done) => process[name].write(data, done));
      }
    }
    await job.wait();
    const text = (parts) => (encoding ? Buffer.concat(parts).toString(encoding) : Buffer.concat(parts));
    const output = capture_output ? { stdout: text(captured.stdout), stderr: text(captured.stderr) } : { stdout: null, stderr: null };
    const result = { args, returncode: returnCode(job), ...output, process: job };
    if (check && result.returncode !== 0) throw new CalledProcessError(result);
    return result;
  }

  /** Closes the connections, and rejects the calls that wait. Processes go on. A later call connects again. */
  disconnect() {
    for (const subscription of [...this.#subscriptions.values()]) subscription.close();
    for (const provider of [...this.#openProviders]) provider.close();
    this.#providers.clear();
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    this.#connection = undefined;
    this.#connecting = undefined;
  }
}

if (Symbol.dispose) Toold.prototype[Symbol.dispose] = Toold.prototype.disconnect;

for (const [name, description] of Object.entries(METHODS)) {
  Toold.prototype[name] = function (params = {}, options = undefined) {
    return this._invoke(description, params, options);
  };
}

/** `exec("make", {cwd})`, `exec(["make", "-j"], {cwd})` or `exec({command, cwd})`. */
Toold.prototype.exec = function (command, params = {}, options = undefined) {
  if (typeof command === "string") return this._invoke(METHODS.exec, { ...params, command }, options);
  if (Array.isArray(command)) return this._invoke(METHODS.exec, { ...params, argv: command }, options);
  return this._invoke(METHODS.exec, command, options ?? (Object.keys(params).length ? params : undefined));
};

function lostMessage(socket, method, losses) {
  if (losses > MAX_LOST_CONNECTIONS) return `${socket}: the daemon ended ${losses} times in a row during \`${method}\``;
  return `the daemon at ${socket} ended during \`${method}\`, and it is not known whether the call had an effect: look, then call again`;
}

function disconnectedMessage(method, wasSent) {
  const unknown = wasSent && REPEAT[method] !== true ? ", and it is not known whether the call had an effect" : "";
  return `the client was disconnected during \`${method}\`${unknown}`;
}

module.exports = { Toold };
