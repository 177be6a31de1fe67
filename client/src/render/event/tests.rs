//! Tests of the lines that events are shown as.

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
            "tool_provider",
            json!({"id": null, "provider": "linear", "state": "ready", "tools": 2, "why": null}),
            "tool_provider  -  linear is ready: 2 tools",
        ),
        (
            "tool_provider",
            json!({"id": null, "provider": "linear", "state": "gone", "tools": 2, "why": "pid 7 disconnected"}),
            "tool_provider  -  linear has gone: pid 7 disconnected",
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
