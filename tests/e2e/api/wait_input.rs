//! `wait` for input: `until: "input"`, `or_input`, and what an answer changes.

use crate::api::events::until;
use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

const TIMEOUT_MS: u64 = 50_000;

/// Returns the status and the questions of a wait.
fn questions(wait: &Value) -> (String, Vec<Value>) {
    let processes = wait["processes"].as_array().unwrap();
    let prompts = processes.iter().map(|p| p["needs_input"]["prompt"].clone()).collect();
    (wait["status"].as_str().unwrap().to_owned(), prompts)
}

#[test]
fn a_wait_for_input_returns_when_the_program_asks_and_at_once_while_it_does() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let process = id(&d.sh_with(&format!("{}; printf 'Name? '; read -r x", gate.wait()), json!({ "pty": true })));
    let wait = json!({ "id": process, "until": "input", "timeout_ms": TIMEOUT_MS });
    let mut conn = d.conn();
    let asked = conn.request("wait", wait.clone());
    let early = d.ok("wait", json!({ "id": process, "until": "input", "timeout_ms": 600 }));
    assert_eq!(early["status"], "timeout", "it waits for the gate, and for no input: {early}");
    gate.open();
    let expected = ("input".to_owned(), vec![json!("Name? ")]);
    assert_eq!(questions(&conn.answer(asked).unwrap()), expected);
    assert_eq!(questions(&d.ok("wait", wait)), expected, "it still asks");
}

#[test]
fn a_wait_for_an_exit_returns_at_a_question_only_on_request() {
    let d = Daemon::start();
    let asks = id(&d.sh_with("printf 'Sure? '; read -r x; exit 5", json!({ "pty": true })));
    let other = d.sh("exec sleep 1000");
    until(&d, "c", json!({ "types": ["needs_input"], "id": asks }));
    let wait = |more: Value| {
        let mut params = json!({ "ids": [asks, other], "timeout_ms": 500 });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.ok("wait", params)
    };
    assert_eq!(wait(json!({}))["status"], "timeout");
    for mode in ["any", "all"] {
        let waited = wait(json!({ "or_input": true, "mode": mode, "timeout_ms": TIMEOUT_MS }));
        assert_eq!(questions(&waited), ("input".to_owned(), vec![json!("Sure? "), Value::Null]), "{mode}");
    }
    d.ok("submit", json!({ "id": asks, "data": "y" }));
    let waited = wait(json!({ "or_input": true, "timeout_ms": TIMEOUT_MS }));
    assert_eq!((&waited["status"], &waited["processes"][0]["exit_code"]), (&json!("exited"), &json!(5)));
}

/// A question that was just answered is not returned again, although the program may not have woken up yet.
#[test]
fn a_wait_after_an_answer_returns_at_the_next_question() {
    let d = Daemon::start();
    let script = "for q in one two three four; do printf \"$q? \"; read -r x; done";
    let process = id(&d.sh_with(script, json!({ "pty": true })));
    let mut conn = d.conn();
    for question in ["one? ", "two? ", "three? ", "four? "] {
        let wait = json!({ "id": process, "or_input": true, "timeout_ms": TIMEOUT_MS });
        let waited = conn.call("wait", wait).unwrap();
        assert_eq!(questions(&waited), ("input".to_owned(), vec![json!(question)]));
        conn.call("submit", json!({ "id": process, "data": "x" })).unwrap();
    }
    let waited = conn.call("wait", json!({ "id": process, "or_input": true, "timeout_ms": TIMEOUT_MS })).unwrap();
    assert_eq!(waited["status"], "exited");
}

#[test]
fn a_process_that_ends_without_a_question_is_returned_as_ended() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let process = d.sh(&format!("{}; exit 3", gate.wait()));
    let mut conn = d.conn();
    let asked = conn.request("wait", json!({ "id": process, "until": "input", "timeout_ms": TIMEOUT_MS }));
    gate.open();
    let waited = conn.answer(asked).unwrap();
    assert_eq!((&waited["status"], &waited["processes"][0]["exit_code"]), (&json!("exited"), &json!(3)));
}

