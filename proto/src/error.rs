//! Errors: the frozen codes, and the kinds by which programs distinguish them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The cause of a failed call, for programs. A code may have two kinds; a kind has one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    NotFound,
    AmbiguousId,
    AlreadyExited,
    StdinUnavailable,
    Limit,
    Denied,
    SpawnFailed,
    AlreadyExists,
    Unavailable,
    Conflict,
    AlreadyDecided,
    NoMatch,
    AmbiguousMatch,
    OutcomeUnknown,
    Timeout,
    ToolFailed,
    Cancelled,
}

impl ErrorKind {
    /// Every kind, in the order of the list above.
    pub const ALL: [ErrorKind; 22] = [
        ErrorKind::ParseError,
        ErrorKind::InvalidRequest,
        ErrorKind::MethodNotFound,
        ErrorKind::InvalidParams,
        ErrorKind::Internal,
        ErrorKind::NotFound,
        ErrorKind::AmbiguousId,
        ErrorKind::AlreadyExited,
        ErrorKind::StdinUnavailable,
        ErrorKind::Limit,
        ErrorKind::Denied,
        ErrorKind::SpawnFailed,
        ErrorKind::AlreadyExists,
        ErrorKind::Unavailable,
        ErrorKind::Conflict,
        ErrorKind::AlreadyDecided,
        ErrorKind::NoMatch,
        ErrorKind::AmbiguousMatch,
        ErrorKind::OutcomeUnknown,
        ErrorKind::Timeout,
        ErrorKind::ToolFailed,
        ErrorKind::Cancelled,
    ];

    pub fn code(self) -> i32 {
        match self {
            ErrorKind::ParseError => -32700,
            ErrorKind::InvalidRequest => -32600,
            ErrorKind::MethodNotFound => -32601,
            ErrorKind::InvalidParams => -32602,
            ErrorKind::Internal => -32603,
            ErrorKind::NotFound | ErrorKind::AmbiguousId => -32001,
            ErrorKind::AlreadyExited => -32002,
            ErrorKind::StdinUnavailable => -32003,
            ErrorKind::Limit => -32004,
            ErrorKind::Denied => -32005,
            ErrorKind::SpawnFailed => -32006,
            ErrorKind::AlreadyExists => -32007,
            ErrorKind::Unavailable => -32008,
            ErrorKind::Conflict | ErrorKind::AlreadyDecided | ErrorKind::NoMatch | ErrorKind::AmbiguousMatch => -32009,
            ErrorKind::OutcomeUnknown => -32010,
            ErrorKind::Timeout => -32011,
            ErrorKind::ToolFailed => -32012,
            ErrorKind::Cancelled => -32800,
        }
    }

