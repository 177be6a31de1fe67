//! Approvals and grants as text.

use super::sandbox::lines;
use super::table::{Cell, table};
use super::text::{count, escape_control};
use super::{Style, Tint};
use toold_proto::ProcId;
use toold_proto::approval::{
    Action, Approval, ApprovalState, ApprovalsDecideResult, Caller, Covers, DecidedBy, Grant, GrantsRevokeResult, Scope,
};
use toold_proto::results::InspectResult;

/// Names of variables in a question.
const MAX_SHOWN_NAMES: usize = 8;

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
    let tool = covers.tool.as_ref().map(|tool| match (&covers.args_sha256, &covers.args_like) {
        (None, None) => format!("calls of {tool}"),
        (None, Some(args)) => format!("calls of {tool} with {}", serde_json::Value::from(args.clone())),
        (Some(_), _) => format!("calls of {tool} with the same arguments"),
    });
    let script = covers.script.map(|script| format!("by {script}"));
    let uses = covers.uses.map(|uses| format!("at most {}", count(uses, "time")));
    let all: Vec<String> = [command, root, cwd, profile, tool, script, uses].into_iter().flatten().collect();
    escape_control(&all.join(" "))
}

/// Returns one line for an action.
fn summary(action: &Action) -> String {
    let files = || action.files.iter().map(|file| format!("{} {}", file.op, file.path)).collect::<Vec<_>>().join(", ");
    let argv = || if action.argv.is_empty() { files() } else { action.argv.join(" ") };
    let tool = action.tool.as_ref().map(|tool| format!("{tool} {}", action.args.as_deref().unwrap_or_default()));
    escape_control(&action.command.clone().or(tool).unwrap_or_else(argv))
}

/// Returns the reasons of a question in one line.
pub fn why(approval: &Approval) -> String {
    escape_control(&approval.why.iter().map(|why| why.text.as_str()).collect::<Vec<_>>().join("; "))
}

/// Renders one line per approval.
pub fn list(approvals: &[Approval], style: Style) -> String {
    if approvals.is_empty() && style.terminal() {
        return "no question waits\n".into();
    }
    let row = |approval: &Approval| {
        let process = approval.process.map_or_else(|| "-".into(), |id| id.to_string());
        [
            Cell::new(&approval.id.to_string()),
            Cell::new(state(approval.state)),
            Cell::new(&process),
            Cell::new(&summary(&approval.action)),
            Cell::new(&why(approval)),
        ]
    };
    table(["ID", "STATE", "PROCESS", "WHAT", "WHY"], approvals.iter().map(row).collect(), style)
}

/// Describes an approval in one line, as `approve` and `deny` print it.
pub fn line(approval: &Approval) -> String {
    format!("{} {}: {}\n", approval.id, state(approval.state), summary(&approval.action))
}

/// Describes the approval, the grant or the rules that let a process start, and its retry: for `why`.
pub fn permission(result: &InspectResult) -> String {
    let mut out = String::new();
    let process = &result.process;
    if let Some(allowed) = &result.allowed_by {
        if let Some(found) = &allowed.approval {
            let title = if found.state == ApprovalState::Approved { "Approved" } else { "Approval" };
            lines(title, [decision(found)].iter(), &mut out);
        }
        if let Some(grant) = &allowed.grant {
            let text = format!("{}, given by {} at {}", grant.id, caller(&grant.owner), grant.at);
            lines("Grant", [text].iter(), &mut out);
        }
        let rules: Vec<String> =
            allowed.rules.iter().map(|rule| format!("{}, rule {}", rule.file, rule.index)).collect();
        lines("Allowed by", rules.iter(), &mut out);
    }
    lines("Retry of", process.retry_of.map(|id| id.to_string()).iter(), &mut out);
    let retry = process.retry.map(|retry| match retry.approval {
        Some(approval) => format!("{}, by {approval}", retry.process),
        None => retry.process.to_string(),
    });
    lines("Retry", retry.iter(), &mut out);
    out
}

/// Describes an approval and who decided it.
fn decision(approval: &Approval) -> String {
    let by = approval.decided_by.as_ref().map(|by| format!(" by {}", decided_by(by))).unwrap_or_default();
    let at = approval.decided_at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let scope = match approval.scope {
        Some(Scope::Once) => ", once",
        Some(Scope::Session) => ", for the session",
        Some(Scope::Always) => ", always",
        Some(Scope::Script) => ", for the script",
        None => "",
    };
    let message = approval.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{} {}{by}{at}{scope}{message}", approval.id, state(approval.state))
}

/// Describes the result of a decision.
pub fn decided(result: &ApprovalsDecideResult) -> String {
    let mut text = line(&result.approval);
    if let Some(grant) = &result.grant {
        let (id, reach) = (grant.id, if grant.scope == Scope::Script { "script" } else { "session" });
        text.push_str(&format!("{id} allows it in the rest of the {reach}; end it with: toolctl revoke {id}\n"));
    }
    if let Some(why) = &result.approval.rule_error {
        text.push_str(&format!("the rule was not added, so this holds once: {}\n", escape_control(why)));
    }
    result.withdrawn.iter().for_each(|id| text.push_str(&format!("{id} withdrawn\n")));
    text
}

