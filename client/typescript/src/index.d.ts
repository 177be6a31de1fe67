// The types of the package. Methods, their parameters and results are generated; see methods.d.ts and types.d.ts.
import type { Methods } from "./methods";
import * as types from "./types";

export * from "./kinds";
export { types };
export type { Methods };

export interface Options {
  /** The daemon's socket. Default: as `toolctl`, from TOOLD_SOCKET, XDG_RUNTIME_DIR or TMPDIR. */
  socket?: string;
  /** Start the daemon if none answers. Default: true. */
  autostart?: boolean;
  /** The program that starts it. Default: `toolctl` in PATH. */
  toolctl?: string;
}

export interface CallOptions {
  /** Cancels the call: the daemon ends its wait, and nothing happens to processes. */
  signal?: AbortSignal;
}

/** A call of a tool that this client serves. */
export interface ToolCall {
  call: string;
  name: string;
  args: Record<string, unknown>;
  session_key: string | null;
  task_id: string | null;
  deadline: string;
  /** Aborted when the call is cancelled or its time is over. */
  signal: AbortSignal;
}

export type ToolInvoker = (call: ToolCall) => unknown;

export interface EventsParams extends types.EventsSubscribeParams {
  /** Begin after the last event that this consumer acknowledged. */
  consumer?: string;
  /** The first event of a consumer that is new. Default: `oldest`. */
  from?: types.ConsumerStart;
}

export interface RunOptions extends Omit<types.ExecParams, "command" | "argv" | "stdin" | "timeout_ms" | "env" | "shell"> {
  input?: string | Uint8Array;
  /** Collect stdout and stderr in place of printing them. */
  capture_output?: boolean;
  /** Return text in this encoding in place of bytes. */
  encoding?: BufferEncoding;
  /** Throw `CalledProcessError` if the code is not 0. */
  check?: boolean;
  timeout_ms?: number;
  env?: Record<string, string | undefined>;
  shell?: boolean;
}

export interface RunResult {
  args: string | string[];
  /** The exit code; the negative number of the signal that ended it. */
  returncode: number | null;
  stdout: string | Buffer | null;
  stderr: string | Buffer | null;
  process: Process;
}

export interface Toold extends Methods {}

/** A client of the daemon: one method for each of its methods, and `run`, `events`, `get`. */
export class Toold {
  constructor(options?: Options);
  readonly socket: string;
  /** Calls a method by its name on the wire, and returns its result unchanged. */
  call(method: string, params?: object, options?: CallOptions): Promise<unknown>;
  /** Returns a process by its id, its name or a unique prefix. */
  get(id: string): Promise<Process>;
  /** Returns the processes that `list` selects, the newest first. */
  processes(params?: types.ListParams): Promise<Process[]>;
  /** Events as they come, without end. It subscribes at the first `for await`. */
  events(params?: EventsParams): Subscription;
  /** Runs a program to its end: here, with this environment. It belongs to the daemon, and goes on if this program ends. */
  run(args: string | string[], options?: RunOptions): Promise<RunResult>;
  /** Closes the connections, and rejects the calls that wait. Processes go on. A later call connects again. */
  disconnect(): void;
}

type Named<T> = Omit<T, "id">;

export interface StreamPart<T> {
  cursor: number;
  stream: types.Stream;
  data: T;
}

export interface Process extends types.Process {
  /** The output of the last answer: of `exec`, `poll` or `wait`. */
  output?: string;
  next_cursor?: number;
}

/** A process: the fields of the last answer about it, and the methods that take its id. */
export class Process {
  private constructor();
  /** Asks the daemon for the fields again. */
  refresh(): Promise<this>;
  inspect(): Promise<this>;
  poll(params?: Named<types.PollParams>): Promise<this>;
  log(params?: Named<types.LogParams>): Promise<types.LogResult>;
  /** Waits for the exit, or for `until`; without `timeout_ms` without end. Throws `WaitTimeout`; the process keeps running then. */
  wait(params?: Omit<types.WaitParams, "id" | "ids">, options?: CallOptions): Promise<this>;
  /** The lines of the output, without their ends, until it is closed. */
  follow(params?: { cursor?: number; stream?: types.Stream; ansi?: types.Ansi; collapse?: boolean }): AsyncGenerator<string, void, undefined>;
  /** The output as it comes. With `raw` its bytes. */
  stream(params: { raw: true; cursor?: number; stream?: types.Stream }): AsyncGenerator<StreamPart<Buffer>, void, undefined>;
  stream(params?: { raw?: false; cursor?: number; stream?: types.Stream }): AsyncGenerator<StreamPart<string>, void, undefined>;
  /** Writes to stdin. It is repeated after a lost connection, and written once. */
  write(data?: string | Uint8Array | null, params?: Named<types.WriteParams>): Promise<types.WriteResult>;
  /** Writes the data and a newline. */
  submit(data?: string | Uint8Array, params?: Named<types.SubmitParams>): Promise<types.WriteResult>;
  /** Closes stdin. */
  close(): Promise<types.CloseResult>;
  /** Kills the whole tree, and returns the receipt. */
  kill(params?: Pick<types.KillParams, "signal" | "grace_ms">): Promise<types.Killed>;
  /** Sends a signal to the group. */
  send_signal(signal: string | number): Promise<types.SignalResult>;
  pause(): Promise<this>;
  resume(): Promise<this>;
  /** Starts it again, and returns the new process. */
  restart(params?: Named<types.RestartParams>): Promise<Process>;
  resize(size: { rows: number; cols: number }): Promise<types.ResizeResult>;
  screen(): Promise<types.ScreenResult>;
  forget(): Promise<types.ForgetResult>;
  events(params?: Named<EventsParams>): Subscription;
}

/** An event or a push, by its `type`, with `ack`. */
export type Event = types.Notification & {
  /** Acknowledges this event and all before it, for the consumer of the subscription. */
  ack(): Promise<types.EventsAckResult>;
};

/** Events as they come. After a lost connection it goes on with the next number. */
export class Subscription implements AsyncIterableIterator<Event> {
  private constructor();
  readonly subscription: number;
  /** Subscribes, if that has not happened yet. */
  open(): Promise<this>;
  next(): Promise<IteratorResult<Event, undefined>>;
  return(): Promise<IteratorResult<Event, undefined>>;
  [Symbol.asyncIterator](): this;
  /** Ends the subscription. */
  close(): void;
}

/** Any error of this package. */
export class TooldError extends Error {}

/** The daemon refused a call. Each kind of error is a subclass. */
export class RpcError extends TooldError {
  constructor(code: number, message: string, data?: Record<string, unknown>);
  readonly code: number;
  readonly kind: string | undefined;
  readonly data: Record<string, unknown>;
}

/** No daemon answers, and none could be started. */
export class DaemonUnreachable extends TooldError {}

/** The daemon ended during a call that must not be repeated, or `disconnect` ended the call: it is not known whether it had an effect. */
export class ConnectionLost extends TooldError {
  readonly method: string;
}

/** The time of a wait is over. The process keeps running. */
export class WaitTimeout extends TooldError {
  readonly process: Process;
}

/** The log dropped a range of output before it was read. Go on with `cursor: error.to`. */
export class OutputLost extends TooldError {
  readonly from: number;
  readonly to: number;
}

/** `run` with `check`: the code is not 0. */
export class CalledProcessError extends TooldError implements RunResult {
  args: string | string[];
  returncode: number | null;
  stdout: string | Buffer | null;
  stderr: string | Buffer | null;
  process: Process;
}
