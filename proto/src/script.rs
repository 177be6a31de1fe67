//! Scripts: programs that call tools, as they cross the socket.

use crate::approval::ApprovalId;
use crate::env::EnvMode;
use crate::fields::{FieldSet, ProcessFields, ProcessParams, WriteSelected};
use crate::id::ProcId;
use crate::params::{Limits, View, is_default, params};
use crate::pattern::Pattern;
use crate::process::Process;
use crate::sandbox::SandboxSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Python,
    Javascript,
    Bash,
}

impl Language {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Javascript => "javascript",
            Language::Bash => "bash",
        }
    }
}

params!(
    process ScriptRunParams {
        /// The text of the script. Either this or `file` or `argv`.
        code: Option<String>,
        /// The file of the script, absolute or from `cwd`.
        file: Option<String>,
        /// Default: `python`, or that of the ending of `file`.
        language: Option<Language>,
        /// Any program, in place of an interpreter: it finds the channel in its environment.
        argv: Option<Vec<String>>,
        /// The tools that it may call. Default: `script.tools` of the config. An empty list: none.
        tools: Option<Vec<String>>,
        /// A value for the script.
        args: Option<Value>,
        /// Absolute. Default: that of the session, else the home directory.
        cwd: Option<String>,
        /// Variables that override all others. Values are in memory only.
        env: BTreeMap<String, String>,
        env_mode: EnvMode,
        sandbox: Option<SandboxSetting>,
        limits: Limits,
        /// Kill the script after this time, also without a daemon. 0: never. Default: 300000.
        timeout_ms: Option<i64>,
        /// The time of one call, unless the call has its own. Default: 300000.
        call_timeout_ms: Option<i64>,
        /// The most calls. Default: 500.
        max_calls: Option<u64>,
        /// The most calls at the same time; others wait. Default: 16.
        max_parallel: Option<u64>,
        /// Wait up to this time for the end before answering. Default: 60000.
        yield_ms: Option<u64>,
        /// The most bytes of `output`. Default: 50000.
        max_output_bytes: Option<u64>,
        /// The most bytes of `stderr`. Default: 10000.
        max_stderr_bytes: Option<u64>,
        /// Hide secrets in the result. Default: true.
        redact: Option<bool>,
        name: Option<String>,
        task_id: Option<String>,
        session_key: Option<String>,
        labels: BTreeMap<String, String>,
        /// Publish a `completion` event.
        notify: bool,
        watch: Vec<Pattern>,
        /// The backend that runs it. Default: `local`.
        backend: Option<String>,
        /// The same key again returns the same script, and starts nothing.
        request_id: Option<String>,
    }
);

params!(
    process ScriptResultParams {
        required { id: String }
        /// Wait up to this time for the end.
        wait_ms: u64,
        /// The cell of a kernel. Default: the last one.
        cell: Option<u64>,
    }
);

/// The detail of a list of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallDetail {
    /// The first 80 characters of the arguments.
    #[default]
    Preview,
    /// All arguments.
    Full,
}

params!(
    ScriptCallsParams {
        required { id: String }
        /// Only calls after this one.
        after: Option<String>,
        /// Default: 200.
        limit: Option<u64>,
        detail: CallDetail,
        /// Only those of this cell of a kernel.
        cell: Option<u64>,
    }
);

params!(
    ScriptCancelParams {
        required { id: String }
        /// Only this call. Default: the script with all of its calls.
        call: Option<String>,
    }
);

/// The state of a script or a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStatus {
    /// It exited with code 0.
    Ok,
    /// It exited with another code, or did not start.
    Error,
    /// Its time was over.
    Timeout,
    /// `script.cancel`, `kill` or `session.end` ended it.
    Interrupted,
    /// A signal ended it that toold did not send, or the kernel for memory.
    Killed,
    Running,
    /// Its end could not be observed.
    Lost,
}

impl ScriptStatus {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ScriptStatus::Ok => "ok",
            ScriptStatus::Error => "error",
            ScriptStatus::Timeout => "timeout",
            ScriptStatus::Interrupted => "interrupted",
            ScriptStatus::Killed => "killed",
            ScriptStatus::Running => "running",
            ScriptStatus::Lost => "lost",
        }
    }
}

