//! The part of a process's record that only one has which a person was asked about.

use serde::{Deserialize, Serialize};
use toold_proto::ProcId;
use toold_proto::approval::{ApprovalId, GrantId};

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
}
