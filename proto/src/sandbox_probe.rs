//! The result of `sandbox.probe`: forbidden acts that were tried in a confined process.

use crate::sandbox::Mechanisms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A mechanism that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedMechanism {
    /// `auto`: all that this machine has, `namespaces` or `landlock`, as in the config.
    pub mechanism: String,
    /// A process could be confined by it.
    pub available: bool,
    /// The reason why it is not available.
    #[serde(default)]
    pub why: Option<String>,
    /// The parts that confined the process.
    #[serde(default)]
    pub by: Option<Mechanisms>,
}

/// An act that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedAct {
    pub mechanism: String,
    /// `write`, `chmod`, `rename_protected`, `tcp`, `udp`, `abstract_socket`, `unix_socket`, `kill`, `ptrace`, `mount`, `setuid` or
    /// `read_hidden`.
    pub act: String,
    /// The measure that refuses it.
    pub measure: String,
    /// `refused`, or `not_enforced` if this mechanism does not promise it.
    pub expected: String,
    /// `refused`, `done`, or `unknown` if the process did not report it.
    pub got: String,
}

/// The forbidden acts that were tried, and those that were possible.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SandboxProbeResult {
    /// RFC 3339, UTC.
    pub at: String,
    pub mechanisms: Vec<ProbedMechanism>,
    pub acts: Vec<ProbedAct>,
    /// Those of `acts` that were expected to be refused and were not.
    pub gaps: Vec<ProbedAct>,
}
