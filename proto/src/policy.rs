//! The policy: its settings, the verdict on a call, and the settings of a session.

use crate::id::ProcId;
use crate::params::params;
use crate::results::result;
use crate::sandbox::{Measure, Mechanisms, Network, NotEnforced, ProfileMode, SandboxSetting};
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

/// The verdict on a call. The strictest of all that apply counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    /// A person decides.
    Ask,
    Deny,
}

/// One position in the beginning of a command: a text, or any of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PrefixPart {
    One(String),
    Any(Vec<String>),
}

/// A rule, by its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRef {
    /// The file in the directory `rules`.
    pub file: String,
    /// Its place in the file, from 0.
    pub index: u64,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleMatch {
    /// The file in the directory `rules`.
    pub file: String,
    /// Its place in the file, from 0.
    pub index: u64,
    /// The beginning of the commands that it matches.
    pub prefix: Vec<PrefixPart>,
    pub verdict: Verdict,
    pub reason: String,
}

/// A dangerous command that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DangerReport {
    /// `forced_removal`.
    pub kind: String,
    /// The command as it was found, at most 16 arguments of it.
    pub command: Vec<String>,
}

/// A reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictReason {
    /// The origin: `rule`, `danger`, `unmatched`, `void` (an allow that does not hold), `nested`, `bad_file` or `never`.
    pub label: String,
    pub text: String,
}

/// The confinement that a call would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedSandbox {
    pub profile: String,
    pub mode: ProfileMode,
    pub network: Network,
    /// The directories that it may write in. Empty without a sandbox: it is not confined.
    pub roots: Vec<String>,
    /// Paths inside a root that stay read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// Protected names that are not protected: they do not exist, or a link leads to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unprotected: Vec<String>,
    /// The measures that are enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enforced: Vec<Measure>,
    /// The measures without which it does not start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Measure>,
    /// The mechanisms that enforce them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Mechanisms>,
}

impl CheckedSandbox {
    /// Returns the report on a call that is not confined.
    pub fn full() -> CheckedSandbox {
        CheckedSandbox {
            profile: "full".into(),
            mode: ProfileMode::Full,
            network: Network::Full,
            roots: Vec::new(),
            protect: Vec::new(),
            unprotected: Vec::new(),
            enforced: Vec::new(),
            require: Vec::new(),
            by: None,
        }
    }
}

result!(PolicyCheckResult {
    verdict: Verdict,
    /// True if every command is known. Only then can a rule allow it.
    plain: bool,
    /// The commands. Empty if not every one is known.
    commands: Vec<Vec<String>>,
    /// The rules that matched, in the order of their files.
    matches: Vec<RuleMatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    danger: Option<DangerReport>,
    sandbox: CheckedSandbox,
    /// The measures that this machine cannot enforce. With one of `sandbox.require` among them, `exec` is `unavailable`.
    not_enforced: Vec<NotEnforced>,
    /// Every reason, the one of the strictest verdict first.
    reasons: Vec<VerdictReason>,
});

result!(PolicyReloadResult {
    /// Number of rules in force.
    rules: u64,
    /// Number of files that they come from.
    files: u64,
});

/// The rules in force, in `daemon.info`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PolicyReport {
    pub rules: u64,
    pub files: u64,
    /// Files that could not be loaded, with the reason. Commands that they may have judged are asked about.
    pub errors: Vec<String>,
}

params!(PolicySuggestParams {
    required {
        id: String,
    }
});

result!(PolicySuggestResult {
    id: ProcId,
    /// Refused calls that the suggestion covers.
    denials: u64,
    /// Directories that it would have to write in.
    roots: Vec<String>,
    /// The network that it would have needed. Null: it needed no other.
    network: Option<Network>,
    /// Sockets of the host that it would have needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unix_sockets: Vec<String>,
    /// The profile as text for the config. Null: there is nothing to change.
    profile: Option<String>,
    /// Rules as text for a file in `rules`. Null: its commands are not known, or too wide to be allowed.
    rules: Option<String>,
});

params!(SessionConfigureParams {
    required {
        session_key: String,
    }
    /// The working directory of calls without one. Absolute.
    cwd: Option<String>,
    /// The profile of calls without one, and the widest of the session.
    sandbox: Option<SandboxSetting>,
    /// The cases in which a person is asked. Default: `policy.approval` of the config.
    approval: Option<ApprovalPolicy>,
    /// Directories that its processes may write in, beside their working directory. Absolute.
    roots: Vec<String>,
    /// Names of variables that a clean environment also has.
    env_pass: Vec<String>,
});

params!(SessionGetParams {
    required {
        session_key: String,
    }
});