/// The part of a text that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// Bytes of the whole text, without escape sequences.
    pub total: u64,
    /// Bytes of it that are here.
    pub kept: u64,
    /// Bytes of it that are not.
    pub omitted: u64,
    /// Bytes that are here from its beginning.
    pub head: u64,
    /// Bytes that are here from its end.
    pub tail: u64,
}

/// An uncaught error of a script, as its language describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptError {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// The line of the script.
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub traceback: String,
}

/// A file with a result that is too long for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultFile {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A file that a script named as its product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A number of secrets of one kind that were hidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactedRule {
    pub rule: String,
    pub count: u64,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Running,
    Ok,
    Failed,
    Cancelled,
    /// It may have happened.
    Unknown,
}

/// A call in the result of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallSummary {
    pub call: String,
    pub tool: String,
    /// The first 80 characters of the arguments.
    pub args_preview: String,
    pub status: CallStatus,
    /// Null: it has not ended.
    pub ms: Option<u64>,
    /// Length of the result as JSON.
    pub bytes: u64,
}

/// The calls of a script.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// Calls that count: those in the journal.
    pub made: u64,
    pub refused: u64,
    pub failed: u64,
    /// Calls that may have happened.
    pub unknown: u64,
    /// The first and the last 50.
    pub log: Vec<CallSummary>,
}

/// The number of calls of a script that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishedCalls {
    pub made: u64,
    pub refused: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// The result of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
// Not the name of the method `script.result` in generated clients.
#[schemars(rename = "ScriptRunResult")]
pub struct ScriptResult {
    pub id: ProcId,
    pub status: ScriptStatus,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    /// The standard output.
    pub output: String,
    pub stderr: String,
    /// Null: `output` is complete.
    pub output_truncated: Option<Excerpt>,
    /// Null: `stderr` is complete.
    #[serde(default)]
    pub stderr_truncated: Option<Excerpt>,
    /// The value that the script gave to `result`; of a cell, the text of its last expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptError>,
    pub calls: CallCounts,
    pub artifacts: Vec<Artifact>,
    pub redacted: Vec<RedactedRule>,
    /// Layers of the redaction that could not be applied: `known_values`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted_without: Vec<String>,
    /// Advice for the author of the script.
    pub hints: Vec<String>,
    pub duration_ms: u64,
    pub log_path: String,
    pub process: Process,
    /// True if this call started nothing: an earlier one with the same `request_id` did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub existing: bool,
    /// The number of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u64>,
    /// The start of the cell's output in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The end of the cell's output in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// The process in the result of a script, whose fields a call selects.
pub struct ScriptProcess<'a>(&'a Process);

impl ProcessFields for ScriptProcess<'_> {
    const ADDED: &'static [&'static str] = &[];

    fn write_selected(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
        self.0.write_selected(selected, out)
    }
}

impl WriteSelected for ScriptResult {
    fn write_with(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let mut process = Vec::new();
        selected.write_object(&ScriptProcess(&self.process), None, &mut process)?;
        let mut whole = serde_json::to_value(self)?;
        whole["process"] = serde_json::from_slice(&process)?;
        serde_json::to_writer(out, &whole)
    }
}

/// A call in the journal of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalledCall {
    pub call: String,
    pub tool: String,
    /// The arguments, or their first 80 characters as text.
    pub args: Value,
    pub status: CallStatus,
    /// RFC 3339, UTC.
    pub at: String,
    pub ended_at: Option<String>,
    pub ms: Option<u64>,
    /// Length of the result as JSON.
    pub bytes: u64,
    /// The kind of the error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The process that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The approval that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The cell of a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u64>,
}

/// The calls of a script, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptCallsResult {
    pub id: ProcId,
    pub calls: Vec<JournalledCall>,
    /// Number of all calls.
    pub total: u64,
    /// More calls follow: `after` for the next page.
    pub next: Option<String>,
}

/// The result of `script.cancel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptCancelResult {
    pub id: ProcId,
    /// `cancelled`, or `ended` if there was nothing to cancel.
    pub status: String,
    /// The calls that were cancelled.
    pub calls: Vec<String>,
    /// Processes of the tree that survived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<i32>,
}

/// The script that a process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessScript {
    /// Null: any program, given as `argv`.
    pub language: Option<Language>,
    pub tools: Vec<String>,
    /// Calls so far.
    pub calls: u64,
    pub max_calls: u64,
}
