//! One event, one line. A type that is not known yet is printed fact by fact.

use super::table::MAX_COLUMN_WIDTH;
use super::text::{columns, count, cut, escape_control, first_line, pad, size};
use super::time::exact;
use super::{Style, Tint};
use crate::error_text;
use serde_json::{Map, Value};

/// The usual types are padded to this; the long ones push what follows.
const TYPE_WIDTH: usize = 11;
/// A terminal narrower than this has no room for a whole id and a fact behind it.
const NARROW_WIDTH: usize = 60;
/// So many digits of an id, which name a process as the whole does.
const SHORT_ID_LEN: usize = 8;
/// What every event has. The rest are the facts of its type.
const COMMON_FIELDS: [&str; 7] = ["seq", "at", "type", "id", "name", "session_key", "task_id"];
/// A line that nobody cuts is not longer than this either: output is in it.
const MAX_LINE_WIDTH: usize = 400;

/// Whoever is told of, in a column as wide as the widest so far: events come one after the other, and none is held back.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubjectColumn {
    width: usize,
}

impl SubjectColumn {
    /// Makes room for this event's.
    pub fn widen(&mut self, event: &Map<String, Value>, style: Style) {
        let most = style.width.map_or(MAX_COLUMN_WIDTH, |all| (all / 4).min(MAX_COLUMN_WIDTH));
        self.width = self.width.max(columns(&subject(event, style)).min(most));
    }
}

/// The name, else the id. A narrow terminal gets as much of an id as names it.
fn subject(event: &Map<String, Value>, style: Style) -> String {
    let id = text(event, "id").map(|id| match style.width {
        Some(..NARROW_WIDTH) => id.strip_prefix("proc_").and_then(|hex| hex.get(..SHORT_ID_LEN)).unwrap_or(id),
        Some(_) | None => id,
    });
    escape_control(text(event, "name").or(id).unwrap_or("-"))
}

/// `time  type  who  facts`, cut to the width.
pub fn event(event: &Map<String, Value>, time: &str, column: SubjectColumn, style: Style) -> String {
    let kind = text(event, "type").unwrap_or("?");
    let who = match style.width {
        Some(_) => cut(&subject(event, style), column.width),
        None => subject(event, style),
    };
    let start = format!("{}  ", pad(time, 8));
    let kind_text = pad(&escape_control(kind), TYPE_WIDTH);
    let rest = format!("  {}  {}", pad(&who, column.width), escape_control(&facts(kind, event)));
    let width = style.width.unwrap_or(MAX_LINE_WIDTH);
    let kind_shown = cut(&kind_text, width.saturating_sub(columns(&start)));
    let room = width.saturating_sub(columns(&start) + columns(&kind_shown));
    let line = [
        Tint::Faint.paint(&cut(&start, width), style),
        tint(kind, event).paint(&kind_shown, style),
        cut(rest.trim_end(), room),
    ];
    line.concat().trim_end().to_owned() + "\n"
}

fn tint(kind: &str, event: &Map<String, Value>) -> Tint {
    match kind {
        "started" | "heartbeat" => Tint::Busy,
        "exited" | "completion" if number(event, "exit_code") == Some(0) => Tint::Good,
        "exited" | "completion" | "watch_disabled" | "watch_overflow_tripped" | "lagged" => Tint::Bad,
        "watch_match" | "needs_input" => Tint::Heading,
        "closed" | "output" => Tint::Faint,
        // A released breaker, and whatever later versions tell.
        _ => Tint::None,
    }
}

fn facts(kind: &str, event: &Map<String, Value>) -> String {
    let known = match kind {
        "started" => started(event),
        "exited" => outcome(event),
        "completion" => with_output(outcome(event), event),
        "closed" => Some(output_size(event)),
        "watch_match" => watch_match(event),
        "watch_disabled" | "watch_overflow_tripped" | "watch_overflow_released" => message(event),
        "heartbeat" => number(event, "new_bytes")
            .map(|new| format!("+{}, {}", size(new), output_size(event)))
            .and_then(|facts| with_output(Some(facts), event)),
        "needs_input" => Some(needs_input(event)),
        "output" => output(event),
        "lagged" => lagged(event),
        // A later version's.
        _ => None,
    };
    known.unwrap_or_else(|| all_fields(event))
}

fn started(event: &Map<String, Value>) -> Option<String> {
    let pid = number(event, "pid").map(|pid| format!("pid {pid}: ")).unwrap_or_default();
    Some(format!("{pid}{}", text(event, "command")?))
}

