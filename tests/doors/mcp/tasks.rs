//! Durable tasks: the task of a start is its process.

use super::client::{Server, masked};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn capable() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}})
}

#[test]
fn a_start_that_goes_on_is_a_task_that_outlives_the_server_and_the_daemon() {
    let mut daemon = Daemon::start();
    let mut server = Server::modern(&daemon, &["--session", "s"], "test", capable());
    let gate = daemon.gate("go");
    let command = format!("echo started; {}; exit 3", gate.wait());
    let created = server.request("tools/call", json!({"name": "proc_start", "arguments": {"command": command}}));
    assert_eq!(
        (&created["resultType"], &created["status"], &created["ttlMs"]),
        (&json!("task"), &json!("working"), &Value::Null)
    );
    let task = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!(daemon.ids(json!({})), std::slice::from_ref(&task));
    let get = |server: &mut Server| server.request("tasks/get", json!({ "taskId": task }));
    let working = get(&mut server);
    assert_eq!((&working["resultType"], &working["status"]), (&json!("complete"), &json!("working")));
    server.kill9();
    daemon.restart();
    gate.open();
    daemon.exited(&task);
    let mut other = Server::modern(&daemon, &["--session", "s"], "test", capable());
    let done = get(&mut other);
    assert_eq!(done["status"], "completed");
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(masked(text), "ID exited 3 after T\nstarted\n[1 line, 8 bytes, cursor 8]");
}

#[test]
fn a_quick_start_and_a_client_without_tasks_get_the_result_itself() {
    let daemon = Daemon::start();
    let mut server = Server::modern(&daemon, &[], "test", capable());
    let quick = server.request("tools/call", json!({"name": "proc_start", "arguments": {"command": "true"}}));
    assert_eq!(quick["resultType"], "complete");
    let mut plain = Server::modern(&daemon, &[], "test", json!({}));
    let start = json!({"name": "proc_start", "arguments": {"command": "sleep 600", "wait_s": 1.2}});
    assert_eq!(plain.request("tools/call", start)["resultType"], "complete");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let error = plain.refused(method, json!({"taskId": "proc_0123456789ab"}));
        let needed = json!({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
        assert_eq!((&error["code"], &error["data"]), (&json!(-32021), &needed), "{method}");
    }
    assert_eq!(server.refused("tasks/get", json!({"taskId": "proc_0123456789ab"}))["code"], -32602);
}

#[test]
fn a_task_that_asks_wants_input_takes_it_once_and_can_be_cancelled() {
    let daemon = Daemon::start();
    let mut server = Server::modern(&daemon, &[], "test", capable());
    let command = "sleep 1.3; printf 'Name? '; read a; echo hello $a; sleep 600";
    let created =
        server.request("tools/call", json!({"name": "proc_start", "arguments": {"command": command, "tty": true}}));
    let task = created["taskId"].clone();
    let get = |server: &mut Server| server.request("tasks/get", json!({ "taskId": task }));
    let mut waiting = Value::Null;
    daemon.eventually("it asks", || {
        waiting = get(&mut server);
        waiting["status"] == "input_required"
    });
    let (key, form) = waiting["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["method"], "elicitation/create");
    assert!(form["params"]["message"].as_str().unwrap().ends_with("asks: Name?"), "{form}");
    let answers = json!({key.clone(): {"action": "accept", "content": {"text": "Luca"}}});
    for _ in 0..2 {
        let update = server.request("tasks/update", json!({"taskId": task, "inputResponses": answers}));
        assert_eq!(update["resultType"], "complete");
    }
    let id = task.as_str().unwrap();
    daemon.printed(id, "hello Luca");
    let listen = server.send("subscriptions/listen", json!({"notifications": {"taskIds": [id]}}));
    let acknowledged = server.notification("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["notifications"], json!({"taskIds": [id]}));
    assert_eq!(server.request("tasks/cancel", json!({ "taskId": task }))["resultType"], "complete");
    let sent = server.notification("notifications/tasks");
    assert_eq!((&sent["taskId"], &sent["_meta"]["io.modelcontextprotocol/subscriptionId"]), (&task, &listen));
    assert_eq!(get(&mut server)["status"], "cancelled");
}
