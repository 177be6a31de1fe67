//! Approvals and grants: questions that wait for a person, and permissions that a person gave. Their ids, states, parameters
//! and results.

pub use crate::approval_id::{ApprovalId, GrantId};
use crate::id::ProcId;
use crate::params::{is_default, params};
use crate::policy::RuleRef;
use crate::results::Killed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of an approval. Only `pending` changes, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    Approved,
    Denied,
    /// Denied, and everything else pending of the same task was withdrawn.
    Aborted,
    /// The deadline passed without a decision.
    Timeout,
    /// Its process was killed, its session ended, or a decision on another approval of the task withdrew it.
    Withdrawn,
}

/// The kind of the action that an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A command that a rule or the session's policy does not allow by itself.
    Exec,
    /// A command that needs a wider profile.
    Escalate,
    /// A command that failed in its sandbox, once more without it.
    Retry,
    Patch,
    Write,
    /// A tool that uses the network, which the caller's profile does not have.
    Network,
    /// A tool of a client or of an MCP server, which runs outside the sandbox of its caller.
    Tool,
}

/// The decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    #[default]
    Deny,
    /// Deny, and withdraw everything else that is pending of the same task.
    Abort,
}

/// The reach of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This action only.
    #[default]
    Once,
    /// The same argv, directory and profile, or the root, until the session ends.
    Session,
    /// A rule in `rules/approved.toml`.
    Always,
    /// The same tool, until the script ends.
    Script,
}

/// A process that called: the peer of the socket, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caller {
    pub uid: u32,
    pub pid: i32,
    /// Its program. Null if it had ended, or may not be looked at.
    pub program: Option<String>,
}

/// The one who ended an approval: a caller, or the deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DecidedBy {
    Deadline(Deadline),
    Caller(Caller),
}

/// The deadline of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    Timeout,
}

/// A reason for a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The origin of the reason: `rule`, `danger`, `right` (a right that is missing), `caller` (the caller's own), `policy`
    /// or `denials`.
    pub label: String,
    pub text: String,
}

/// A change of profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileChange {
    pub from: String,
    pub to: String,
}

/// A file that an action changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionFile {
    pub path: String,
    /// `add`, `update`, `delete`, `move` or `write`.
    pub op: String,
    /// SHA-256 of the new content, in hex, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The action that an approval is about. `digest` of the approval is SHA-256 of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The program and its arguments; for shell text, those of the shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The command as a person would type it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file that is executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names of the variables that the call sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileChange>,
    /// The process that failed in its sandbox, if it is to run once more without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<ProcId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ActionFile>,
    /// The change of the files as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The tool that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of the tool as JSON, at most 4000 characters of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// SHA-256 of all arguments, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_sha256: Option<String>,
}

/// The content of a grant: the commands or paths that it covers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Covers {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The directory in which files may be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The identity of that directory when it was granted: device and inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_id: Option<String>,
    /// The beginning of the command that a rule in `rules/approved.toml` would allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix: Vec<String>,
    /// The script whose calls it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ProcId>,
    /// The tool whose calls it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// SHA-256 of the arguments of that tool, in hex: only calls with exactly these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_sha256: Option<String>,
    /// Arguments of that tool: only calls that have these, with these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_like: Option<Map<String, Value>>,
    /// The most actions that it allows. Null: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u64>,
}

/// A scope that a decision may choose, and the grant that it makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    pub scope: Scope,
    /// Null for `once`.
    pub grant: Option<Covers>,
}

/// A question that waits for a person, or its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub kind: ApprovalKind,
    /// The process that waits for it. Of kind `retry`: the one that failed in its sandbox.
    pub process: Option<ProcId>,
    /// The process that waits for it and would run without the sandbox, of kind `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ProcId>,
    /// The script whose call asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ProcId>,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub requested_by: Caller,
    /// RFC 3339, UTC.
    pub at: String,
    /// The deadline. It denies.
    pub expires_at: String,
    pub why: Vec<Why>,
    pub action: Action,
    /// SHA-256 of the action, in hex. A decision must name it.
    pub digest: String,
    pub offers: Vec<Offer>,
    #[serde(default)]
    pub decided_by: Option<DecidedBy>,
    #[serde(default)]
    pub decided_at: Option<String>,
    #[serde(default)]
    pub decision: Option<Decision>,
    #[serde(default)]
    pub scope: Option<Scope>,
    /// The grant that the decision made.
    #[serde(default)]
    pub grant: Option<GrantId>,
    #[serde(default)]
    pub message: Option<String>,
    /// The reason why scope `always` added no rule: it was approved once. Null: the rule is there, or none was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_error: Option<String>,
}

