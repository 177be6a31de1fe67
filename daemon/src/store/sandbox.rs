//! The confinement of a process, as its record keeps it: what was judged, by path and identity, and what was enforced.

use serde::{Deserialize, Serialize};
use toold_proto::sandbox::{Measure, Mechanisms, Network, NotEnforced, ProfileMode};

/// The part of a spec that only a confined process has. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The name of the profile that was asked for.
    pub profile: String,
    /// Never `full`.
    pub mode: ProfileMode,
    pub network: Network,
    pub cwd: JudgedPlace,
    pub roots: Vec<JudgedPlace>,
    /// Paths inside a root that stay read-only.
    pub protect: Vec<String>,
    /// Protected names that are not protected: they did not exist, or a link leads to them.
    pub unprotected: Vec<String>,
    /// Those of them that existed: a link leads to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<String>,
    /// Refused writes are seen.
    pub observe: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unix_sockets: Vec<String>,
    /// The directory through which it talks to the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Measure>,
    pub enforced: Vec<Measure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_enforced: Vec<NotEnforced>,
    pub by: Mechanisms,
}

/// A directory and its identity when it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedPlace {
    pub path: String,
    pub dev: u64,
    pub ino: u64,
}
