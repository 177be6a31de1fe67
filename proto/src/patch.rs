//! Patches: parameters and results of `patch.apply` and `patch.revert`.

use crate::files::HardLinks;
use crate::params::params;
use crate::sandbox::SandboxSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The treatment of operations that depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchMode {
    /// Every operation is checked against the files as they are, and all happen or none.
    #[default]
    Atomic,
    /// Each operation sees those before it, so several may change one file. Ends at the first that fails: those before it
    /// happen, together.
    Sequential,
}

params!(PatchApplyParams {
    required {
        /// The patch, from `*** Begin Patch` to `*** End Patch`.
        patch: String,
    }
    /// The directory from which its paths are meant, and the first root. Absolute. Default: that of the session; without one,
    /// paths must be absolute.
    cwd: Option<String>,
    mode: PatchMode,
    /// Check the patch and change nothing.
    check: bool,
    /// The hash of files before the patch, by path: SHA-256 in hexadecimal digits, or `absent`. Another one is a `conflict`.
    expect: BTreeMap<String, String>,
    hard_links: HardLinks,
    /// The same id again returns the result of the first call.
    request_id: Option<String>,
    session_key: Option<String>,
    task_id: Option<String>,
    /// The profile whose roots hold all files. Default: that of the session, or of the config. A person is asked for files outside.
    sandbox: Option<SandboxSetting>,
    /// The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default: `policy.approval_timeout_ms`.
    approval_timeout_ms: Option<u64>,
});

params!(PatchRevertParams {
    required {
        /// The patch, as `patch.apply` returned it.
        patch_id: String,
    }
    /// The same id again waits for the answer to the same question, if a person is asked.
    request_id: Option<String>,
    session_key: Option<String>,
    task_id: Option<String>,
    /// The profile whose roots hold all files. Default: that of the session, or of the config. A person is asked for files outside.
    sandbox: Option<SandboxSetting>,
    /// The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default: `policy.approval_timeout_ms`.
    approval_timeout_ms: Option<u64>,
});

/// The outcome of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchStatus {
    /// All of it happened.
    Applied,
    /// All of it can happen; nothing did.
    Checked,
    /// In sequential mode: the operations before the one in `failed` happened.
    Partial,
    /// Nothing happened. Only in a process that ran `apply_patch`: `patch.apply` answers with an error.
    Failed,
    /// All of it was undone.
    Reverted,
}

/// The operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchOp {
    Add,
    Update,
    Delete,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchFile {
    /// As the patch names it.
    pub path: String,
    pub op: PatchOp,
    /// The new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub to: Option<String>,
    /// SHA-256 in hexadecimal digits. Null: there was no file.
    pub before_sha256: Option<String>,
    /// Null: there is no file.
    pub after_sha256: Option<String>,
    /// Lines.
    pub added: u64,
    /// Lines.
    pub removed: u64,
    /// The loosest comparison by which lines were found: 0 equal, 1 without blanks at their ends, 2 also without those at
    /// their starts, 3 also with other dashes, quotes and spaces.
    pub fuzz: u8,
}

/// The operation that a patch failed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchFailure {
    /// The reason, for a person.
    pub message: String,
    /// The line of the patch, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    pub line: Option<usize>,
    /// The file, as the patch names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub path: Option<String>,
    /// The places of the file that are most like the missing lines, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<NearestPlace>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NearestPlace {
    /// From 1.
    pub line: usize,
    pub text: String,
}

/// The result of `patch.apply`, and of a process that ran `apply_patch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchResult {
    /// For `patch.revert`. Null: nothing happened.
    pub patch_id: Option<String>,
    pub status: PatchStatus,
    pub files: Vec<PatchFile>,
    /// A unified diff of all files.
    pub diff: String,
    /// The diff is longer and cut.
    #[serde(default)]
    pub diff_truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PatchFailure")]
    pub failed: Option<PatchFailure>,
}

/// The result of `patch.revert`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchRevertResult {
    pub patch_id: String,
    pub status: PatchStatus,
    /// The operations that undid the patch.
    pub files: Vec<PatchFile>,
}