/// The permission under which a process was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedBy {
    /// The approval that it waited for, with who decided, and when.
    pub approval: Option<Approval>,
    /// The grant that covered it.
    pub grant: Option<Grant>,
    /// The rules that allowed its commands.
    pub rules: Vec<RuleRef>,
}

/// A permission that a person gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    pub id: GrantId,
    pub session_key: Option<String>,
    pub scope: Scope,
    /// The approval that made it.
    pub approval: ApprovalId,
    /// The one who gave it.
    pub owner: Caller,
    pub covers: Covers,
    pub at: String,
    /// Null: it ends with the session, or with the script.
    pub expires_at: Option<String>,
    /// Number of actions that it allowed.
    pub uses: u64,
    #[serde(default)]
    pub last_used_at: Option<String>,
    #[serde(default)]
    pub revoked_at: Option<String>,
    #[serde(default)]
    pub revoked_by: Option<Caller>,
    /// The reason why it ended, if no person ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke_reason: Option<String>,
}

/// The approvals that `approvals.list` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    #[default]
    Pending,
    Approved,
    Denied,
    Aborted,
    Timeout,
    Withdrawn,
    All,
}

impl ListedState {
    /// Returns true if approvals in this state are listed.
    pub fn includes(self, state: ApprovalState) -> bool {
        match self {
            ListedState::All => true,
            ListedState::Pending => state == ApprovalState::Pending,
            ListedState::Approved => state == ApprovalState::Approved,
            ListedState::Denied => state == ApprovalState::Denied,
            ListedState::Aborted => state == ApprovalState::Aborted,
            ListedState::Timeout => state == ApprovalState::Timeout,
            ListedState::Withdrawn => state == ApprovalState::Withdrawn,
        }
    }
}

params!(
    /// The wish to run a command under a wider profile.
    Escalate {
        required {
            /// The profile.
            to: String,
            /// The reason, for the person who decides.
            reason: String,
        }
    }
);

params!(
    /// The terms of a grant.
    GrantTerms {
        /// The grant ends after this time, in milliseconds. Default: with the session, or with the script.
        expires_ms: Option<u64>,
        /// The directory to grant: the one that is offered, or one below it.
        root: Option<String>,
        /// With scope `script`, the tool to grant: the one that is offered.
        tool: Option<String>,
        /// With scope `script`, arguments that a call must have, with these values. Default: any.
        args_like: Option<Map<String, Value>>,
        /// With scope `script`, the most later calls that it allows. Default: any number.
        uses: Option<u64>,
    }
);

params!(
    ApprovalsListParams {
        state: ListedState,
        session_key: Option<String>,
        task_id: Option<String>,
        /// Default: 200.
        limit: Option<u64>,
    }
);

params!(ApprovalsGetParams { required { id: String } });

params!(
    ApprovalsDecideParams {
        required {
            id: String,
            decision: Decision,
            /// The digest of the action that the person saw.
            digest: String,
        }
        scope: Scope,
        /// The terms of the grant, with scope `session` or `script`.
        grant: Option<GrantTerms>,
        /// A message for the caller that asked.
        message: Option<String>,
    }
);

params!(
    GrantsListParams {
        session_key: Option<String>,
        /// Also those that are revoked or over.
        all: bool,
    }
);

params!(
    GrantsRevokeParams {
        /// One grant. Either this or `session_key`.
        id: Option<String>,
        /// All grants of a session.
        session_key: Option<String>,
        /// Also kill what still runs under them.
        kill: bool,
    }
);

/// Approvals, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalsListResult {
    pub approvals: Vec<Approval>,
    /// Number of those that were selected. `limit` may leave the newest out.
    pub total: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalsDecideResult {
    pub approval: Approval,
    /// The approvals that `abort` withdrew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub withdrawn: Vec<ApprovalId>,
    /// The grant that scope `session` or `script` made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantsListResult {
    pub grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantsRevokeResult {
    /// The grants that this call revoked.
    pub revoked: Vec<Grant>,
    /// The processes that still run under them.
    pub running: Vec<ProcId>,
    /// The trees that `kill` ended.
    pub killed: Vec<Killed>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_and_a_caller_are_distinct_on_the_wire() {
        let deadline = DecidedBy::Deadline(Deadline::Timeout);
        assert_eq!(serde_json::to_string(&deadline).expect("it prints"), r#""timeout""#);
        let caller = DecidedBy::Caller(Caller { uid: 1, pid: 2, program: None });
        let text = serde_json::to_string(&caller).expect("it prints");
        assert_eq!(text, r#"{"uid":1,"pid":2,"program":null}"#);
        assert_eq!(serde_json::from_str::<DecidedBy>(&text).expect("it reads"), caller);
    }
}
