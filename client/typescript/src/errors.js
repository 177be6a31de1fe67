// The errors of the client: one class for each kind of the daemon's errors, and those of the connection.
"use strict";

const { KINDS } = require("./methods.js");

/** Any error of this package. */
class TooldError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** The daemon refused a call. */
class RpcError extends TooldError {
  constructor(code, message, data = {}) {
    super(message);
    this.code = code;
    this.data = data;
    this.kind = data.kind ?? new.target.kind;
  }
}

/** No daemon answers, and none could be started. */
class DaemonUnreachable extends TooldError {}

/** The daemon ended during a call that must not be repeated, or `disconnect` ended the call. */
class ConnectionLost extends TooldError {
  constructor(message, method) {
    super(message);
    this.method = method;
  }
}

/** The time of a wait is over. The process keeps running. */
class WaitTimeout extends TooldError {
  constructor(message, process) {
    super(message);
    this.process = process;
  }
}

/** The log dropped a range of output before it was read. */
class OutputLost extends TooldError {
  constructor(from, to) {
    super(`the log dropped the output from ${from} to ${to}; go on with cursor ${to}`);
    this.from = from;
    this.to = to;
  }
}

/** `run` with `check`: the code is not 0. */
class CalledProcessError extends TooldError {
  constructor(result) {
    super(`command ${JSON.stringify(result.args)} returned ${result.returncode}`);
    Object.assign(this, result);
  }
}

const kinds = {};
const byKind = {};
for (const [kind, name] of Object.entries(KINDS)) {
  const one = { [name]: class extends RpcError {} }[name];
  Object.defineProperty(one, "name", { value: name });
  one.kind = kind;
  kinds[name] = byKind[kind] = one;
}

function rpcError({ code, message, data }) {
  return new (byKind[data?.kind] ?? RpcError)(code, message, data);
}

module.exports = {
  ...kinds, CalledProcessError, ConnectionLost, DaemonUnreachable, OutputLost, RpcError, TooldError, WaitTimeout, rpcError,
};
