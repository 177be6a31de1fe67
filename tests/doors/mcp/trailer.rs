//! The line of events: each once, in the next result of anything, for the one consumer of the session.

use super::client::{Server, events_in, id_in, masked};
use serde_json::json;
use toold_test_support::rig::Daemon;

/// Waits until the completion of a process is in the journal.
fn completed(daemon: &Daemon, id: &str) {
    daemon.exited(id);
    daemon.eventually("its completion is published", || {
        let next = daemon.ok("events.next", json!({"consumer": "probe", "id": id, "types": ["completion"]}));
        !next["events"].as_array().unwrap().is_empty()
    });
}

fn position(daemon: &Daemon, consumer: &str) -> u64 {
    let info = daemon.ok("daemon.info", json!({}));
    let consumers = info["events"]["consumers"].as_array().unwrap().clone();
    consumers.iter().find(|c| c["name"] == consumer).map_or(0, |c| c["position"].as_u64().unwrap())
}

#[test]
fn an_exit_is_reported_once_in_the_next_result_of_any_tool() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    let command = format!("{}; echo 'error: x'; exit 2", gate.wait());
    let id = id_in(&server.call("proc_start", json!({"command": command, "name": "build", "wait_s": 0})));
    assert_eq!(events_in(&server.call("proc_list", json!({}))), None);
    gate.open();
    completed(&daemon, &id);
    let text = server.call("proc_list", json!({"everyone": true}));
    assert_eq!(events_in(&text).map(|line| masked(&line)).as_deref(), Some("build exited 2 T ago \"error: x\""));
    assert_eq!(events_in(&server.call("proc_list", json!({}))), None, "it was reported");
    daemon.eventually("it is acknowledged", || position(&daemon, "agent:s") > 0);
    let mut again = Server::legacy(&daemon, &["--session", "s"]);
    assert_eq!(events_in(&again.call("proc_list", json!({}))), None, "to every server of the session");
}

#[test]
fn what_a_result_states_is_not_reported_again() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let id = id_in(&server.call("proc_start", json!({"command": "echo hi; exit 1"})));
    completed(&daemon, &id);
    assert_eq!(events_in(&server.call("proc_list", json!({}))), None);
    let id = id_in(&server.call("proc_start", json!({"command": "sleep 600", "wait_s": 0})));
    server.call("proc_kill", json!({"ids": [id]}));
    completed(&daemon, &id);
    assert_eq!(events_in(&server.call("proc_list", json!({}))), None);
    daemon.eventually("other carriers do not report it", || {
        let next = daemon
            .ok("events.next", json!({"consumer": "agent:s", "session_key": "s", "types": ["exited", "completion"]}));
        next["events"].as_array().unwrap().is_empty()
    });
}

#[test]
fn an_error_carries_the_trailer_too_and_a_shell_job_of_the_session_is_reported() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    server.call("proc_list", json!({}));
    let output = daemon.ctl(&["exec", "--session", "s", "--name", "job", "-c", "exit 4"]);
    assert_eq!(output.code, 0, "{output:?}");
    daemon.exited("job");
    daemon.eventually("its exit is published", || {
        let next = daemon.ok("events.next", json!({"consumer": "probe", "session_key": "s", "types": ["exited"]}));
        !next["events"].as_array().unwrap().is_empty()
    });
    let text = server.fails("proc_read", json!({"id": "nothing"}));
    assert_eq!(events_in(&text).map(|line| masked(&line)).as_deref(), Some("job exited 4 T ago"));
}

#[test]
fn a_question_is_reported_with_its_prompt_and_not_after_it_was_answered() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let ask = json!({"command": "printf 'Overwrite? [y/N] '; read a; echo got $a; sleep 600", "name": "setup", "tty": true, "wait_s": 0});
    let id = id_in(&server.call("proc_start", ask));
    daemon.eventually("it asks", || daemon.process(&id)["needs_input"].is_object());
    daemon.eventually("the event is published", || {
        let next = daemon.ok("events.next", json!({"consumer": "probe", "session_key": "s", "types": ["needs_input"]}));
        !next["events"].as_array().unwrap().is_empty()
    });
    let text = server.fails("proc_read", json!({"id": "nothing"}));
    assert_eq!(events_in(&text).map(|line| masked(&line)).as_deref(), Some("setup asks \"Overwrite? [y/N]\" T ago"));
    assert_eq!(events_in(&server.fails("proc_read", json!({"id": "nothing"}))), None);
    server.call("proc_kill", json!({"ids": [id]}));
}

#[test]
fn events_of_another_session_are_not_reported() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "mine"]);
    daemon.exited(&toold_test_support::rig::id(
        &daemon.sh_with("exit 3", json!({"session_key": "theirs", "notify": true})),
    ));
    assert_eq!(events_in(&server.call("proc_list", json!({"everyone": true}))), None);
}

#[test]
fn what_was_written_but_not_read_is_reported_again_after_the_client_is_gone() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    let command = format!("{}; exit 2", gate.wait());
    let id = id_in(&server.call("proc_start", json!({"command": command, "name": "build", "wait_s": 0})));
    drop(server);
    gate.open();
    completed(&daemon, &id);
    // A client that asks, does not read the answer and dies.
    let mut command = daemon.ctl_command(&["mcp", "--session", "s"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "proc_list", "arguments": {"everyone": true}}});
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), format!("{request}\n").as_bytes()).unwrap();
    let stdout = child.stdout.take().unwrap();
    daemon.eventually("the answer is written", || toold_test_support::sys::unread_bytes(&stdout) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut next = Server::legacy(&daemon, &["--session", "s"]);
    let text = next.call("proc_list", json!({"everyone": true}));
    assert!(events_in(&text).is_some_and(|line| line.starts_with("build exited 2 ")), "{text}");
}

#[test]
fn a_monitor_reports_nothing_that_a_result_has_stated_whatever_types_it_asks_for() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    server.call("proc_list", json!({}));
    let file = daemon.root().join("monitor");
    let args =
        ["events", "-f", "-n", "0", "--consumer", "agent:s", "--session", "s", "--type", "completion,needs_input"];
    let mut monitor = daemon.ctl_command(&args).stdout(std::fs::File::create(&file).unwrap()).spawn().unwrap();
    let stated = id_in(&server.call("proc_start", json!({"command": "sleep 0.2; exit 1", "name": "stated"})));
    let waited =
        id_in(&server.call("proc_start", json!({"command": "sleep 0.2; exit 1", "name": "waited", "wait_s": 0})));
    server.call("proc_wait", json!({"ids": [waited]}));
    let killed = id_in(&server.call("proc_start", json!({"command": "sleep 600", "name": "killed", "wait_s": 0})));
    server.call("proc_kill", json!({"ids": [killed]}));
    [stated, waited, killed].iter().for_each(|id| completed(&daemon, id));
    // What no result states is reported, after everything before it.
    let gate = daemon.gate("go");
    let command = format!("{}; exit 4", gate.wait());
    server.call("proc_start", json!({"command": command, "name": "news", "wait_s": 0}));
    gate.open();
    daemon.eventually("the news is reported", || std::fs::read_to_string(&file).unwrap().contains("news exited 4"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    monitor.kill().unwrap();
    monitor.wait().unwrap();
}
