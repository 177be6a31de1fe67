//! `proc_wait`: conditions, questions, bounds and progress.

use super::client::{FOLLOWER, OURS, Server, await_connections, id_in, masked};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::Daemon;

#[test]
fn a_wait_ends_with_the_first_end_a_match_a_port_or_silence() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    assert_eq!(server.call("proc_wait", json!({})), "nothing is running; proc_list {ended: true} shows what has ended");
    let gate = daemon.gate("go");
    let slow = id_in(&server.call("proc_start", json!({"command": "echo up; sleep 600", "name": "web", "wait_s": 0})));
    let quick = format!("{}; exit 5", gate.wait());
    server.call("proc_start", json!({"command": quick, "name": "job", "wait_s": 0}));
    let waiting = server.send("tools/call", json!({"name": "proc_wait", "arguments": {"timeout_s": 30}}));
    gate.open();
    let answer = server.answer(&waiting);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(masked(text).starts_with("ID (job) exited 5 after T\n"), "{text}");
    assert!(text.contains(&format!("\nstill running: {slow} (web) running ")), "{text}");
    let text = server.call("proc_wait", json!({"ids": ["web"], "match": "^u", "timeout_s": 30}));
    assert!(masked(&text).starts_with("ID (web) running T, matched: \"up\", pid N\n"), "{text}");
    let text = server.call("proc_wait", json!({"ids": ["web"], "quiet_s": 0.05, "timeout_s": 30}));
    assert!(text.contains(", quiet for 0.0s, pid "), "{text}");
    let text = server.fails("proc_wait", json!({"ids": ["web"], "match": "("}));
    assert!(text.ends_with("(invalid_params)"), "{text}");
}

#[test]
fn a_wait_for_all_of_the_session_answers_at_once_with_an_end_that_no_result_has_stated() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    server.call("proc_start", json!({"command": "sleep 600", "name": "web", "wait_s": 0}));
    let quick = format!("{}; exit 5", gate.wait());
    let id = id_in(&server.call("proc_start", json!({"command": quick, "name": "job", "wait_s": 0})));
    gate.open();
    daemon.exited(&id);
    // The broken code waited for the other process alone, until the time was up.
    let text = server.call("proc_wait", json!({"timeout_s": 600}));
    assert!(masked(&text).starts_with("ID (job) exited 5 after T\n") && text.contains("\nstill running: "), "{text}");
    let text = server.call("proc_wait", json!({"timeout_s": 0.1}));
    assert!(masked(&text).starts_with("ID (web) running T, pid N\n"), "it is stated now: {text}");
}

#[test]
fn a_process_that_asks_ends_a_wait_with_its_prompt() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let ask = json!({"command": "printf 'Overwrite? [y/N] '; read a; echo got $a", "name": "setup", "tty": true, "wait_s": 30});
    let text = server.call("proc_start", ask);
    assert!(masked(&text).starts_with("ID (setup) asks \"Overwrite? [y/N]\", pid N\n"), "{text}");
    let text = server.call("proc_wait", json!({"timeout_s": 30}));
    assert!(masked(&text).starts_with("ID (setup) asks \"Overwrite? [y/N]\", pid N\n"), "{text}");
    let text = server.call("proc_write", json!({"id": "setup", "text": "y", "wait_s": 5}));
    assert!(text.contains("got y"), "{text}");
}

#[test]
fn a_wait_that_is_too_long_is_cut_and_the_text_has_it() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--max-wait", "300ms"]);
    server.call("proc_start", json!({"command": "sleep 600", "name": "web", "wait_s": 0}));
    let begin = Instant::now();
    let text = server.call("proc_wait", json!({"timeout_s": 90}));
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert!(text.ends_with("\n[waited 0.3s of 1m, the limit of one call here; call proc_wait again]"), "{text}");
    let text = server.call("proc_wait", json!({"timeout_s": 0.1}));
    assert!(text.ends_with("\n[still running after 0.1s; call proc_wait again]"), "{text}");
    let text = server.call("proc_start", json!({"command": "sleep 600", "wait_s": 20}));
    assert!(text.contains("[waited 0.3s of 20s, the limit of one call here; call proc_wait again]"), "{text}");
}

#[test]
fn a_client_with_a_token_gets_progress_that_rises() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--max-wait", "12s"]);
    let id = id_in(&server.call("proc_start", json!({"command": "echo one; echo two; sleep 600", "wait_s": 0})));
    let call = server.send(
        "tools/call",
        json!({"name": "proc_wait", "arguments": {"ids": [id], "timeout_s": 11.5}, "_meta": {"progressToken": "t"}}),
    );
    let steps = [server.notification("notifications/progress"), server.notification("notifications/progress")];
    for step in &steps {
        assert_eq!(step["progressToken"], "t");
        let message = masked(step["message"].as_str().unwrap());
        assert_eq!(message, "running T, 2 lines: two");
    }
    assert!(steps[0]["progress"].as_f64() < steps[1]["progress"].as_f64(), "{steps:?}");
    let answer: Value = server.answer(&call);
    assert_eq!(answer["result"]["isError"], false);
}

#[test]
fn a_wait_survives_the_daemon() {
    let mut daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    let command = format!("echo ready; {}; exit 6", gate.wait());
    let id = id_in(&server.call("proc_start", json!({"command": command, "ready": "ready", "wait_s": 30})));
    await_connections(&daemon, "only the events are followed", OURS + FOLLOWER);
    let call = server.send("tools/call", json!({"name": "proc_wait", "arguments": {"ids": [id], "timeout_s": 45}}));
    await_connections(&daemon, "the wait has arrived", OURS + FOLLOWER + 1);
    daemon.restart();
    gate.open();
    let answer = server.answer(&call);
    assert!(
        masked(answer["result"]["content"][0]["text"].as_str().unwrap()).starts_with("ID exited 6 after T\n"),
        "{answer}"
    );
}
