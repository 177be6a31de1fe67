//! The answers to each hook, against a daemon that answers from a script.

use super::*;
use crate::connect::{Autostart, Connection};
use crate::console::Console;
use crate::testing::{FakeDaemon, Reply, process};
use serde_json::{Value, json};

fn args(line: &[&str]) -> Args {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    <Line as clap::Parser>::try_parse_from(["hook"].iter().chain(line)).expect("every line is taken").args
}

fn input(text: &str) -> Input {
    read_input(text.as_bytes()).expect("an object")
}

/// Runs the hook against the fake. Returns its code, output and errors.
fn hook(fake: &FakeDaemon, line: &[&str], text: Value, from_env: Option<&str>) -> (Option<u8>, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let connection = Connection::new(fake.path(), Autostart::Refused);
    let mut cx = Context { connection, console: Console::plain(&mut out, &mut err), json: false };
    let code = answer(&args(line), &input(&text.to_string()), from_env.map(str::to_owned), &mut cx);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (code, text(out), text(err))
}

fn completion(seq: u64) -> Value {
    json!({"seq": seq, "at": "2026-11-16T03:28:50.123Z", "type": "completion", "id": "proc_0123456789ab", "session_key": "codex:7",
        "task_id": null, "name": "build", "command": "make", "exit_code": 2, "signal": null, "reason": "exited", "killed_by": null,
        "duration_ms": 5300, "output": "error: x\n", "output_path": null, "bytes": 9, "lines": 1, "sha256": null,
        "dropped_bytes": 0, "unstored_bytes": 0})
}

fn pulled(events: &[Value]) -> Reply {
    Reply::result(json!({"consumer": "agent:codex:7", "events": events, "position": 0, "last": 9, "missing": null,
        "created": false, "forgotten": null}))
}

fn acked() -> Reply {
    Reply::result(json!({"consumer": "agent:codex:7", "position": 9}))
}

fn methods(fake: &FakeDaemon) -> Vec<String> {
    fake.requests().into_iter().map(|(method, _)| method).collect()
}

fn stop(active: bool) -> Value {
    json!({"session_id": "7", "hook_event_name": "Stop", "cwd": "/w", "stop_hook_active": active, "tool": {"x": [1]}})
}

/// Replaces the age, which depends on the day of the test.
fn without_age(text: &str) -> String {
    let age = regex::Regex::new(r"\d+[smhd] ago").expect("a pattern");
    age.replace_all(text, "T ago").into_owned()
}

#[test]
fn the_end_of_a_turn_is_blocked_once_and_acknowledged_after_it_was_written() {
    let fake = FakeDaemon::start(vec![vec![pulled(&[completion(9)]), acked()]]);
    let (code, out, err) = hook(&fake, &["--agent", "codex"], stop(false), None);
    let reason = "toold: build exited 2 T ago \\\"error: x\\\"";
    assert_eq!(without_age(&out), format!("{{\"decision\":\"block\",\"reason\":\"{reason}\"}}\n"));
    assert_eq!((code, err), (Some(0), String::new()));
    let asked = fake.requests();
    assert_eq!(asked[0].1["consumer"], "agent:codex:7");
    assert_eq!(asked[1], ("events.ack".into(), json!({"consumer": "agent:codex:7", "seq": 9})));
    let fake = FakeDaemon::start(vec![vec![]]);
    assert_eq!(hook(&fake, &["--agent", "codex"], stop(true), None).0, Some(0), "this turn began so already");
    assert_eq!(methods(&fake), [""; 0]);
}

#[test]
fn gemini_is_given_another_turn_by_its_exit_code_and_context_by_json() {
    let fake = FakeDaemon::start(vec![vec![pulled(&[completion(9)]), acked()]]);
    let event = |name: &str| json!({"session_id": "7", "hook_event_name": name});
    let (code, out, err) = hook(&fake, &["--agent", "codex"], event("AfterAgent"), None);
    let text = "toold: build exited 2 T ago \"error: x\"\n";
    assert_eq!((code, out, without_age(&err)), (Some(2), String::new(), text.to_owned()));
    for name in ["PostToolUse", "AfterTool"] {
        let fake = FakeDaemon::start(vec![vec![pulled(&[completion(9)]), acked()]]);
        let (code, out, _) = hook(&fake, &[], event(name), Some("codex:7"));
        let answered: Value = serde_json::from_str(&without_age(&out)).expect("JSON");
        let wanted = json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text.trim_end()}});
        assert_eq!((code, answered), (Some(0), wanted));
    }
}

#[test]
fn an_agent_that_does_not_take_the_text_is_informed_again() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let fake = FakeDaemon::start(vec![vec![pulled(&[completion(9)]), acked()]]);
    let (mut out, mut err) = (Closed, Vec::new());
    let connection = Connection::new(fake.path(), Autostart::Refused);
    let mut cx = Context { connection, console: Console::plain(&mut out, &mut err), json: false };
    assert_eq!(answer(&args(&[]), &input(&stop(false).to_string()), Some("codex:7".into()), &mut cx), None);
    assert_eq!(methods(&fake), ["events.next"]);
}

