//! The reasons why a process does not start at once, as its record keeps them.

use serde::{Deserialize, Serialize};
use toold_proto::ProcId;
use toold_proto::approval::ApprovalId;
use toold_proto::params::{EnvMode, Limits};

/// The part of a spec that only a process has which waits for its turn. Never changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingSpec {
    /// The queue in which it needs a slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The processes that have to end first. Every one existed before this record, so there is no cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ProcId>,
    /// Those have to end well.
    pub after_ok: bool,
    /// The time before which it does not start, in milliseconds since 1970: the backoff of a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_at_ms: Option<u64>,
    /// The run that a call of `restart` ends first, with its whole tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ProcId>,
    /// The values of the environment came with that call. The shim of that run has them, beside its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given_env: bool,
    /// The shim of the run before, which failed in its sandbox, has the values of the environment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept_env: bool,
    /// The approval that it needs first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// Builds the environment again after the daemon died. None: it has values of its own, which only the daemon's memory
    /// has, and does not run without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_mode: Option<EnvMode>,
    /// The limits of the request: their control groups may have to be made again before the start.
    #[serde(skip_serializing_if = "is_unlimited")]
    pub limits: Limits,
}

impl PendingSpec {
    /// Returns true for a run that follows another one, whose shim has the environment.
    pub fn is_restart(&self) -> bool {
        self.restart_at_ms.is_some() || self.replaces.is_some() || self.kept_env
    }
}

fn is_unlimited(limits: &Limits) -> bool {
    *limits == Limits::default()
}
