//! Stages: the changes of a process that ran on an overlay.

use crate::id::ProcId;
use crate::params::{is_default, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

params!(StageDiffParams { required { id: String } });
params!(StageDiscardParams { required { id: String } });

params!(
    StageCommitParams {
        required {
            id: String,
            /// The digest of the changes, from `stage.diff`.
            digest: String,
        }
        /// Only the changes at and below these paths, absolute or from the working directory. Default: all.
        paths: Option<Vec<String>>,
    }
);

/// The state of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageState {
    /// The process has not ended, or something of its tree runs.
    Running,
    /// The process has ended. Its changes wait for `stage.commit` or `stage.discard`.
    Ready,
    Committed,
    Discarded,
}

impl StageState {
    pub fn name(self) -> &'static str {
        match self {
            StageState::Running => "running",
            StageState::Ready => "ready",
            StageState::Committed => "committed",
            StageState::Discarded => "discarded",
        }
    }
}

/// The stage of a process, in its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStage {
    pub state: StageState,
    /// Directories on which the process sees an overlay. What it writes elsewhere is not staged.
    pub roots: Vec<String>,
}

/// The form of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StagedOp {
    Add,
    Update,
    /// Only mode, owner or extended attributes.
    Metadata,
    Delete,
}

/// The kind of a changed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StagedKind {
    File,
    Dir,
    Symlink,
    /// A pipe, a socket or a device.
    Special,
}

/// A changed file, directory or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedFile {
    /// Absolute.
    pub path: String,
    pub op: StagedOp,
    /// The kind after the change, or before a removal.
    pub kind: StagedKind,
    /// Permissions after the change, in octal.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub mode: Option<String>,
    /// Permissions before the change, in octal.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub before_mode: Option<String>,
    /// Bytes of a file after the change.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "u64")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub before_sha256: Option<String>,
    /// Lines in the diff. Absent if the diff does not show the file.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "u64")]
    pub added: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "u64")]
    pub removed: Option<u64>,
    /// True if it is not text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub binary: bool,
    /// True if it was changed below the overlay meanwhile: a commit of it is refused.
    #[serde(default, skip_serializing_if = "is_default")]
    pub conflict: bool,
}

/// The changes of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageDiffResult {
    pub id: ProcId,
    pub state: StageState,
    pub roots: Vec<String>,
    /// Names the changes for `stage.commit`. Null while the process runs, and after a commit or discard.
    pub digest: Option<String>,
    /// In the order of paths.
    pub files: Vec<StagedFile>,
    /// Number of all changes.
    pub total: u64,
    /// A unified diff of text files.
    pub diff: String,
    /// True if `files` or `diff` does not have everything. A commit has.
    pub truncated: bool,
    /// Pipes, sockets and devices that the process made. They are not carried over.
    pub skipped: Vec<String>,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageCommitResult {
    pub id: ProcId,
    /// `committed`, or `ready` if `paths` left changes.
    pub state: StageState,
    /// Changes that were made.
    pub files: Vec<StagedFile>,
    /// Number of them.
    pub total: u64,
    /// True if `files` does not have all of them.
    pub truncated: bool,
    /// Number of changes that are left.
    pub left: u64,
    /// The digest of those. Null if none is left.
    pub digest: Option<String>,
}

/// The result of a discard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageDiscardResult {
    pub id: ProcId,
    pub state: StageState,
}
