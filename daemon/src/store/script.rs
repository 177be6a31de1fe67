//! The part of a process's record that only a script or a kernel has.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toold_proto::sandbox::SandboxSetting;
use toold_proto::script::Language;

/// A script: its language, its authority and the bounds of its result. Never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptSpec {
    /// None: any program.
    pub language: Option<Language>,
    /// The tools that it may call.
    pub tools: Vec<String>,
    pub max_calls: u64,
    pub max_parallel: u64,
    /// 0: no limit.
    pub call_timeout_ms: u64,
    pub max_output_bytes: u64,
    pub max_stderr_bytes: u64,
    pub redact: bool,
    /// The directory with its code, its stub and its channel.
    pub run_dir: PathBuf,
    /// The SHA-256 of its token, in hex. The token is in its environment only.
    pub token_sha256: String,
    /// The profile that the call named. Its calls have it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSetting>,
    /// It keeps its state and runs cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSpec>,
}

/// The part of a script that only a kernel has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// The time without a cell after which it is ended. 0: never.
    pub idle_ms: u64,
}
