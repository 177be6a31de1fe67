//! Resources and the notifications about them, in both eras.

use super::client::{FOLLOWER, OURS, Server, await_connections, id_in};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn uris(list: &Value) -> Vec<String> {
    list["resources"].as_array().unwrap().iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn processes_of_the_session_are_resources() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    daemon.sh_with("true", json!({"session_key": "other"}));
    let id = id_in(&server.call("proc_start", json!({"command": "printf '\\033[1mgrüß\\033[0m\\n'", "name": "build"})));
    let list = server.request("resources/list", json!({}));
    assert_eq!(
        uris(&list),
        ["toold://procs".to_owned(), format!("toold://proc/{id}/log"), format!("toold://proc/{id}")]
    );
    let read =
        |server: &mut Server, uri: &str| server.request("resources/read", json!({ "uri": uri }))["contents"][0].take();
    let log = read(&mut server, &format!("toold://proc/{id}/log"));
    assert_eq!((&log["mimeType"], &log["text"]), (&json!("text/plain"), &json!("grüß\n")));
    let process: Value =
        serde_json::from_str(read(&mut server, &format!("toold://proc/{id}"))["text"].as_str().unwrap()).unwrap();
    assert_eq!((&process["id"], &process["exit_code"]), (&json!(id), &json!(0)));
    let all: Value = serde_json::from_str(read(&mut server, "toold://procs")["text"].as_str().unwrap()).unwrap();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["id"]), (1, &json!(id)));
    for uri in ["toold://proc/nothing/log", "toold://proc/nothing", "file:///etc/hosts"] {
        assert_eq!(server.refused("resources/read", json!({ "uri": uri }))["code"], -32002, "{uri}");
    }
    let mut modern = Server::modern(&daemon, &[], "test", json!({}));
    assert_eq!(modern.refused("resources/read", json!({"uri": "toold://proc/nothing"}))["code"], -32602);
    let templates = server.request("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "toold://proc/{id}/log");
}

#[test]
fn a_log_is_at_most_64_kib_and_the_list_at_most_50() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let id = id_in(&server.call("proc_start", json!({"command": "seq 1 20000", "wait_s": 30})));
    let log = server.request("resources/read", json!({"uri": format!("toold://proc/{id}/log")}));
    let text = log["contents"][0]["text"].as_str().unwrap();
    assert!(text.len() <= 64 * 1024 && text.ends_with("\n20000\n"), "{}", text.len());
    let mut conn = daemon.conn();
    for _ in 0..60 {
        conn.call("exec", json!({"argv": ["/bin/true"], "session_key": "s"})).unwrap();
    }
    assert_eq!(uris(&server.request("resources/list", json!({}))).len(), 50);
}

#[test]
fn the_older_era_is_informed_of_changes_of_the_list_and_of_subscribed_logs() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    server.call("proc_list", json!({}));
    await_connections(&daemon, "only the events are followed", OURS + FOLLOWER);
    let id = id_in(&server.call("proc_start", json!({"command": "while read a; do echo $a; done", "wait_s": 0})));
    server.notification("notifications/resources/list_changed");
    let uri = format!("toold://proc/{id}/log");
    assert_eq!(server.request("resources/subscribe", json!({ "uri": uri })), json!({}));
    server.call("proc_write", json!({"id": id, "text": "x", "wait_s": 5}));
    assert_eq!(server.notification("notifications/resources/updated")["uri"], uri);
    assert_eq!(server.request("resources/unsubscribe", json!({ "uri": uri })), json!({}));
    server.call("proc_kill", json!({"ids": [id]}));
    server.notification("notifications/resources/list_changed");
}

#[test]
fn the_newer_era_is_informed_on_a_stream_that_begins_with_an_acknowledgement() {
    let daemon = Daemon::start();
    let mut server = Server::modern(&daemon, &["--session", "s"], "test", json!({}));
    let id = id_in(&server.call("proc_start", json!({"command": "while read a; do echo $a; done", "wait_s": 0})));
    let uri = format!("toold://proc/{id}/log");
    let wanted = json!({"resourcesListChanged": true, "promptsListChanged": true, "toolsListChanged": true, "resourceSubscriptions": [uri, "file:///x"]});
    let listen = server.send("subscriptions/listen", json!({ "notifications": wanted }));
    let meta = json!({"io.modelcontextprotocol/subscriptionId": listen});
    let acknowledged = server.notification("notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged,
        json!({"_meta": meta, "notifications": {"resourcesListChanged": true, "resourceSubscriptions": [uri]}})
    );
    server.call("proc_write", json!({"id": id, "text": "x", "wait_s": 5}));
    let updated = server.notification("notifications/resources/updated");
    assert_eq!(updated, json!({"_meta": meta, "uri": uri}));
    server.call("proc_kill", json!({"ids": [id]}));
    assert_eq!(server.notification("notifications/resources/list_changed"), json!({ "_meta": meta }));
    server.notify("notifications/cancelled", json!({"requestId": listen}));
    server.call("proc_start", json!({"command": "true"}));
    let sent: Vec<Value> = server.kept().into_iter().filter(|m| m["params"]["_meta"] == meta).collect();
    assert!(sent.iter().all(|m| m["method"] != "notifications/resources/list_changed") || sent.len() <= 1, "{sent:?}");
}

#[test]
fn a_stream_is_ended_with_a_result_when_the_server_is_asked_to_end() {
    let daemon = Daemon::start();
    let mut server = Server::modern(&daemon, &[], "test", json!({}));
    let listen = server.send("subscriptions/listen", json!({"notifications": {"resourcesListChanged": true}}));
    server.notification("notifications/subscriptions/acknowledged");
    toold_test_support::sys::Pidfd::open(server.pid()).unwrap().signal(libc::SIGTERM);
    let answer = server.answer(&listen);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listen);
}
