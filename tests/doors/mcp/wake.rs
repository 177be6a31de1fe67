//! `--wake codex`, with a program in place of `codex` that records what it was given.

use super::client::{FOLLOWER, OURS, Server, await_connections, events_in, id_in, masked, text_of};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use toold_test_support::rig::Daemon;

#[test]
fn an_exit_wakes_the_thread_once_and_is_not_reported_again() {
    let daemon = Daemon::start();
    let bin = daemon.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let (codex, record) = (bin.join("codex"), daemon.root().join("queued"));
    std::fs::write(&codex, format!("#!/bin/sh\nprintf '%s|' \"$@\" >> {0}\necho >> {0}\n", record.display())).unwrap();
    std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut server = Server::start_with(&daemon, &["--wake", "codex"], &[("PATH", &path)]);
    server.initialize("2025-06-18", "codex-mcp-client", json!({}));
    let meta = json!({"threadId": "01a1"});
    let call = |server: &mut Server, tool: &str, arguments| {
        text_of(&server.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta})), false)
    };
    let gate = daemon.gate("go");
    let command = format!("{}; echo 'error: x'; exit 2", gate.wait());
    let id = id_in(&call(&mut server, "proc_start", json!({"command": command, "name": "build", "wait_s": 0})));
    await_connections(&daemon, "only the events are followed", OURS + FOLLOWER);
    gate.open();
    daemon.exited(&id);
    daemon.eventually("codex is woken", || std::fs::read_to_string(&record).is_ok_and(|text| text.ends_with('\n')));
    let queued = std::fs::read_to_string(&record).unwrap();
    assert_eq!(masked(queued.trim_end()), "queue|--thread|01a1|--message|toold: build exited 2 T ago \"error: x\"|");
    daemon.eventually("it is acknowledged", || {
        let next = daemon.ok(
            "events.next",
            json!({"consumer": "agent:codex:01a1", "session_key": "codex:01a1", "types": ["completion"]}),
        );
        next["events"].as_array().unwrap().is_empty()
    });
    assert_eq!(events_in(&call(&mut server, "proc_list", json!({"everyone": true}))), None);
}