/// `exit 0 after 5s, 120 bytes, 3 lines`, `SIGKILL (oom) …`.
fn outcome(event: &Map<String, Value>) -> Option<String> {
    let code = event.get("exit_code").and_then(Value::as_i64).map(|code| format!("exit {code}"));
    let reason = text(event, "reason");
    let mut said = match (text(event, "signal"), code) {
        (Some(signal), _) => signal.to_owned(),
        (None, Some(code)) => code,
        (None, None) => reason.or(text(event, "status"))?.to_owned(),
    };
    if let Some(reason) = reason.filter(|reason| !matches!(*reason, "exited" | "signaled") && *reason != said) {
        said.push_str(&format!(" ({reason})"));
    }
    if let Some(ms) = number(event, "duration_ms") {
        // To the second it is a time; below that the milliseconds are all there is to know.
        said.push_str(&format!(" after {}", exact(if ms < 1000 { ms } else { ms / 1000 * 1000 })));
    }
    if let Some(by) = text(event, "killed_by") {
        said.push_str(&format!(", killed by {}", error_text::option(by)));
    }
    if event.get("cancelled").and_then(Value::as_bool) == Some(true) {
        said.push_str(", cancelled");
    }
    let size = output_size(event);
    Some(if size.is_empty() { said } else { format!("{said}, {size}") })
}

fn output_size(event: &Map<String, Value>) -> String {
    let bytes = number(event, "bytes").map(size);
    let lines = number(event, "lines").map(|n| count(n, "line"));
    bytes.into_iter().chain(lines).collect::<Vec<String>>().join(", ")
}

/// The facts, and the first line of output behind them.
fn with_output(facts: Option<String>, event: &Map<String, Value>) -> Option<String> {
    let line = text(event, "output").and_then(first_line).map(|line| format!(": {line}")).unwrap_or_default();
    facts.map(|facts| facts + &line)
}

fn watch_match(event: &Map<String, Value>) -> Option<String> {
    let pattern = match event.get("pattern")? {
        Value::String(text) => text.clone(),
        Value::Object(object) => text(object, "regex").map(|regex| format!("/{regex}/"))?,
        other => other.to_string(),
    };
    let line = text(event, "output").and_then(first_line).map(|line| format!(": {line}")).unwrap_or_default();
    let more = number(event, "matches").filter(|n| *n > 1).map(|n| format!("{n} matches"));
    let lost = number(event, "suppressed").filter(|n| *n > 0).map(|n| format!("{n} suppressed before"));
    let counts: Vec<String> = more.into_iter().chain(lost).collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    Some(format!("{pattern}{counts}{line}"))
}

fn message(event: &Map<String, Value>) -> Option<String> {
    let lost = number(event, "suppressed").map(|n| format!("{n} suppressed: ")).unwrap_or_default();
    Some(format!("{lost}{}", text(event, "message")?))
}

fn needs_input(event: &Map<String, Value>) -> String {
    let hidden = event.get("echo").and_then(Value::as_bool) == Some(false);
    let pid = number(event, "pid").map(|pid| format!("pid {pid} ")).unwrap_or_default();
    let prompt = text(event, "prompt").and_then(super::text::last_line).map(|prompt| format!(": {prompt}"));
    let hidden = if hidden { ", what is typed is not shown" } else { "" };
    format!("{pid}waits for input{hidden}{}", prompt.unwrap_or_default())
}

fn output(event: &Map<String, Value>) -> Option<String> {
    let data = text(event, "data")?;
    Some(format!("{}: {}", text(event, "stream").unwrap_or("output"), data.trim_end_matches(['\n', '\r'])))
}

fn lagged(event: &Map<String, Value>) -> Option<String> {
    let (from, to) = (number(event, "from")?, number(event, "to")?);
    match text(event, "of") {
        Some("output") => {
            Some(format!("{} bytes of output were not pushed, from cursor {from}", to.saturating_sub(from)))
        }
        Some(_) | None => Some(format!("events {from} to {to} were not pushed")),
    }
}

/// Every fact as it is.
fn all_fields(event: &Map<String, Value>) -> String {
    let facts = event.iter().filter(|(key, _)| !COMMON_FIELDS.contains(&key.as_str()));
    let facts: Vec<String> = facts
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        })
        .collect();
    facts.join(" ")
}

fn text<'a>(event: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

