//! Events, one per line. All fields of an unknown type are printed.

use super::table::MAX_COLUMN_WIDTH;
use super::text::{columns, count, cut, escape_control, first_line, last_line, pad, size};
use super::time::elapsed;
use super::{Style, Tint, approval, sandbox, script, stage, status};
use crate::error_text;
use serde_json::{Map, Value};
use toold_proto::approval::ApprovalState;
use toold_proto::event::{
    ApprovalDecided, COMMON_FIELDS, Completion, EventBody, Exited, Lagged, LaggedOf, NeedsInput, Outcome, ToolProvider,
    WatchMatch,
};
use toold_proto::params::{Status, Stream};
use toold_proto::process::Reason;
use toold_proto::script::ScriptStatus;
use toold_proto::tools::ProviderState;

/// Width to which types are padded; a longer one moves the rest of its line.
const TYPE_WIDTH: usize = 11;
/// Columns below which ids are shortened, so that a field fits behind them.
const NARROW_WIDTH: usize = 60;
/// Digits of a shortened id, which still identify a process.
const SHORT_ID_LEN: usize = 8;
/// Maximum width and number of characters of a line, since it contains output, and may be a message to an agent.
const MAX_LINE_WIDTH: usize = 300;

/// The column of process names, as wide as the widest so far: each event is printed as it arrives, without waiting for others.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubjectColumn {
    width: usize,
}

impl SubjectColumn {
    /// Widens the column for this event.
    pub fn widen(&mut self, event: &Map<String, Value>, style: Style) {
        let max_width = style.width.map_or(MAX_COLUMN_WIDTH, |all| (all / 4).min(MAX_COLUMN_WIDTH));
        self.width = self.width.max(columns(&subject(event, style)).min(max_width));
    }
}

/// Returns the name, else the id, which is shortened on a narrow terminal.
fn subject(event: &Map<String, Value>, style: Style) -> String {
    let id = text(event, "id").map(|id| match style.width {
        Some(..NARROW_WIDTH) => id.strip_prefix("proc_").and_then(|hex| hex.get(..SHORT_ID_LEN)).unwrap_or(id),
        Some(_) | None => id,
    });
    escape_control(text(event, "name").or(id).unwrap_or("-"))
}

/// Renders `time  type  subject  fields`, cut to the width.
pub fn event(event: &Map<String, Value>, time: &str, column: SubjectColumn, style: Style) -> String {
    let kind = text(event, "type").unwrap_or("?");
    let subject = match style.width {
        Some(_) => cut(&subject(event, style), column.width),
        None => subject(event, style),
    };
    let start = format!("{}  ", pad(time, 8));
    let body = EventBody::read(event);
    let fields = body.as_ref().map_or_else(|| all_fields(event), summary);
    let kind_text = pad(&escape_control(kind), TYPE_WIDTH);
    let rest = format!("  {}  {}", pad(&subject, column.width), escape_control(&fields));
    let width = style.width.map_or(MAX_LINE_WIDTH, |width| width.min(MAX_LINE_WIDTH));
    let kind_shown = cut(&kind_text, width.saturating_sub(columns(&start)));
    let room = width.saturating_sub(columns(&start) + columns(&kind_shown));
    let line = [
        Tint::Faint.paint(&cut(&start, width), style),
        body.as_ref().map_or(Tint::None, tint).paint(&kind_shown, style),
        // Characters without a width count too.
        cut(rest.trim_end(), room).chars().take(room).collect(),
    ];
    line.concat().trim_end().to_owned() + "\n"
}