#[test]
fn matches_alone_do_not_start_a_turn_and_noise_is_acknowledged() {
    let matched = json!({"seq": 4, "at": "2026-11-16T03:28:50.123Z", "type": "watch_match", "id": "proc_0123456789ab",
        "session_key": "codex:7", "task_id": null, "name": "web", "pattern": "x", "pattern_index": 0, "output": "x", "matches": 1,
        "truncated": false, "suppressed": 0});
    let fake = FakeDaemon::start(vec![vec![pulled(std::slice::from_ref(&matched))]]);
    assert_eq!(hook(&fake, &["--agent", "codex"], stop(false), None), (None, String::new(), String::new()));
    assert_eq!(methods(&fake), ["events.next"]);
    let mut cancelled = completion(9);
    cancelled["cancelled"] = json!(true);
    let fake = FakeDaemon::start(vec![vec![pulled(&[cancelled]), acked()]]);
    assert_eq!(hook(&fake, &["--agent", "codex"], stop(false), None), (Some(0), String::new(), String::new()));
    assert_eq!(methods(&fake), ["events.next", "events.ack"]);
}

#[test]
fn a_session_starts_with_what_runs_and_gemini_gets_it_as_json() {
    let listed =
        || Reply::result(json!({"processes": [process(json!({"name": "web", "session_key": "codex:7"}))], "total": 1}));
    let event = json!({"session_id": "7", "hook_event_name": "SessionStart", "cwd": "/w"});
    let fake = FakeDaemon::start(vec![vec![listed()]]);
    let (code, out, _) = hook(&fake, &["--agent", "codex"], event.clone(), None);
    let text = out.lines().collect::<Vec<_>>();
    assert_eq!((code, text[0], text.len()), (Some(0), "toold: 1 job runs here in the background:", 2));
    assert!(text[1].starts_with("proc_0123456789ab (web) running "), "{out}");
    let fake = FakeDaemon::start(vec![vec![listed()]]);
    let (_, out, _) = hook(&fake, &["--agent", "gemini"], event, Some("codex:7"));
    let answered: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answered["hookSpecificOutput"]["hookEventName"], "SessionStart");
}

#[test]
fn the_end_of_a_session_kills_only_with_that_option() {
    let event = json!({"session_id": "7", "hook_event_name": "SessionEnd"});
    for line in [&[][..], &["--on-end", "keep"], &["--on-end", "nonsense"], &["--on-end"]] {
        let fake = FakeDaemon::start(vec![vec![]]);
        assert_eq!(hook(&fake, line, event.clone(), None).0, Some(0), "{line:?}");
        assert_eq!(methods(&fake), [""; 0]);
    }
    let fake = FakeDaemon::start(vec![vec![Reply::result(json!({"session_key": "a:7", "killed": [], "count": 0}))]]);
    assert_eq!(hook(&fake, &["--agent", "a", "--on-end", "kill"], event, None).0, Some(0));
    assert_eq!(fake.requests(), [("session.end".into(), json!({"session_key": "a:7"}))]);
}

#[test]
fn whatever_is_wrong_is_silent_and_no_failure() {
    for text in ["", "nonsense", "[1]", "{", "3", "\"x\"", "{\"hook_event_name\": 3}"] {
        let read = read_input(text.as_bytes());
        assert!(read.is_none_or(|input| input.hook_event_name.is_empty()), "{text}");
    }
    let fake = FakeDaemon::start(vec![vec![Reply::HangUp], vec![Reply::Line("nonsense\n".into())]]);
    for _ in 0..3 {
        assert_eq!(hook(&fake, &[], stop(false), Some("s")), (None, String::new(), String::new()));
    }
    let unnamed = json!({"hook_event_name": "Stop"});
    assert_eq!(hook(&fake, &["--agent", "x"], unnamed, None), (None, String::new(), String::new()));
    for line in [&["--agent"][..], &["--new-option", "3"], &["--agent", "x", "--new", "y"], &["text"]] {
        args(line);
    }
}

#[test]
fn the_session_is_that_of_the_environment_else_the_agents_own() {
    let key = |line: &[&str], env: Option<&str>| {
        session_key(&args(line), &input(&stop(false).to_string()), env.map(Into::into))
    };
    assert_eq!(key(&["--agent", "codex"], Some("claude:1")).as_deref(), Some("claude:1"));
    assert_eq!(key(&["--agent", "codex"], None).as_deref(), Some("codex:7"));
    assert_eq!(key(&[], None).as_deref(), Some("7"));
}

#[test]
fn an_agent_that_keeps_its_pipe_open_does_not_hold_up_the_hook() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut writer, stop(true).to_string().as_bytes()).expect("room in the pipe");
    assert!(read_input(reader).expect("an object").stop_hook_active);
    let (silent, _open) = std::io::pipe().expect("a pipe");
    assert!(read_within(Duration::from_millis(20), move || read_input(silent)).is_none());
}
