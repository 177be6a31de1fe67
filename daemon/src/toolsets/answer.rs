//! The result of a call of a toolset, as the journal has it, and its errors as their models know them.

use super::codex::position::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use toold_proto::tools::Toolset;
use toold_proto::{ErrorKind, ProcId, RpcError};
use toold_tools::toolset::{codex, hermes};

/// A result, and facts about it that its client does not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolsetAnswer {
    /// A text, or an object.
    pub result: Value,
    /// The process that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadTo>,
}

/// The output of a session that a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadTo {
    pub process: ProcId,
    /// The cursor after it.
    pub to: u64,
    /// The result has the end of the process too.
    pub is_reported: bool,
}

/// A journal has another result than its call can have.
#[derive(Debug)]
pub struct AnswerError(serde_json::Error);

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the journal has no result of a toolset: {}", self.0)
    }
}

impl ReadTo {
    pub(super) fn position(&self) -> Position {
        Position { cursor: self.to, is_reported: self.is_reported }
    }
}

impl ToolsetAnswer {
    pub fn new(result: impl Into<Value>) -> ToolsetAnswer {
        let result = result.into();
        ToolsetAnswer { process: result.get("process").cloned(), result, read: None }
    }

    pub fn parse(result: &Value) -> Result<ToolsetAnswer, AnswerError> {
        ToolsetAnswer::deserialize(result).map_err(AnswerError)
    }

    pub fn print(&self) -> Result<Value, RpcError> {
        serde_json::to_value(self).map_err(|e| RpcError::new(ErrorKind::Internal, format!("print the result: {e}")))
    }
}

/// Returns true if a failure is a result for the model: it can do something about it. Others are for the program that called.
pub(super) fn is_result(error: &RpcError) -> bool {
    use ErrorKind::*;
    match error.kind() {
        Some(
            InvalidParams | NotFound | AmbiguousId | AlreadyExited | StdinUnavailable | Limit | Denied | SpawnFailed
            | AlreadyExists | Conflict | AlreadyDecided | NoMatch | AmbiguousMatch | ToolFailed,
        ) => true,
        Some(
            ParseError | InvalidRequest | MethodNotFound | Internal | Unavailable | OutcomeUnknown | Timeout
            | Cancelled,
        )
        | None => false,
    }
}

/// Returns an error in the form that the models of a toolset know.
pub fn error_for_model(toolset: Toolset, tool: &str, error: &RpcError) -> Value {
    // The text of the tool: a model does not know the names of this daemon's parameters.
    let problem = error.data.get("problem").and_then(Value::as_str);
    match (toolset, tool) {
        (Toolset::Codex, "apply_patch") => codex::patch_refused(&error.message).into(),
        (Toolset::Codex, _) => codex::failure(tool, &error.message).into(),
        (Toolset::Hermes, "process" | "execute_code") => hermes::error(problem.unwrap_or(&error.message)),
        (Toolset::Hermes | Toolset::Toold, _) => hermes::error(&error.message),
    }
}
