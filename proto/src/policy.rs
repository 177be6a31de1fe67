//! The settings of the policy: when a person is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cases in which a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// No person is asked: a question is a refusal.
    Never,
    /// Run in the sandbox; `escalate` asks.
    #[default]
    OnRequest,
    /// Run in the sandbox; if the sandbox made it fail, ask to run it again without.
    OnFailure,
    /// Ask, unless a rule allows it.
    Untrusted,
}

/// The verdict on a command that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// Allow it, in its sandbox.
    #[default]
    Allow,
    Ask,
}

/// The verdict on forced removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DangerPolicy {
    #[default]
    Ask,
    Deny,
    Allow,
}
