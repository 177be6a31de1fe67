//! Events, one per line. All fields of an unknown type are printed.

use super::table::MAX_COLUMN_WIDTH;
use super::text::{columns, count, cut, escape_control, first_line, last_line, pad, size};
use super::time::elapsed;
use super::{Style, Tint, approval, sandbox, status};
use crate::error_text;
use serde_json::{Map, Value};
use toold_proto::approval::ApprovalState;
use toold_proto::event::{
    ApprovalDecided, COMMON_FIELDS, Completion, EventBody, Exited, Lagged, LaggedOf, NeedsInput, Outcome, WatchMatch,
};
use toold_proto::params::{Status, Stream};
use toold_proto::process::Reason;

/// Width to which types are padded; a longer one moves the rest of its line.
const TYPE_WIDTH: usize = 11;
/// Columns below which ids are shortened, so that a field fits behind them.
const NARROW_WIDTH: usize = 60;
/// Digits of a shortened id, which still identify a process.
const SHORT_ID_LEN: usize = 8;
/// Maximum width of a line that is not for a terminal, since it contains output.
const MAX_LINE_WIDTH: usize = 400;

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
    let width = style.width.unwrap_or(MAX_LINE_WIDTH);
    let kind_shown = cut(&kind_text, width.saturating_sub(columns(&start)));
    let room = width.saturating_sub(columns(&start) + columns(&kind_shown));
    let line = [
        Tint::Faint.paint(&cut(&start, width), style),
        body.as_ref().map_or(Tint::None, tint).paint(&kind_shown, style),
        cut(rest.trim_end(), room),
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
        EventBody::WatchMatch(_) | EventBody::NeedsInput(_) | EventBody::ApprovalRequested(_) => Tint::Heading,
        EventBody::ApprovalDecided(ApprovalDecided { state, .. }) => {
            if *state == ApprovalState::Approved {
                Tint::Good
            } else {
                Tint::Bad
            }
        }
        EventBody::PatchApplied(_) | EventBody::PatchReverted(_) => Tint::Heading,
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
            format!("{} by {} after {}", event.grant, approval::caller(&event.revoked_by), count(event.uses, "use"))
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
        EventBody::Output(event) => {
            format!("{}: {}", stream(event.stream), event.data.trim_end_matches(['\n', '\r']))
        }
        EventBody::Lagged(event) => lagged(event),
    }
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use toold_proto::event::EVENTS;

    const ID: &str = "proc_0123456789ab";

    /// Returns an event of a process without a name: the example of its type with these fields.
    fn document(kind: &str, fields: Value) -> Value {
        let mut document =
            json!({"seq": 1, "at": "x", "type": kind, "id": ID, "session_key": "s", "task_id": null, "name": null});
        let object = document.as_object_mut().expect("an object");
        if let Some(event) = EVENTS.iter().find(|event| event.name == kind) {
            let example: Map<String, Value> = serde_json::from_str(event.example).expect("an object");
            object.extend(example.into_iter().filter(|(key, _)| key != "name"));
        }
        object.extend(fields.as_object().expect("an object").clone());
        document
    }

    fn line(kind: &str, fields: Value, style: Style) -> String {
        print(&document(kind, fields), style)
    }

    fn print(document: &Value, style: Style) -> String {
        let document = document.as_object().expect("an object");
        let mut column = SubjectColumn::default();
        column.widen(document, style);
        event(document, "06:00:00", column, style)
    }

    /// Renders events with one column.
    fn lines(events: &[Value], style: Style) -> Vec<String> {
        let mut column = SubjectColumn::default();
        let all: Vec<&Map<String, Value>> = events.iter().map(|event| event.as_object().expect("an object")).collect();
        all.iter().for_each(|event| column.widen(event, style));
        all.iter().map(|one| event(one, "06:00:00", column, style).trim_end().to_owned()).collect()
    }

    #[test]
    fn subjects_form_a_column_and_at_40_columns_a_field_fits_behind() {
        let named = document("started", json!({"name": "web", "pid": 7, "command": "make"}));
        let unnamed = document("exited", json!({"exit_code": 1, "duration_ms": 2000, "bytes": 12, "lines": 1}));
        let long = document("closed", json!({"name": "a-very-long-name", "bytes": 12, "lines": 1}));
        let all = [named, unnamed, long];
        assert_eq!(
            lines(&all, Style { width: Some(100), colour: false }),
            [
                "06:00:00  started      web                pid 7: make",
                "06:00:00  exited       proc_0123456789ab  exit 1 after 2s, 12 bytes, 1 line",
                "06:00:00  closed       a-very-long-name   12 bytes, 1 line",
            ]
        );
        assert_eq!(
            lines(&all, Style { width: Some(40), colour: false }),
            [
                "06:00:00  started      web         pid …",
                "06:00:00  exited       01234567    exit…",
                "06:00:00  closed       a-very-lo…  12 b…",
            ]
        );
        assert_eq!(
            lines(&all[..2], Style { width: Some(40), colour: false })[1],
            "06:00:00  exited       01234567  exit 1…"
        );
    }

    #[test]
    fn each_type_shows_its_fields() {
        let size = json!({"bytes": 120, "lines": 3});
        let with = |mut fields: Value| {
            fields.as_object_mut().expect("an object").extend(size.as_object().expect("an object").clone());
            fields
        };
        let cases = [
            (
                "started",
                json!({"pid": 42, "name": "web", "command": "make\ttest"}),
                "started      web  pid 42: make\\ttest",
            ),
            (
                "exited",
                with(
                    json!({"name": null, "status": "exited", "exit_code": 0, "signal": null, "reason": "exited", "duration_ms": 5300}),
                ),
                "exited       proc_0123456789ab  exit 0 after 5s, 120 bytes, 3 lines",
            ),
            (
                "exited",
                with(json!({"exit_code": 137, "signal": "SIGKILL", "reason": "oom", "duration_ms": 40})),
                "exited       proc_0123456789ab  SIGKILL (oom) after 40ms, 120 bytes, 3 lines",
            ),
            (
                "exited",
                json!({"exit_code": null, "signal": null, "reason": "lost", "status": "lost"}),
                "exited       proc_0123456789ab  lost after 5s, 120 bytes, 3 lines",
            ),
            (
                "exited",
                json!({"exit_code": null, "reason": "lost", "status": "lost", "duration_ms": 673_000,
                    "failure": {"step": "reboot", "errno": 108, "error": "ESHUTDOWN", "path": "x", "message": "a reboot"}}),
                "exited       proc_0123456789ab  lost after 11m 13s: a reboot, 120 bytes, 3 lines",
            ),
            // The broken code printed `failed_start after 0ms, 0 bytes, 0 lines`.
            (
                "exited",
                json!({"exit_code": null, "reason": "failed_start", "duration_ms": 0,
                    "failure": {"step": "exec", "errno": 2, "error": "ENOENT", "path": "/no"}}),
                "exited       proc_0123456789ab  failed_start: exec /no: No such file or directory (os error 2)",
            ),
            ("closed", size.clone(), "closed       proc_0123456789ab  120 bytes, 3 lines"),
            (
                "completion",
                with(
                    json!({"name": "web", "exit_code": 2, "reason": "killed", "output": "\n\u{1b}[31mError\u{1b}[0m x\nmore", "cancelled": true}),
                ),
                "completion   web  exit 2 (killed) after 5s, cancelled, 120 bytes, 3 lines: more",
            ),
            (
                "watch_match",
                json!({"pattern": "err", "pattern_index": 0, "output": "an err\nmore", "matches": 2, "suppressed": 3}),
                "watch_match  proc_0123456789ab  err (2 matches, 3 suppressed before): an err",
            ),
            (
                "watch_match",
                json!({"pattern": "e+", "output": "e", "matches": 1, "suppressed": 0}),
                "watch_match  proc_0123456789ab  e+: e",
            ),
            (
                "watch_disabled",
                json!({"suppressed": 9, "message": "too much"}),
                "watch_disabled  proc_0123456789ab  9 suppressed: too much",
            ),
            (
                "heartbeat",
                with(json!({"new_bytes": 2048, "output": "tick"})),
                "heartbeat    proc_0123456789ab  +2.0K, 120 bytes, 3 lines: tick",
            ),
            (
                "needs_input",
                json!({"pid": 7, "echo": false, "prompt": "Password: "}),
                "needs_input  proc_0123456789ab  pid 7 waits for input (echo off, maybe a password): Password:",
            ),
            (
                "output",
                json!({"cursor": 0, "next_cursor": 4, "stream": "stderr", "data": "a\u{7}b\n", "name": null}),
                "output       proc_0123456789ab  stderr: a\\x07b",
            ),
            (
                "lagged",
                json!({"of": "events", "from": 3, "to": 9}),
                "lagged       proc_0123456789ab  events 3 to 9 were not pushed",
            ),
            (
                "lagged",
                json!({"of": "output", "from": 3, "to": 9}),
                "lagged       proc_0123456789ab  6 bytes of output were not pushed, from cursor 3",
            ),
            (
                "moved",
                json!({"load": 1.5, "new": [1], "to": "host\n2"}),
                "moved        proc_0123456789ab  load=1.5 new=[1] to=host\\n2",
            ),
        ];
        for (kind, fields, shown) in cases {
            assert_eq!(line(kind, fields, Style::plain()), format!("06:00:00  {shown}\n"));
        }
        let everywhere = json!({"id": null, "limit": 15, "message": "silence"});
        assert_eq!(
            line("watch_overflow_tripped", everywhere, Style::plain()),
            "06:00:00  watch_overflow_tripped  -  silence\n"
        );
        let partial = json!({"seq": 1, "type": "started", "id": ID, "odd": 1});
        assert_eq!(print(&partial, Style::plain()), "06:00:00  started      proc_0123456789ab  odd=1\n");
    }

    #[test]
    fn a_terminal_gets_colours_and_lines_that_fit() {
        let style = Style { width: Some(30), colour: true };
        let shown = line("exited", json!({"exit_code": 1}), style);
        assert_eq!(shown, "\x1b[2m06:00:00  \x1b[0m\x1b[31mexited     \x1b[0m  012345…\n");
        for width in 1..60 {
            let shown = line(
                "watch_overflow_released",
                json!({"message": "日本語 long"}),
                Style { width: Some(width), colour: false },
            );
            assert!(columns(shown.trim_end()) <= width, "{width}: {shown:?}");
        }
    }

    proptest! {
        #[test]
        fn no_event_prints_a_control_character_or_a_second_line(kind in "(watch_match|exited|output|needs_input|completion|x)", value in any::<String>()) {
            let fields = json!({"name": value, "pattern": value, "output": value, "data": value, "prompt": value, "signal": value, "new": value});
            let shown = line(&kind, fields, Style::plain());
            prop_assert!(!shown.trim_end_matches('\n').chars().any(char::is_control));
            prop_assert_eq!(shown.matches('\n').count(), 1);
        }
    }
}
