//! Tests of the frame: golden frames of several sizes, and no size or text that breaks one.

use super::*;
use crate::model::event_line;
use crate::model::log_view::LogView;
use crate::model::row::{ListedProcess, Row};
use crate::once::frame;
use serde_json::{Value, json};
use toold_proto::params::Stream;
use toold_proto::process::Span;

const NOW: u64 = 1_794_799_740_000;

fn at(ago_s: u64) -> String {
    // 2026-11-16T03:29:00Z minus the seconds, within the same day.
    let second = 3 * 3600 + 29 * 60 - ago_s;
    format!("2026-11-16T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60, second % 60)
}

fn row(value: Value) -> Row {
    Row::new(serde_json::from_value::<ListedProcess>(value).expect("a process"), NOW)
}

fn usage(processes: u64, cpu_ms: u64, rss_bytes: u64) -> Value {
    json!({"processes": processes, "cpu_ms": cpu_ms, "rss_bytes": rss_bytes})
}

/// The state of the picture in the docs.
fn sample(columns: u16, lines: u16) -> State {
    let mut state = State::new(columns, lines, NOW);
    state.midnight_ms = NOW - 12_540_000;
    state.daemon.started_ms = Some(NOW - 4 * 86_400_000);
    state.rows = vec![
        row(
            json!({"id": "proc_000000000001", "name": "setup", "status": "running", "started_at": at(12), "stdin": "pty",
            "session_key": "codex:01a1b2c3d4e5", "usage": usage(1, 0, 9 << 20),
            "needs_input": {"since": at(12), "prompt": "Overwrite? [y/N] ", "echo": true}}),
        ),
        row(json!({"id": "proc_000000000002", "name": "web", "status": "running", "started_at": at(7_200),
            "session_key": "claude:67466aef", "usage": usage(3, 216_000, 120 << 20), "ports": [3000], "preview": "GET /missing 404\n"})),
        row(json!({"id": "proc_000000000003", "name": "build", "status": "running", "started_at": at(41),
            "started_by": {"client": "nvim", "pid": 1, "uid": 1}, "usage": usage(9, 77_900, 1_288_490_188), "preview": "[213/380]\r[214/380] cc foo.o"})),
        row(json!({"id": "proc_000000000004", "name": "tests", "status": "exited", "reason": "exited", "exit_code": 2,
            "started_at": at(400), "exited_at": at(180), "session_key": "claude:67466aef", "preview": "FAILED test_x (4 of 212)\n"})),
        row(
            json!({"id": "proc_000000000005", "status": "lost", "reason": "lost", "command": "sleep 99", "started_at": at(900), "exited_at": at(600)}),
        ),
    ];
    state.loaded = true;
    state.selected = Some("proc_000000000002".into());
    state.arrange();
    let mut log = LogView::tail("proc_000000000002", 0, None);
    let text = b"listening on 3000\nGET / 200\nerror: no such page\nGET /missing 404\n";
    log.append(text, 0, &[Span { stream: Stream::Stderr, from: 28, to: 48, at_ms: 0 }], None);
    state.log = Some(log);
    for (seq, event) in
        [json!({"type": "exited", "name": "build4", "exit_code": 2}), json!({"type": "needs_input", "name": "setup"})]
            .iter()
            .enumerate()
    {
        let mut event = event.clone();
        (event["seq"], event["at"]) = (json!(seq), json!("bad time"));
        state.events.extend(event_line::read(&event));
    }
    // The clock depends on the time zone of the machine.
    state.events.iter_mut().for_each(|event| event.at_ms = 0);
    state
}

fn drawn(state: &State) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, state.columns, state.lines));
    render(state, &mut buffer);
    let text = frame(&buffer, false);
    let clock = toold_client::text::local_time_of_day(0).map(|(h, m, s)| format!("{h:02}:{m:02}:{s:02}"));
    text.replace(&clock.unwrap_or_default(), "00:00:00")
}

#[track_caller]
fn check(name: &str, text: &str) {
    let path = format!("{}/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file is written");
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{path}");
}

#[test]
fn the_frame_is_the_golden_one_at_each_width() {
    for (columns, lines) in [(80, 24), (120, 30), (50, 12), (30, 6), (20, 5)] {
        check(&format!("list-{columns}x{lines}"), &drawn(&sample(columns, lines)));
    }
}

#[test]
fn owners_a_question_a_secret_and_a_lost_daemon_are_golden() {
    let mut state = sample(80, 24);
    state.by_owner = true;
    state.daemon.live_sessions = Some(["codex:01a1b2c3d4e5".to_owned()].into());
    state.arrange();
    check("owners-80x24", &drawn(&state));
    let mut state = sample(80, 24);
    let mut line = crate::model::line_edit::LineEdit::default();
    line.insert("hunter2");
    state.mode = Mode::Answer { id: "x".into(), title: "Password:".into(), line, hidden: true };
    let text = drawn(&state);
    assert!(!text.contains("hunter2") && !text.contains("*******"), "{text}");
    assert!(text.ends_with("Password: (hidden) ›\n"), "{text}");
    state.mode = Mode::Normal;
    state.link = crate::model::Reachability::Lost { since_ms: NOW - 3_000 };
    check("lost-80x24", &drawn(&state));
}

#[test]
fn the_help_and_the_whole_log_are_golden() {
    let mut state = sample(80, 24);
    state.mode = Mode::Help;
    check("help-80x24", &drawn(&state));
    state.mode = Mode::Normal;
    state.zoomed = true;
    assert_eq!(state.log.as_mut().map(|log| log.search("get /\\w+", 10)), Some(Ok(true)));
    check("log-80x24", &drawn(&state));
}

#[test]
fn no_size_and_no_text_breaks_a_frame() {
    for columns in [1, 2, 3, 5, 10, 20, 39, 40, 41, 79, 200] {
        for lines in [1, 2, 3, 5, 7, 8, 9, 24, 60] {
            let mut state = sample(columns, lines);
            state.rows[1].name = Some("漢字の名前がとても長い".into());
            state.rows[2].last_output = "e\u{301}\u{301} 👩‍👩‍👧 \u{202e}".into();
            state.arrange();
            for mode in
                [Mode::Normal, Mode::Help, Mode::Filter(crate::model::line_edit::LineEdit::with("漢字漢字漢字"))]
            {
                state.mode = mode;
                let text = drawn(&state);
                let too_wide = text.lines().find(|line| columns_of(line) > usize::from(columns));
                assert_eq!((text.lines().count(), too_wide), (usize::from(lines), None), "{columns}x{lines}");
            }
        }
    }
}

fn columns_of(text: &str) -> usize {
    toold_client::text::columns(text)
}

#[test]
fn standard_error_is_tinted_and_no_colour_is_used_without_colours() {
    let mut state = sample(80, 24);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    render(&state, &mut buffer);
    let line =
        (0..24).find(|y| (0..5).map(|x| buffer[(x, *y)].symbol()).collect::<String>() == "error").expect("the line");
    assert_eq!(buffer[(0, line)].fg, Color::Red);
    state.colours = false;
    render(&state, &mut buffer);
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(!frame(&buffer, false).contains('\x1b') && frame(&buffer, true).contains("\x1b[0;7m"));
}