fn tint(body: &EventBody) -> Tint {
    match body {
        EventBody::Started(_) | EventBody::Heartbeat(_) => Tint::Busy,
        EventBody::Exited(Exited { outcome, .. }) | EventBody::Completion(Completion { outcome, .. }) => {
            if outcome.exit_code == Some(0) { Tint::Good } else { Tint::Bad }
        }
        EventBody::WatchDisabled(_)
        | EventBody::WatchOverflowTripped(_)
        | EventBody::RestartGaveUp(_)
        | EventBody::InsideRefused(_)
        | EventBody::Denied(_)
        | EventBody::Denial(_)
        | EventBody::ProtectedCreated(_)
        | EventBody::SandboxGap(_)
        | EventBody::Lagged(_) => Tint::Bad,
        EventBody::PolicyLoaded(event) if !event.ok => Tint::Bad,
        EventBody::ToolProvider(event) => match event.state {
            ProviderState::Ready => Tint::Good,
            ProviderState::Gone => Tint::Bad,
            ProviderState::Replaced | ProviderState::Removed => Tint::None,
        },
        EventBody::WatchMatch(_)
        | EventBody::NeedsInput(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::StageReady(_) => Tint::Heading,
        EventBody::ApprovalDecided(ApprovalDecided { state, .. }) => {
            if *state == ApprovalState::Approved {
                Tint::Good
            } else {
                Tint::Bad
            }
        }
        EventBody::PatchApplied(_) | EventBody::PatchReverted(_) | EventBody::ScriptNote(_) => Tint::Heading,
        EventBody::ScriptStarted(_) => Tint::Busy,
        EventBody::ScriptFinished(event) => {
            if event.status == ScriptStatus::Ok {
                Tint::Good
            } else {
                Tint::Bad
            }
        }
        EventBody::ScriptCall(_) => Tint::Faint,
        EventBody::Closed(_) | EventBody::Output(_) => Tint::Faint,
        EventBody::WatchOverflowReleased(_)
        | EventBody::GrantAdded(_)
        | EventBody::GrantRevoked(_)
        | EventBody::PolicyLoaded(_) => Tint::None,
    }
}

/// Returns the fields that matter to people, in one line.
fn summary(body: &EventBody) -> String {
    match body {
        EventBody::Started(event) => format!("pid {}: {}", event.pid, event.command),
        EventBody::Exited(event) => {
            let end = outcome(&event.outcome, event.status);
            let never_ran = event.outcome.reason == Some(Reason::FailedStart);
            if never_ran { end } else { format!("{end}, {}", output_size(event.bytes, event.lines)) }
        }
        EventBody::Completion(event) => completion(event),
        EventBody::ScriptStarted(event) => script::started(event),
        EventBody::ScriptCall(event) => script::call(event),
        EventBody::ScriptNote(event) => event.text.clone(),
        EventBody::ScriptFinished(event) => script::finished(event),
        EventBody::Closed(event) => output_size(event.bytes, event.lines),
        EventBody::WatchMatch(event) => watch_match(event),
        EventBody::WatchDisabled(event) => format!("{} suppressed: {}", event.suppressed, event.message),
        EventBody::WatchOverflowTripped(event) => event.message.clone(),
        EventBody::WatchOverflowReleased(event) => format!("{} suppressed: {}", event.suppressed, event.message),
        EventBody::Heartbeat(event) => {
            let new = size(event.new_bytes);
            format!("+{new}, {}{}", output_size(event.bytes, event.lines), output_line(&event.output))
        }
        EventBody::NeedsInput(event) => needs_input(event),
        EventBody::RestartGaveUp(event) => event.message.clone(),
        EventBody::InsideRefused(event) => format!("{} by {} (pid {})", event.what, event.program, event.pid),
        EventBody::ApprovalRequested(event) => {
            let why = event.why.iter().map(|why| why.text.as_str()).collect::<Vec<_>>().join("; ");
            format!("{}: {} ({why})", event.approval, event.command)
        }
        EventBody::ApprovalDecided(event) => {
            let by = approval::decided_by(&event.decided_by);
            let message = event.message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("{} {} by {by}{message}", event.approval, approval::state(event.state))
        }
        EventBody::GrantAdded(event) => {
            format!("{} by {}: {}", event.grant, approval::caller(&event.owner), approval::covers(&event.covers))
        }
        EventBody::GrantRevoked(event) => {
            let by = approval::caller(&event.revoked_by);
            let why = event.reason.as_ref().map(|reason| format!(": {}", escape_control(reason))).unwrap_or_default();
            format!("{} by {by} after {}{why}", event.grant, count(event.uses, "use"))
        }
        EventBody::PolicyLoaded(event) => {
            let loaded = format!("{} from {}", count(event.rules, "rule"), count(event.files, "file"));
            if event.ok { loaded } else { format!("{loaded}; refused: {}", event.errors.join("; ")) }
        }
        EventBody::Denied(event) => format!("{}: {}", event.reason, event.command),
        EventBody::PatchApplied(event) => {
            format!("{}: +{} -{} in {}", event.patch_id, event.added, event.removed, patched(event.count, &event.files))
        }
        EventBody::PatchReverted(event) => format!("{}: {}", event.patch_id, patched(event.count, &event.files)),
        EventBody::Denial(event) => {
            let target = event.path.as_deref().or(event.address.as_deref()).unwrap_or("-");
            format!("{} {target}: {}", event.op, sandbox::error_name(event.errno))
        }
        EventBody::ProtectedCreated(event) => event.path.clone(),
        EventBody::SandboxGap(event) => event.message.clone(),
        EventBody::StageReady(event) => stage::ready(event),
        EventBody::ToolProvider(event) => tool_provider(event),
        EventBody::Output(event) => {
            format!("{}: {}", stream(event.stream), event.data.trim_end_matches(['\n', '\r']))
        }
        EventBody::Lagged(event) => lagged(event),
    }
}

/// Formats a provider of tools: `linear is ready: 2 tools`, `linear has gone: …`.
fn tool_provider(event: &ToolProvider) -> String {
    let state = match event.state {
        ProviderState::Ready => "is ready",
        ProviderState::Gone => "has gone",
        ProviderState::Replaced => "was replaced",
        ProviderState::Removed => "was removed",
    };
    let detail = event.why.clone().unwrap_or_else(|| count(event.tools, "tool"));
    format!("{} {state}: {detail}", event.provider)
}

/// Formats the files of a patch: the first ones, and the number of the others.
fn patched(count: u64, files: &[String]) -> String {
    const SHOWN_FILES: usize = 3;
    let shown: Vec<&str> = files.iter().take(SHOWN_FILES).map(String::as_str).collect();
    match count.saturating_sub(shown.len() as u64) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Formats an exit: `exit 0 after 5s`, `SIGKILL (oom) after 2s, killed by …`.
fn outcome(outcome: &Outcome, status: Status) -> String {
    let reason = outcome.reason.map(status::reason);
    let mut text = match (&outcome.signal, outcome.exit_code) {
        (Some(signal), _) => signal.clone(),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => reason.unwrap_or_else(|| status::name(status)).to_owned(),
    };
    if let Some(reason) = reason.filter(|reason| !matches!(*reason, "exited" | "signaled") && *reason != text) {
        text.push_str(&format!(" ({reason})"));
    }
    if outcome.reason != Some(Reason::FailedStart) {
        text.push_str(&format!(" after {}", elapsed(outcome.duration_ms)));
    }
    if let Some(failure) = &outcome.failure {
        text.push_str(&format!(": {}", status::failure(failure)));
    }
    if let Some(by) = &outcome.killed_by {
        text.push_str(&format!(", killed by {}", error_text::option(by)));
    }
    text
}

fn completion(event: &Completion) -> String {
    let mut text = outcome(&event.outcome, Status::Exited);
    if event.cancelled {
        text.push_str(", cancelled");
    }
    if let Some(summary) = &event.summary {
        let last = last_line(&summary.output).map(|line| format!(": {line}")).unwrap_or_default();
        text.push_str(&format!(", {}{last}", output_size(summary.bytes, summary.lines)));
    }
    text
}

fn output_size(bytes: u64, lines: u64) -> String {
    format!("{}, {}", size(bytes), count(lines, "line"))
}

/// Returns the first line of the output, after a colon.
fn output_line(output: &str) -> String {
    first_line(output).map(|line| format!(": {line}")).unwrap_or_default()
}

fn watch_match(event: &WatchMatch) -> String {
    let more = (event.matches > 1).then(|| format!("{} matches", event.matches));
    let suppressed = (event.suppressed > 0).then(|| format!("{} suppressed before", event.suppressed));
    let counts: Vec<String> = more.into_iter().chain(suppressed).collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    format!("{}{counts}{}", event.pattern, output_line(&event.output))
}

fn needs_input(event: &NeedsInput) -> String {
    let prompt = last_line(&event.prompt).map(|prompt| format!(": {prompt}")).unwrap_or_default();
    let hidden = if event.echo == Some(false) { " (echo off, maybe a password)" } else { "" };
    format!("pid {} waits for input{hidden}{prompt}", event.pid)
}

fn lagged(event: &Lagged) -> String {
    let Lagged { from, to, .. } = event;
    match event.of {
        LaggedOf::Output => format!("{} bytes of output were not pushed, from cursor {from}", to.saturating_sub(*from)),
        LaggedOf::Events => format!("events {from} to {to} were not pushed"),
    }
}

fn stream(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// Formats every field of a type that this version does not know, as `key=value`.
fn all_fields(event: &Map<String, Value>) -> String {
    // The name is in a column of its own.
    let fields = event.iter().filter(|(key, _)| *key != "name" && !COMMON_FIELDS.contains(&key.as_str()));
    let fields: Vec<String> = fields
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        })
        .collect();
    fields.join(" ")
}

fn text<'a>(event: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
