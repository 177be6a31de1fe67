//! A call that is made again has its effect once, also by another server.

use super::client::{Server, id_in, text_of};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn call(server: &mut Server, id: i64, tool: &str, arguments: Value) -> String {
    server.send_with_id(json!(id), "tools/call", json!({"name": tool, "arguments": arguments}));
    text_of(&server.answer(&json!(id))["result"], false)
}

#[test]
fn a_repeated_start_finds_its_process_and_the_same_id_with_other_arguments_is_a_new_call() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let make = json!({"command": "echo once >> count; sleep 600", "wait_s": 0});
    let first = id_in(&call(&mut server, 70, "proc_start", make.clone()));
    assert_eq!(id_in(&call(&mut server, 70, "proc_start", make.clone())), first);
    assert_ne!(id_in(&call(&mut server, 71, "proc_start", make.clone())), first, "another call");
    assert_ne!(id_in(&call(&mut server, 70, "proc_start", json!({"command": "true"}))), first, "other arguments");
    server.kill9();
    let mut again = Server::legacy(&daemon, &["--session", "s"]);
    daemon.eventually("it is a second old", || daemon.process(&first)["uptime_ms"].as_u64() > Some(1000));
    let text = call(&mut again, 70, "proc_start", make.clone());
    assert_eq!(id_in(&text), first, "another server of the session");
    assert!(text.contains("\n[this call was made before; nothing was started again]"), "{text}");
    let mut other = Server::legacy(&daemon, &["--session", "t"]);
    assert_ne!(id_in(&call(&mut other, 70, "proc_start", make)), first, "another session");
    assert_eq!(daemon.ids(json!({})).len(), 4);
}

#[test]
fn a_server_that_is_killed_in_a_start_and_another_one_start_one_process() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let start =
        json!({"name": "proc_start", "arguments": {"command": "echo up; sleep 600", "ready": "never", "wait_s": 40}});
    server.send_with_id(json!(9), "tools/call", start.clone());
    daemon.eventually("it runs", || daemon.ids(json!({"status": "running"})).len() == 1);
    server.kill9();
    let mut again = Server::legacy(&daemon, &["--session", "s", "--max-wait", "200ms"]);
    again.send_with_id(json!(9), "tools/call", start);
    let text = text_of(&again.answer(&json!(9))["result"], false);
    assert_eq!(daemon.ids(json!({})), [id_in(&text)]);
}

#[test]
fn a_daemon_that_is_killed_in_a_start_starts_one_process() {
    let mut daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    let command = format!("echo x >> count; echo up; {}; exit 3", gate.wait());
    let call =
        server.send("tools/call", json!({"name": "proc_start", "arguments": {"command": command, "wait_s": 45}}));
    daemon.eventually("it runs", || daemon.ids(json!({"status": "running"})).len() == 1);
    daemon.restart();
    gate.open();
    let answer = server.answer(&call);
    let text = text_of(&answer["result"], false);
    assert!(text.contains(" exited 3 after ") && !text.contains("made before"), "{text}");
    assert_eq!(std::fs::read_to_string(daemon.root().join("count")).unwrap(), "x\n");
}

#[test]
fn a_repeated_write_types_nothing() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let id = id_in(&server.call("proc_start", json!({"command": "while read a; do echo got $a; done", "wait_s": 0})));
    let write = json!({"id": id, "text": "x", "wait_s": 5});
    assert!(call(&mut server, 80, "proc_write", write.clone()).contains("got x"));
    let again = json!({"id": id, "text": "x", "wait_s": 5});
    server.kill9();
    let mut other = Server::legacy(&daemon, &["--session", "s", "--max-wait", "300ms"]);
    let text = call(&mut other, 80, "proc_write", again);
    assert!(text.ends_with("[this call was made before; nothing was typed again]"), "{text}");
    call(&mut other, 81, "proc_write", json!({"id": id, "text": "x", "wait_s": 5}));
    daemon.printed(&id, "got x");
    server_lines(&daemon, &id, 2);
}

fn server_lines(daemon: &Daemon, id: &str, lines: u64) {
    daemon.eventually("both writes are answered", || daemon.process(id)["lines"].as_u64() == Some(lines));
}