    /// Returns the name in `data.kind`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::ParseError => "parse_error",
            ErrorKind::InvalidRequest => "invalid_request",
            ErrorKind::MethodNotFound => "method_not_found",
            ErrorKind::InvalidParams => "invalid_params",
            ErrorKind::Internal => "internal",
            ErrorKind::NotFound => "not_found",
            ErrorKind::AmbiguousId => "ambiguous_id",
            ErrorKind::AlreadyExited => "already_exited",
            ErrorKind::StdinUnavailable => "stdin_unavailable",
            ErrorKind::Limit => "limit",
            ErrorKind::Denied => "denied",
            ErrorKind::SpawnFailed => "spawn_failed",
            ErrorKind::AlreadyExists => "already_exists",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Conflict => "conflict",
            ErrorKind::AlreadyDecided => "already_decided",
            ErrorKind::NoMatch => "no_match",
            ErrorKind::AmbiguousMatch => "ambiguous_match",
            ErrorKind::OutcomeUnknown => "outcome_unknown",
            ErrorKind::Timeout => "timeout",
            ErrorKind::ToolFailed => "tool_failed",
            ErrorKind::Cancelled => "cancelled",
        }
    }

    /// Returns the meaning in one line, as `rpc.discover` prints it.
    pub fn meaning(self) -> &'static str {
        match self {
            ErrorKind::ParseError => "the message is not JSON",
            ErrorKind::InvalidRequest => "the message is JSON but not a JSON-RPC 2.0 request",
            ErrorKind::MethodNotFound => "no such method",
            ErrorKind::InvalidParams => {
                "a parameter is wrong; data.param names it, data.problem is the message without the name"
            }
            ErrorKind::Internal => "an internal error of toold",
            ErrorKind::NotFound => {
                "no such process, approval, grant or file; data.similar lists similar names of files"
            }
            ErrorKind::AmbiguousId => "the name or prefix matches more than one process; data.matches lists some",
            ErrorKind::AlreadyExited => "the process has exited; data.process has the details",
            ErrorKind::StdinUnavailable => {
                "no open stdin; data.reason is not_piped (started without one), closed, full (a terminal that takes no end-of-file now), or echo (a terminal that would show a secret)"
            }
            ErrorKind::Limit => "a limit is reached; data.limit is its config key",
            ErrorKind::Denied => "denied by policy; data.reason has the reason",
            ErrorKind::SpawnFailed => "the program could not start; data has step, errno and path",
            ErrorKind::AlreadyExists => "the name is in use; data.process is the running process",
            ErrorKind::Unavailable => "a feature is not available here; the message has the remedy",
            ErrorKind::Conflict => {
                "the request_id was used to run something else, and data.process is what it started; or a decision names another digest than data.digest; or a file is not as expected, and data has its path and sha256"
            }
            ErrorKind::AlreadyDecided => "the approval was decided before; data.approval has who decided, and what",
            ErrorKind::NoMatch => "the file does not have the text; data.nearest lists the nearest places",
            ErrorKind::AmbiguousMatch => "the file has the text more than once; data.matches lists lines",
            ErrorKind::OutcomeUnknown => {
                "the call may have happened, and nothing repeats it; data has call, tool, sent_at and what is known"
            }
            ErrorKind::Timeout => "the call took longer than its time and was ended; data has timeout_ms",
            ErrorKind::ToolFailed => "the tool ran and reports a failure; data.result has its answer",
            ErrorKind::Cancelled => {
                "the client cancelled the call with `$/cancelRequest`; nothing happened to processes"
            }
        }
    }
}

/// An error response: a code, a message for a person, and `data` with `kind` for a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(default)]
    pub data: Map<String, Value>,
}

impl RpcError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> RpcError {
        let mut data = Map::new();
        data.insert("kind".into(), kind.name().into());
        RpcError { code: kind.code(), message: message.into(), data }
    }

    /// Builds the error for one parameter. `data.param` is its path, `data.problem` the message without the path.
    pub fn param(path: &str, problem: impl fmt::Display) -> RpcError {
        let problem = problem.to_string();
        let message = format!("{path}: {problem}");
        RpcError::new(ErrorKind::InvalidParams, message).with("param", path).with("problem", problem)
    }

    /// Builds the error for a number below its minimum, with both in `data`: a client may print them in other units.
    pub fn too_small(path: &str, min: u64, given: i64) -> RpcError {
        RpcError::param(path, format!("must be at least {min}, not {given}")).with("min", min).with("given", given)
    }

    /// Makes the error for a limit that is reached, by its config key.
    pub fn limit(key: &str, message: impl fmt::Display) -> RpcError {
        RpcError::new(ErrorKind::Limit, format!("{message} (config key `{key}`)")).with("limit", key)
    }

    /// Adds a field to `data`.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> RpcError {
        self.data.insert(key.into(), value.into());
        self
    }

    /// Returns the kind, if it is one that this version knows.
    pub fn kind(&self) -> Option<ErrorKind> {
        serde_json::from_value(self.data.get("kind")?.clone()).ok()
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_list_at_its_place() {
        // The last one: a kind that is added after it moves this line.
        assert_eq!(ErrorKind::Cancelled as usize, ErrorKind::ALL.len() - 1);
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }
}
