// A class of errors for each kind.
// Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
import { RpcError } from "./index";

/** the message is not JSON. */
export class ParseError extends RpcError {}

/** the message is JSON but not a JSON-RPC 2.0 request. */
export class InvalidRequest extends RpcError {}

/** no such method. */
export class MethodNotFound extends RpcError {}

/** a parameter is wrong; data.param names it, data.problem is the message without the name. */
export class InvalidParams extends RpcError {}

/** an internal error of toold. */
export class Internal extends RpcError {}

/** no such process, approval, grant or file; data.similar lists similar names of files. */
export class NotFound extends RpcError {}

/** the name or prefix matches more than one process; data.matches lists some. */
export class AmbiguousId extends RpcError {}

/** the process has exited; data.process has the details. */
export class AlreadyExited extends RpcError {}

/** no open stdin; data.reason is not_piped (started without one), closed, full (a terminal that takes no end-of-file now), or echo (a terminal that would show a secret). */
export class StdinUnavailable extends RpcError {}

/** a limit is reached; data.limit is its config key. */
export class Limit extends RpcError {}

/** denied by policy; data.reason has the reason. */
export class Denied extends RpcError {}

/** the program could not start; data has step, errno and path. */
export class SpawnFailed extends RpcError {}

/** the name is in use; data.process is the running process. */
export class AlreadyExists extends RpcError {}

/** a feature is not available here; the message has the remedy. */
export class Unavailable extends RpcError {}

/** the request_id was used to run something else, and data.process is what it started; or a decision names another digest than data.digest; or a file is not as expected, and data has its path and sha256. */
export class Conflict extends RpcError {}

/** the approval was decided before; data.approval has who decided, and what. */
export class AlreadyDecided extends RpcError {}

/** the file does not have the text; data.nearest lists the nearest places. */
export class NoMatch extends RpcError {}

/** the file has the text more than once; data.matches lists lines. */
export class AmbiguousMatch extends RpcError {}

/** the call may have happened, and nothing repeats it; data has call, tool, sent_at and what is known. */
export class OutcomeUnknown extends RpcError {}

/** the call took longer than its time and was ended; data has timeout_ms. */
export class Timeout extends RpcError {}

/** the tool ran and reports a failure; data.result has its answer. */
export class ToolFailed extends RpcError {}

/** the client cancelled the call with `$/cancelRequest`; nothing happened to processes. */
export class Cancelled extends RpcError {}