#[test]
fn all_waits_for_the_question_of_every_process() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let first = id(&d.sh_with("printf 'a? '; read -r x", json!({ "pty": true })));
    let second = id(&d.sh_with(&format!("{}; printf 'b? '; read -r x", gate.wait()), json!({ "pty": true })));
    let wait = |mode: &str| json!({ "ids": [first, second], "until": "input", "mode": mode, "timeout_ms": TIMEOUT_MS });
    let mut conn = d.conn();
    let all = conn.request("wait", wait("all"));
    assert_eq!(questions(&d.ok("wait", wait("any"))).0, "input");
    assert!(!conn.has_early(all));
    gate.open();
    assert_eq!(questions(&conn.answer(all).unwrap()), ("input".to_owned(), vec![json!("a? "), json!("b? ")]));
}

/// A daemon looks at a silent program less and less often. One that reads and prints nothing before is found because a caller waits.
#[test]
fn a_program_that_reads_and_prints_nothing_is_found_for_a_caller_that_waits() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let process = id(&d.sh_with(&format!("{}; read -r x", gate.wait()), json!({ "stdin": "pipe" })));
    // By now the time to the next look is some seconds.
    let waited = d.ok("wait", json!({ "id": process, "until": "input", "timeout_ms": 4000 }));
    assert_eq!(waited["status"], "timeout");
    gate.open();
    let waited = d.ok("wait", json!({ "id": process, "until": "input", "timeout_ms": TIMEOUT_MS }));
    assert_eq!(waited["status"], "input");
}

#[test]
fn after_a_kill_of_the_daemon_a_wait_returns_the_same_question() {
    let mut d = Daemon::start();
    let process = id(&d.sh_with("printf 'Go? '; read -r x; exit 4", json!({ "pty": true })));
    let wait = json!({ "id": process, "or_input": true, "timeout_ms": TIMEOUT_MS });
    let before = d.ok("wait", wait.clone());
    d.kill9();
    d.spawn();
    let after = d.ok("wait", wait.clone());
    let question = |wait: &Value| wait["processes"][0]["needs_input"].clone();
    assert_eq!((after["status"].as_str(), question(&after)), (Some("input"), question(&before)));
    d.ok("submit", json!({ "id": process, "data": "y" }));
    assert_eq!(d.ok("wait", wait)["processes"][0]["exit_code"], 4);
}

#[test]
fn readiness_is_no_question() {
    let d = Daemon::start();
    d.refused_param("ready", "exec", json!({ "argv": ["cat"], "stdin": "pipe", "ready": "input" }));
}

#[test]
fn the_command_line_waits_for_a_question_and_prints_how_to_answer_it() {
    let d = Daemon::start();
    let process = id(&d.sh_with("printf 'Go? '; read -r x", json!({ "pty": true, "name": "setup" })));
    let waited = d.ctl(&["wait", "setup", "--input", "--timeout", "50s"]);
    let line = |output: &str| output.lines().next().unwrap_or_default().to_owned();
    assert_eq!((waited.code, waited.stderr.as_str()), (0, ""), "{waited:?}");
    assert!(line(&waited.stdout).ends_with(", waiting for input"), "{waited:?}");
    let waited = d.ctl(&["wait", "setup", "--or-input", "--timeout", "50s"]);
    let printed = format!("toolctl: {process} waits for input: Go?; answer with toolctl submit {process}\n");
    assert_eq!((waited.code, waited.stderr.as_str()), (1, printed.as_str()), "{waited:?}");
    assert_eq!(d.ctl(&["wait", "setup", "--timeout", "300ms"]).code, 124, "a plain wait goes on");
    assert_eq!(d.ctl(&["wait", "setup", "--input", "--closed"]).code, 2, "one of them");
}
