//! Tests of `wait`.

use super::*;
use crate::cli::{Screen, test_run, test_run_on};
use crate::testing::{FakeDaemon, Reply, process};
use serde_json::{Value, json};

fn waited(changes: Value) -> Value {
    let mut document = process(json!({"output": "", "next_cursor": 0, "matched": null}));
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

fn exited(code: i32) -> Value {
    waited(json!({"status": "exited", "reason": "exited", "exit_code": code}))
}

fn answer(status: &str, processes: Vec<Value>) -> Value {
    json!({"status": status, "processes": processes, "timeout_ms": 30000, "clamped": false, "note": null})
}

#[test]
fn the_exit_code_is_the_process_code_or_explains_why_there_is_none() {
    let lost = || waited(json!({"status": "lost", "reason": "lost"}));
    let running = || waited(json!({}));
    let killed = waited(json!({"status": "exited", "reason": "killed", "exit_code": 137, "signal": "SIGKILL"}));
    let cases: Vec<(&[&str], Value, u8)> = vec![
        (&["a"], answer("exited", vec![exited(0)]), 0),
        (&["a"], answer("exited", vec![exited(7)]), 7),
        (&["a"], answer("exited", vec![killed]), 137),
        (&["a"], answer("exited", vec![lost()]), 1),
        (&["a", "b", "c"], answer("exited", vec![exited(0), exited(5), exited(9)]), 5),
        (&["a", "b"], answer("exited", vec![exited(0), lost()]), 1),
        (&["a", "b", "--any"], answer("exited", vec![running(), exited(3)]), 3),
        (&["a", "b", "--any"], answer("exited", vec![running(), exited(0)]), 0),
        (&["a"], answer("timeout", vec![running()]), 124),
        (&["a", "--match", "x"], answer("matched", vec![running()]), 0),
        (&["a", "--match", "x"], answer("exited", vec![exited(0)]), 1),
        (&["a", "--match", "x"], answer("timeout", vec![running()]), 124),
        (&["a", "--input"], answer("input", vec![running()]), 0),
        (&["a", "--input"], answer("exited", vec![exited(0)]), 1),
        (&["a", "--or-input"], answer("input", vec![running()]), 1),
        (&["a", "--or-input"], answer("exited", vec![exited(7)]), 7),
    ];
    for (args, result, code) in cases {
        for json in [None, Some("--json")] {
            let fake = FakeDaemon::start(vec![vec![Reply::result(&result)]]);
            let args: Vec<&str> = ["wait"].iter().chain(args).copied().chain(json).collect();
            assert_eq!(test_run(&fake, &args).0, code, "{args:?}");
        }
    }
}

#[test]
fn a_process_that_ended_without_a_match_is_named() {
    let args = ["wait", "a", "b", "--match", "x"];
    let matched = waited(json!({"matched": "x"}));
    let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0), matched]))]]);
    let (code, _, err) = test_run(&fake, &args);
    let printed = "toolctl: proc_0123456789ab exited 0 without a line that matches\n";
    assert_eq!((code, err.as_str()), (1, printed));
    let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0)]))]]);
    assert_eq!(test_run(&fake, &["wait", "a", "--match", "x", "--port", "1"]).0, 2, "one of them");
    assert_eq!(test_run(&fake, &["wait", "a"]).2, "", "an exit that was waited for is not reported");
}

/// Before, the exit code was 1 without a reason.
#[test]
fn a_lost_process_is_reported() {
    let lost = waited(json!({"status": "lost", "reason": "lost"}));
    let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0), lost]))]]);
    let (code, _, err) = test_run(&fake, &["wait", "a", "b"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("toolctl: proc_0123456789ab lost"), "{err}");
    assert!(err.ends_with(": its end was not observed\n") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_process_that_ended_before_its_port_or_its_silence_is_named_too() {
    for (flag, printed) in
        [(["--port", "80"], "without listening on port 80"), (["--quiet", "2s"], "before it was quiet for 2s")]
    {
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0)]))]]);
        let (code, _, err) = test_run(&fake, &[&["wait", "a"], &flag[..]].concat());
        assert_eq!((code, err), (1, format!("toolctl: proc_0123456789ab exited 0 {printed}\n")));
    }
}

#[test]
fn all_is_sent_and_any_is_the_daemons_default() {
    let cases: [(&[&str], Value); 8] = [
        (&["wait", "a", "--timeout", "30s"], json!({"id": "a", "mode": "all", "timeout_ms": 30000})),
        (&["wait", "a", "b", "--any"], json!({"ids": ["a", "b"]})),
        (&["wait", "a", "--match", "r+"], json!({"id": "a", "mode": "all", "until": {"match": {"regex": "r+"}}})),
        (&["wait", "a", "--port", "80"], json!({"id": "a", "mode": "all", "until": {"port": 80}})),
        (&["wait", "a", "--quiet", "2s"], json!({"id": "a", "mode": "all", "until": {"quiet_ms": 2000}})),
        (&["wait", "a", "--closed"], json!({"id": "a", "mode": "all", "until": "closed"})),
        (&["wait", "a", "--input"], json!({"id": "a", "mode": "all", "until": "input"})),
        (&["wait", "a", "--or-input"], json!({"id": "a", "mode": "all", "or_input": true})),
    ];
    for (args, params) in cases {
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer("matched", vec![exited(0)]))]]);
        assert_eq!(test_run(&fake, args).0, 0);
        assert_eq!(fake.next_request(), ("wait".into(), params));
    }
}

/// The broken code gave up after three minutes, at a terminal too.
#[test]
fn at_a_terminal_a_wait_has_no_end_unless_one_is_given() {
    let timeout = || Reply::result(answer("timeout", vec![waited(json!({}))]));
    let fake = FakeDaemon::start(vec![vec![timeout(), timeout(), Reply::result(answer("exited", vec![exited(4)]))]]);
    assert_eq!(test_run_on(Screen::Errors, &fake, &["wait", "a"]).0, 4);
    let asked = json!({"id": "a", "mode": "all", "timeout_ms": 600_000});
    assert_eq!(fake.requests(), vec![("wait".to_owned(), asked); 3]);
    let fake = FakeDaemon::start(vec![vec![timeout()]]);
    assert_eq!(test_run_on(Screen::Errors, &fake, &["wait", "a", "--timeout", "1ms"]).0, 124);
    let fake = FakeDaemon::start(vec![vec![timeout()]]);
    assert_eq!(test_run(&fake, &["wait", "a"]).0, 124, "a script that hangs would hang for ever");
}

#[test]
fn a_wait_goes_on_across_a_lost_connection_with_the_time_that_is_left() {
    let fake = FakeDaemon::start(vec![vec![Reply::HangUp], vec![Reply::result(answer("exited", vec![exited(4)]))]]);
    assert_eq!(test_run(&fake, &["wait", "a", "--timeout", "30s"]).0, 4);
    assert_eq!(fake.requests().len(), 2);
    let asked = params::WaitParams { timeout_ms: Some(1000), ..Default::default() };
    let left = |ms| shortened(&asked, Duration::from_millis(ms)).timeout_ms;
    assert_eq!((left(0), left(400), left(5000)), (Some(1000), Some(600), Some(1)));
    let unsaid = shortened(&params::WaitParams::default(), Duration::from_secs(1)).timeout_ms;
    assert_eq!(unsaid, Some(179_000));
}
