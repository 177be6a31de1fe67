//! The config of scripts, kernels and the redaction of secrets.

use super::Invalid;
use serde::{Deserialize, Serialize};

/// Scripts. The numbers are defaults that a call may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The tools of a script whose call names none.
    pub tools: Vec<String>,
    /// The interpreter of Python, if no virtual environment is active.
    pub python: String,
    pub node: String,
    /// Scripts may start commands that outlive them.
    pub background: bool,
    pub timeout_ms: u64,
    pub call_timeout_ms: u64,
    pub max_calls: u64,
    pub max_parallel: u64,
    /// Scripts and kernels that run at the same time.
    pub max_running: u64,
    /// The longest result of a call in an answer. A longer one is a file.
    pub max_result_bytes: u64,
}

/// Kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kernels {
    /// The most kernels of a session.
    pub max: u64,
    /// The time without a cell after which a kernel is ended.
    pub idle_ms: u64,
}

/// The redaction of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Redact {
    pub enabled: bool,
    /// Files with more rules, in the format of gitleaks.
    pub rules: Vec<String>,
    /// Parts of the names of variables with secrets.
    pub names: Vec<String>,
}

impl Default for Script {
    fn default() -> Self {
        let tools = ["terminal", "read_file", "write_file", "search_files", "patch"];
        Script {
            tools: tools.map(String::from).into(),
            python: "python3".into(),
            node: "node".into(),
            background: true,
            timeout_ms: 300_000,
            call_timeout_ms: 300_000,
            max_calls: 500,
            max_parallel: 16,
            max_running: 32,
            max_result_bytes: 16 << 20,
        }
    }
}

impl Default for Kernels {
    fn default() -> Self {
        Kernels { max: 8, idle_ms: 1_800_000 }
    }
}

impl Default for Redact {
    fn default() -> Self {
        let names = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"];
        Redact { enabled: true, rules: Vec::new(), names: names.map(String::from).into() }
    }
}

/// Returns the first invalid value.
pub fn first_invalid(script: &Script, kernel: &Kernels, redact: &Redact) -> Option<Invalid> {
    let checks = [
        (script.python.is_empty(), "script.python", "must not be empty"),
        (script.node.is_empty(), "script.node", "must not be empty"),
        (script.max_parallel == 0, "script.max_parallel", "must be at least 1"),
        (script.max_running == 0, "script.max_running", "must be at least 1"),
        (script.max_result_bytes < 1024, "script.max_result_bytes", "must be at least 1024"),
        (kernel.max == 0, "kernel.max", "must be at least 1"),
        (redact.names.iter().any(String::is_empty), "redact.names", "must not have an empty name"),
    ];
    let first = checks.into_iter().find(|(bad, _, _)| *bad);
    first.map(|(_, key, why)| Invalid { key: key.into(), why: why.into() })
}
