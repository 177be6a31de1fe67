//! The end of the server: at the end of its input, by a signal, by a client that is gone. Processes go on.

use super::client::{FOLLOWER, OURS, Server, await_connections, id_in};
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use toold_test_support::rig::Daemon;

/// The bound of the contract, and what a loaded machine needs to start and reap a process.
const MAX_END: Duration = Duration::from_millis(2500);

#[test]
fn the_server_ends_with_its_input_or_by_a_signal_also_in_a_wait_and_processes_go_on() {
    let daemon = Daemon::start();
    let begin_wait = || {
        await_connections(&daemon, "the server before is gone", OURS);
        let mut server = Server::legacy(&daemon, &["--session", "s"]);
        server.call("proc_start", json!({"command": "sleep 600", "name": "web", "wait_s": 0}));
        await_connections(&daemon, "only the events are followed", OURS + FOLLOWER);
        server.send("tools/call", json!({"name": "proc_wait", "arguments": {"timeout_s": 45}}));
        await_connections(&daemon, "the wait has arrived", OURS + FOLLOWER + 1);
        server
    };
    let (status, time) = begin_wait().close();
    assert!(status.success() && time < MAX_END, "{status} after {time:?}");
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (status, time) = begin_wait().signal(signal);
        assert!(status.success() && time < MAX_END, "{status} after {time:?}");
    }
    assert_eq!(daemon.ids(json!({"status": "running"})).len(), 1);
}

#[test]
fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let daemon = Daemon::start();
    let mut child = daemon.ctl_command(&["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "proc_start", "arguments": {"command": "echo hi"}}});
    child.stdin.take().unwrap().write_all(format!("{request}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"id\":7") && text.contains("\\nhi\\n[1 line, 3 bytes, cursor 3]"), "{text}");
}

#[test]
fn a_client_that_never_reads_does_not_hold_up_the_end_or_the_processes() {
    let daemon = Daemon::start();
    let mut child = daemon.ctl_command(&["mcp", "--session", "s"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let start = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "proc_start", "arguments": {"command": "sleep 600", "wait_s": 0}}});
    writeln!(stdin, "{start}").unwrap();
    // Answers of 3 kB each fill the pipe.
    for id in 0..200 {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    daemon.eventually("the process runs", || daemon.ids(json!({"status": "running"})).len() == 1);
    let begin = Instant::now();
    drop(stdin);
    let status = child.wait().unwrap();
    assert!(status.success() && begin.elapsed() < MAX_END, "{status} after {:?}", begin.elapsed());
    assert_eq!(daemon.ids(json!({"status": "running"})).len(), 1);
}

#[test]
fn a_client_that_vanishes_in_a_wait_loses_no_event() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let gate = daemon.gate("go");
    let command = format!("{}; exit 2", gate.wait());
    let id = id_in(&server.call("proc_start", json!({"command": command, "name": "build", "wait_s": 0})));
    server.send("tools/call", json!({"name": "proc_wait", "arguments": {"timeout_s": 45}}));
    drop(server);
    gate.open();
    daemon.exited(&id);
    daemon.eventually("it is published", || {
        let next = daemon.ok("events.next", json!({"consumer": "probe", "id": id, "types": ["completion"]}));
        !next["events"].as_array().unwrap().is_empty()
    });
    let mut next = Server::legacy(&daemon, &["--session", "s"]);
    let text = next.call("proc_list", json!({"everyone": true}));
    assert!(text.contains("\nevents: build exited 2 "), "{text}");
}

#[test]
fn the_daemon_is_started_at_the_first_call_of_a_tool() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::legacy(&daemon, &[]);
    server.request("tools/list", json!({}));
    server.request("resources/list", json!({}));
    assert!(!daemon.socket().exists());
    let text = server.call("proc_start", json!({"command": "echo hi"}));
    assert!(text.contains("\nhi\n"), "{text}");
    let mut refused = Server::start(&daemon, &["--no-autostart", "--socket", "/nowhere/s"]);
    let text = refused.fails("proc_list", json!({}));
    assert!(text.ends_with("(unavailable)"), "{text}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    let daemon = Daemon::prepare("", &[]);
    let alone = daemon.root().join("bin");
    std::fs::create_dir(&alone).unwrap();
    let copy = alone.join("toolctl");
    toold_test_support::sys::copy_program(&toold_test_support::programs::toolctl(), &copy);
    let output = daemon.tool(copy.to_str().unwrap(), &["mcp"]).env("PATH", "/usr/bin:/bin").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "toolctl: `toolctl mcp` needs the program toolctl-mcp, which is neither beside toolctl nor in PATH: install it\n"
    );
    assert_eq!(output.status.code(), Some(1));
}
