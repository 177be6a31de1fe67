//! `notifications/cancelled`: ends the wait, sends nothing, touches no process.

use super::client::{FOLLOWER, OURS, Server, await_connections, id_in};
use serde_json::json;
use toold_test_support::rig::Daemon;

#[test]
fn a_cancelled_wait_has_no_answer_and_its_process_goes_on() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let id = id_in(&server.call("proc_start", json!({"command": "sleep 600", "wait_s": 0})));
    await_connections(&daemon, "only the events are followed", OURS + FOLLOWER);
    let call = server.send("tools/call", json!({"name": "proc_wait", "arguments": {"ids": [id], "timeout_s": 45}}));
    await_connections(&daemon, "the wait has arrived", OURS + FOLLOWER + 1);
    server.notify("notifications/cancelled", json!({"requestId": call, "reason": "test"}));
    await_connections(&daemon, "the wait has ended", OURS + FOLLOWER);
    let text = server.call("proc_list", json!({}));
    assert!(text.contains(&id) && text.contains("  running  "), "{text}");
    let answered: Vec<_> = server.kept().into_iter().filter(|message| message["id"] == call).collect();
    assert!(answered.is_empty(), "{answered:?}");
    server.notify("notifications/cancelled", json!({"requestId": 12345}));
    server.notify("notifications/cancelled", json!({}));
    assert_eq!(server.request("ping", json!({})), json!({}), "an unknown id is ignored");
}
