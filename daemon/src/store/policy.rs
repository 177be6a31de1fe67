//! The part of a process's record that only one has which the policy of its session, a person or a grant decided about.

use serde::{Deserialize, Serialize};
use toold_proto::ProcId;
use toold_proto::approval::{Action, ApprovalId, Caller, GrantId};
use toold_proto::policy::RuleRef;

/// The permission under which a process runs. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicySpec {
    /// The approval that it waited for, or that of the run before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The grant that allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The process that failed in its sandbox, and that this one repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<ProcId>,
    /// The question that is asked if it fails in its sandbox. None: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetrySpec>>,
    /// The rules that allowed its commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRef>,
    /// Names of the daemon's variables that its session passes on, besides those of the config.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_pass: Vec<String>,
}

/// The question whether a process that failed in its sandbox may run once more, with less of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySpec {
    /// The command as a person decides on it, and the change of profile.
    pub action: Action,
    pub requested_by: Caller,
    pub timeout_ms: u64,
    /// Rules allow the wider profile: no person is asked.
    #[serde(default)]
    pub is_allowed: bool,
}