fn number(event: &Map<String, Value>, key: &str) -> Option<u64> {
    event.get(key).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn line(kind: &str, facts: Value, style: Style) -> String {
        let mut document =
            json!({"seq": 1, "at": "x", "type": kind, "id": "proc_1", "session_key": "s", "task_id": null});
        document.as_object_mut().expect("an object").extend(facts.as_object().expect("an object").clone());
        let document = document.as_object().expect("an object");
        let mut column = SubjectColumn::default();
        column.widen(document, style);
        event(document, "06:00:00", column, style)
    }

    /// Lines that come one after the other.
    fn lines(events: &[Value], style: Style) -> Vec<String> {
        let mut column = SubjectColumn::default();
        let all: Vec<&Map<String, Value>> = events.iter().map(|event| event.as_object().expect("an object")).collect();
        all.iter().for_each(|event| column.widen(event, style));
        all.iter().map(|one| event(one, "06:00:00", column, style).trim_end().to_owned()).collect()
    }

    #[test]
    fn names_and_ids_are_a_column_and_at_40_columns_there_is_room_for_a_fact() {
        let named = json!({"type": "started", "id": "proc_0123456789ab", "name": "web", "pid": 7, "command": "make"});
        let unnamed = json!({"type": "exited", "id": "proc_0123456789ab", "exit_code": 1});
        let long = json!({"type": "closed", "id": "proc_0123456789ab", "name": "a-very-long-name", "bytes": 12});
        let all = [named, unnamed, long];
        assert_eq!(
            lines(&all, Style { width: Some(100), colour: false }),
            [
                "06:00:00  started      web                pid 7: make",
                "06:00:00  exited       proc_0123456789ab  exit 1",
                "06:00:00  closed       a-very-long-name   12 bytes",
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
            "06:00:00  exited       01234567  exit 1"
        );
    }

    #[test]
    fn each_type_tells_the_facts_that_matter() {
        let size = json!({"bytes": 120, "lines": 3});
        let with = |mut facts: Value| {
            facts.as_object_mut().expect("an object").extend(size.as_object().expect("an object").clone());
            facts
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
                "exited       proc_1  exit 0 after 5s, 120 bytes, 3 lines",
            ),
            (
                "exited",
                with(json!({"exit_code": 137, "signal": "SIGKILL", "reason": "oom", "duration_ms": 40})),
                "exited       proc_1  SIGKILL (oom) after 40ms, 120 bytes, 3 lines",
            ),
            (
                "exited",
                json!({"exit_code": null, "signal": null, "reason": "lost", "status": "lost"}),
                "exited       proc_1  lost",
            ),
            ("closed", size.clone(), "closed       proc_1  120 bytes, 3 lines"),
            (
                "completion",
                with(
                    json!({"name": "web", "exit_code": 2, "reason": "killed", "output": "\n\u{1b}[31mError\u{1b}[0m x\nmore", "cancelled": true}),
                ),
                "completion   web  exit 2 (killed), cancelled, 120 bytes, 3 lines: Error x",
            ),
            (
                "watch_match",
                json!({"pattern": "err", "pattern_index": 0, "output": "an err\nmore", "matches": 2, "suppressed": 3}),
                "watch_match  proc_1  err (2 matches, 3 suppressed before): an err",
            ),
            (
                "watch_match",
                json!({"pattern": {"regex": "e+"}, "output": "e", "matches": 1, "suppressed": 0}),
                "watch_match  proc_1  /e+/: e",
            ),
            (
                "watch_disabled",
                json!({"suppressed": 9, "message": "too much"}),
                "watch_disabled  proc_1  9 suppressed: too much",
            ),
            (
                "heartbeat",
                with(json!({"new_bytes": 2048, "output": "tick"})),
                "heartbeat    proc_1  +2.0K, 120 bytes, 3 lines: tick",
            ),
            (
                "needs_input",
                json!({"pid": 7, "echo": false, "prompt": "Password: "}),
                "needs_input  proc_1  pid 7 waits for input, what is typed is not shown: Password:",
            ),
            (
                "output",
                json!({"cursor": 0, "next_cursor": 4, "stream": "stderr", "data": "a\u{7}b\n"}),
                "output       proc_1  stderr: a\\x07b",
            ),
            (
                "lagged",
                json!({"of": "events", "from": 3, "to": 9}),
                "lagged       proc_1  events 3 to 9 were not pushed",
            ),
            (
                "lagged",
                json!({"of": "output", "from": 3, "to": 9}),
                "lagged       proc_1  6 bytes of output were not pushed, from cursor 3",
            ),
            (
                "moved",
                json!({"load": 1.5, "new": [1], "to": "host\n2"}),
                "moved        proc_1  load=1.5 new=[1] to=host\\n2",
            ),
        ];
        for (kind, facts, shown) in cases {
            assert_eq!(line(kind, facts, Style::plain()), format!("06:00:00  {shown}\n"));
        }
        let everywhere = json!({"id": null, "limit": 15, "message": "silence"});
        assert_eq!(
            line("watch_overflow_tripped", everywhere, Style::plain()),
            "06:00:00  watch_overflow_tripped  -  silence\n"
        );
        assert_eq!(line("started", json!({"odd": 1}), Style::plain()), "06:00:00  started      proc_1  odd=1\n");
    }

    #[test]
    fn a_terminal_gets_colours_and_lines_that_fit() {
        let style = Style { width: Some(30), colour: true };
        let shown = line("exited", json!({"exit_code": 1}), style);
        assert_eq!(shown, "\x1b[2m06:00:00  \x1b[0m\x1b[31mexited     \x1b[0m  proc_1…\n");
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
        fn no_event_brings_a_control_character_or_a_second_line(kind in "(watch_match|exited|output|needs_input|completion|x)", value in any::<String>()) {
            let facts = json!({"id": value, "pattern": value, "output": value, "data": value, "prompt": value, "signal": value, "new": value});
            let shown = line(&kind, facts, Style::plain());
            prop_assert!(!shown.trim_end_matches('\n').chars().any(char::is_control));
            prop_assert_eq!(shown.matches('\n').count(), 1);
        }
    }
}