/// Lists the names of variables, and counts those that are too many to be read: `toolctl run` passes a whole environment.
fn names(env_names: &[String]) -> String {
    let shown = escape_control(&env_names.iter().take(MAX_SHOWN_NAMES).cloned().collect::<Vec<_>>().join(" "));
    match env_names.len().saturating_sub(MAX_SHOWN_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Renders a question with everything that a person needs to decide: the action, the reasons, the change of files.
pub fn block(approval: &Approval, style: Style) -> String {
    let action = &approval.action;
    let mut facts = Vec::new();
    facts.push(("What", summary(action)));
    facts.extend(action.cwd.as_ref().map(|cwd| ("In", escape_control(cwd))));
    facts.extend(action.profile.as_ref().map(|p| ("Profile", escape_control(&format!("{} -> {}", p.from, p.to)))));
    if !action.env_names.is_empty() {
        facts.push(("Sets", names(&action.env_names)));
    }
    facts.extend(action.retry_of.map(|id| ("Again", format!("{id} failed in its sandbox"))));
    facts.extend(approval.why.iter().map(|why| ("Why", escape_control(&format!("{} ({})", why.text, why.label)))));
    let of = [
        approval.process.map(|id| id.to_string()),
        approval.script.map(|script| format!("script {script}")),
        approval.session_key.as_ref().map(|key| format!("session {key}")),
        approval.task_id.as_ref().map(|task| format!("task {task}")),
    ];
    let of: Vec<String> = of.into_iter().flatten().collect();
    facts.push(("For", escape_control(&of.join(", "))));
    facts.push(("Asked by", caller(&approval.requested_by)));
    let until = escape_control(&approval.expires_at);
    let mut text = Tint::Heading.paint(&format!("{} asks, until {until}", approval.id), style) + "\n";
    facts.iter().filter(|(_, value)| !value.is_empty()).for_each(|(name, value)| {
        text.push_str(&format!("  {name:<9} {value}\n"));
    });
    for line in action.diff.iter().flat_map(|diff| diff.lines()) {
        let tint = match line.as_bytes().first() {
            Some(b'+') => Tint::Good,
            Some(b'-') => Tint::Bad,
            _ => Tint::None,
        };
        text.push_str(&format!("  {}\n", tint.paint(&escape_control(line), style)));
    }
    text
}

fn is_offered(approval: &Approval, scope: Scope) -> bool {
    approval.offers.iter().any(|offer| offer.scope == scope)
}

/// Returns the keys that decide a question.
pub fn keys(approval: &Approval) -> String {
    let mut all = vec!["y approve"];
    all.extend(is_offered(approval, Scope::Session).then_some("s approve for the session"));
    all.extend(is_offered(approval, Scope::Script).then_some("r approve for the rest of the script"));
    all.extend(is_offered(approval, Scope::Always).then_some("a approve always"));
    all.extend(["n deny"]);
    all.extend(approval.task_id.is_some().then_some("x deny, and withdraw the task's other questions"));
    all.extend(["space later", "q leave"]);
    format!("  [{}]\n", all.join(", "))
}

/// Returns the commands that decide a question.
pub fn commands(approval: &Approval) -> String {
    format!("  toolctl approve {0}, or toolctl deny {0}\n", approval.id)
}

/// Renders one line per grant.
pub fn grants(grants: &[Grant], style: Style) -> String {
    if grants.is_empty() && style.terminal() {
        return "no grants\n".into();
    }
    let row = |grant: &Grant| {
        let session = grant.session_key.as_deref().unwrap_or("-");
        let end = match (&grant.revoked_at, &grant.expires_at) {
            (Some(_), _) => "revoked",
            (None, Some(at)) => at,
            (None, None) if grant.scope == Scope::Script => "its script's end",
            (None, None) => "its session's end",
        };
        [
            Cell::new(&grant.id.to_string()),
            Cell::new(&escape_control(session)),
            Cell::new(&grant.uses.to_string()),
            Cell::new(&escape_control(end)),
            Cell::new(&covers(&grant.covers)),
        ]
    };
    table(["ID", "SESSION", "USES", "UNTIL", "ALLOWS"], grants.iter().map(row).collect(), style)
}

/// Describes the result of `revoke`.
pub fn revoked(result: &GrantsRevokeResult) -> String {
    let mut text = String::new();
    result
        .revoked
        .iter()
        .for_each(|grant| text.push_str(&format!("{} revoked after {}\n", grant.id, count(grant.uses, "use"))));
    if result.revoked.is_empty() {
        text.push_str("nothing was in force\n");
    }
    let is_killed = |id: &ProcId| result.killed.iter().any(|killed| killed.id == *id);
    for id in &result.running {
        let line = if is_killed(id) {
            format!("{id} killed\n")
        } else {
            format!("{id} still runs under it: toolctl kill {id}\n")
        };
        text.push_str(&line);
    }
    text
}
