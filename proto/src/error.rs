//! The frozen error codes, and the kind a program tells them apart by.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Why a call failed, for programs. A code may have two kinds; a kind has one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
}

impl Kind {
    pub fn code(self) -> i32 {
        match self {
            Kind::ParseError => -32700,
            Kind::InvalidRequest => -32600,
            Kind::MethodNotFound => -32601,
            Kind::InvalidParams => -32602,
            Kind::Internal => -32603,
            Kind::NotFound | Kind::AmbiguousId => -32001,
            Kind::AlreadyExited => -32002,
            Kind::StdinUnavailable => -32003,
            Kind::Limit => -32004,
            Kind::Denied => -32005,
            Kind::SpawnFailed => -32006,
            Kind::AlreadyExists => -32007,
            Kind::Unavailable => -32008,
        }
    }

    /// The name in `data.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ParseError => "parse_error",
            Kind::InvalidRequest => "invalid_request",
            Kind::MethodNotFound => "method_not_found",
            Kind::InvalidParams => "invalid_params",
            Kind::Internal => "internal",
            Kind::NotFound => "not_found",
            Kind::AmbiguousId => "ambiguous_id",
            Kind::AlreadyExited => "already_exited",
            Kind::StdinUnavailable => "stdin_unavailable",
            Kind::Limit => "limit",
            Kind::Denied => "denied",
            Kind::SpawnFailed => "spawn_failed",
            Kind::AlreadyExists => "already_exists",
            Kind::Unavailable => "unavailable",
        }
    }

    /// What the kind means, one line, as `rpc.discover` prints it.
    pub fn meaning(self) -> &'static str {
        match self {
            Kind::ParseError => "the message is not JSON",
            Kind::InvalidRequest => "the message is JSON but not a JSON-RPC 2.0 request",
            Kind::MethodNotFound => "there is no such method",
            Kind::InvalidParams => "a parameter is wrong; data.param names it",
            Kind::Internal => "a defect of toold itself",
            Kind::NotFound => "no such process",
            Kind::AmbiguousId => "the prefix fits more than one process; data.matches lists some",
            Kind::AlreadyExited => "the process has exited; data.process carries the exit",
            Kind::StdinUnavailable => "started without stdin, or stdin is closed",
            Kind::Limit => "a limit is reached; data.limit is its config key",
            Kind::Denied => "policy said no; data.reason says why",
            Kind::SpawnFailed => "the program could not start; data has step, errno and path",
            Kind::AlreadyExists => "the name is in use; data.process is the running process",
            Kind::Unavailable => "a feature is missing here; the message says what to do",
        }
    }
}

/// An error answer: a code, a sentence for a person, and `data` with `kind` for a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(default)]
    pub data: Map<String, Value>,
}

impl RpcError {
    pub fn new(kind: Kind, message: impl Into<String>) -> RpcError {
        let mut data = Map::new();
        data.insert("kind".into(), kind.name().into());
        RpcError { code: kind.code(), message: message.into(), data }
    }

    /// A wrong parameter, by name.
    pub fn param(name: &str, message: impl fmt::Display) -> RpcError {
        RpcError::new(Kind::InvalidParams, format!("{name}: {message}")).with("param", name)
    }

    /// A limit that is reached, by its config key.
    pub fn limit(key: &str, message: impl fmt::Display) -> RpcError {
        RpcError::new(Kind::Limit, format!("{message} (config key `{key}`)")).with("limit", key)
    }

    /// The same error with one more fact in `data`.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> RpcError {
        self.data.insert(key.into(), value.into());
        self
    }

    /// The kind a program tells this error by, if it is one of ours.
    pub fn kind(&self) -> Option<Kind> {
        serde_json::from_value(self.data.get("kind")?.clone()).ok()
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}
