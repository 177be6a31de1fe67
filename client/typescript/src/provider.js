// Tools that a client serves: `tools.register` keeps a connection, over which the daemon asks for each call.
"use strict";

const { Lost } = require("./connection.js");
const { ConnectionLost, RpcError, TooldError, rpcError } = require("./errors.js");

// The code of an error that a tool threw and that is none of the daemon's own kinds.
const TOOL_FAILED = -32012;
const MAX_LOST_CONNECTIONS = 5;

class Provider {
  #connector;
  #invoke;
  #params;
  #connection;
  #calls = new Map();
  #answers = new Map();
  #number = 0;
  #closing = new AbortController();

  constructor(connector, invoke, params) {
    this.#connector = connector;
    this.#invoke = invoke;
    this.#params = params;
    this.onclose = () => {};
  }

  async open(afterLoss = false) {
    const connection = await this.#connector.open(afterLoss, this.#closing.signal);
    connection.onmessage = (message) => this.#receive(connection, message);
    connection.onlost = () => this.#lose(connection);
    this.#connection = connection;
    try {
      return await this.#request("tools.register", this.#params);
    } catch (error) {
      connection.onlost = () => {};
      connection.close();
      throw error;
    }
  }

  #request(method, params) {
    const id = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, reject });
      this.#connection.send({ jsonrpc: "2.0", id, method, params });
    });
  }

  #receive(connection, message) {
    const answer = this.#answers.get(message.id);
    if (!message.method && answer) {
      this.#answers.delete(message.id);
      if (message.error) answer.reject(rpcError(message.error));
      else answer.resolve(message.result);
    } else if (message.method === "tools.invoke") this.#run(connection, message.id, message.params);
    else if (message.method === "$/cancelRequest") this.#calls.get(message.params.id)?.abort();
    else if (message.method === "tools.replaced") this.close();
  }

  async #run(connection, id, params) {
    const cancelled = new AbortController();
    this.#calls.set(id, cancelled);
    const answer = { jsonrpc: "2.0", id };
    try {
      answer.result = (await this.#invoke({ ...params, signal: cancelled.signal })) ?? null;
    } catch (error) {
      const own = error instanceof RpcError ? { code: error.code, data: { kind: error.kind, ...error.data } } : { code: TOOL_FAILED };
      answer.error = { ...own, message: error instanceof Error ? error.message : String(error) };
    }
    this.#calls.delete(id);
    try {
      connection.send(answer);
    } catch (error) {
      // The daemon ends the call by its own rules.
      if (!(error instanceof Lost)) throw error;
    }
  }

  async #lose(connection) {
    for (const answer of this.#answers.values()) answer.reject(new Lost(true));
    this.#answers.clear();
    if (this.#closing.signal.aborted || connection !== this.#connection) return;
    for (let losses = 0; losses < MAX_LOST_CONNECTIONS; losses += 1) {
      try {
        await this.open(true);
        return;
      } catch (error) {
        // It was closed, or the daemon refuses or is gone for good.
        if (this.#closing.signal.aborted || error instanceof TooldError) return;
      }
    }
  }

  /** Withdraws the tools, over the connection that offers them: no other one may. */
  async unregister() {
    try {
      return await this.#request("tools.unregister", { provider: this.#params.provider });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      const reason = this.#closing.signal.aborted ? "the provider was closed" : `the daemon at ${this.#connector.path} ended`;
      throw new ConnectionLost(`${reason} during \`tools.unregister\``, "tools.unregister");
    } finally {
      this.close();
    }
  }

  close() {
    this.#closing.abort();
    this.onclose();
  }
}

module.exports = { Provider };
