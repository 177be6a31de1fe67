//! Approvals and grants as text.

use super::text::escape_control;
use toold_proto::approval::{ApprovalState, Caller, Covers, DecidedBy};

/// Returns the protocol's name of a state.
pub fn state(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Pending => "pending",
        ApprovalState::Approved => "approved",
        ApprovalState::Denied => "denied",
        ApprovalState::Aborted => "aborted",
        ApprovalState::Timeout => "timeout",
        ApprovalState::Withdrawn => "withdrawn",
    }
}

/// Describes a caller: `uid 1000 pid 4712 (/usr/bin/toolctl)`.
pub fn caller(caller: &Caller) -> String {
    let program = caller.program.as_ref().map(|program| format!(" ({})", escape_control(program)));
    format!("uid {} pid {}{}", caller.uid, caller.pid, program.unwrap_or_default())
}

/// Describes the one who decided.
pub fn decided_by(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Deadline(_) => "the deadline".into(),
        DecidedBy::Caller(by) => caller(by),
    }
}

/// Describes the commands or paths that a grant covers.
pub fn covers(covers: &Covers) -> String {
    let command = (!covers.argv.is_empty()).then(|| covers.argv.join(" "));
    let root = covers.root.as_ref().map(|root| format!("files in {root}"));
    let cwd = covers.cwd.as_ref().map(|cwd| format!("in {cwd}"));
    let profile = covers.profile.as_ref().map(|profile| format!("as {profile}"));
    let all: Vec<String> = [command, root, cwd, profile].into_iter().flatten().collect();
    escape_control(&all.join(" "))
}
