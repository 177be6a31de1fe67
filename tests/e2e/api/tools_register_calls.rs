//! Calls of tools that a connection offers: answered, cancelled, and in flight when the connection or the daemon ends.

use super::tools_register::{editor, serving};
use serde_json::{Value, json};
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// Starts a call of `editor.NAME` on a connection.
fn call(conn: &mut Conn, name: &str, more: Value) -> u64 {
    let mut params = json!({ "name": format!("editor.{name}"), "args": { "path": "a" } });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    conn.request("tools.call", params)
}

/// Returns the next request of the daemon.
#[track_caller]
fn invoked(client: &mut Conn, name: &str) -> Value {
    let request = client.recv();
    assert_eq!((&request["method"], &request["params"]["name"]), (&json!("tools.invoke"), &json!(name)), "{request}");
    request
}

fn answer(client: &mut Conn, request: &Value, result: Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
}

#[track_caller]
fn kind(answer: Result<Value, Value>) -> String {
    answer.unwrap_err()["data"]["kind"].as_str().unwrap().to_owned()
}

/// Connects again and registers the same tools.
fn back(d: &Daemon) -> Conn {
    serving(d, json!({ "reconnect_ms": 20_000 }))
}

#[test]
fn a_call_is_answered_by_the_client_with_its_result_or_its_error() {
    let d = Daemon::start();
    let (mut client, mut caller) = (serving(&d, json!({})), d.conn());
    let open = call(&mut caller, "open", json!({ "session_key": "s", "task_id": "t" }));
    let first = invoked(&mut client, "open");
    let look = call(&mut caller, "look", json!({}));
    let second = invoked(&mut client, "look");
    let (call_id, deadline) = (first["params"]["call"].clone(), first["params"]["deadline"].clone());
    assert_eq!(
        first["params"],
        json!({ "call": call_id, "name": "open", "args": { "path": "a" }, "session_key": "s", "task_id": "t",
            "deadline": deadline })
    );
    assert!(deadline.as_str().unwrap().ends_with('Z') && call_id.is_string());
    // In any order.
    answer(&mut client, &second, json!(["x"]));
    let no = json!({ "code": 7, "message": "no such file", "data": { "path": "a" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": first["id"], "error": no }));
    assert_eq!(caller.answer(look).unwrap()["result"], json!(["x"]));
    let error = caller.answer(open).unwrap_err();
    let data = json!({ "kind": "tool_failed", "path": "a", "provider": "editor", "provider_code": 7 });
    assert_eq!(error, json!({ "code": -32012, "message": "no such file", "data": data }));
    // Arguments are checked before the client is asked.
    let wrong =
        d.refused(-32602, "invalid_params", "tools.call", json!({ "name": "editor.open", "args": { "path": 1 } }));
    assert_eq!(wrong["data"]["pointer"], "/path");
    d.refused_param("name", "tools.call", json!({ "name": "editor.close" }));
    assert_eq!(client.call("daemon.info", json!({})).unwrap()["tool_providers"][0]["ignored_answers"], 0);
}

#[test]
fn an_answer_with_both_or_neither_of_result_and_error_ends_the_call() {
    let d = Daemon::start();
    let (mut client, mut caller) = (serving(&d, json!({})), d.conn());
    // The client got an error of its own, and the call waited until its time was over.
    for malformed in [json!({}), json!({ "result": 1, "error": { "code": 7, "message": "no" } })] {
        let open = call(&mut caller, "open", json!({}));
        let mut message = json!({ "jsonrpc": "2.0", "id": invoked(&mut client, "open")["id"] });
        message.as_object_mut().unwrap().extend(malformed.as_object().unwrap().clone());
        client.send(&message);
        assert_eq!(kind(caller.answer(open)), "tool_failed");
    }
    client.send(&json!({ "jsonrpc": "2.0", "id": "mine" }));
    let refused = client.recv();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("mine"), &json!(-32600)), "{refused}");
}

#[test]
fn tools_are_listed_with_their_state_and_for_their_session_only() {
    let d = Daemon::start();
    let client = serving(&d, json!({ "session_key": "s" }));
    let listed = |session: Value| {
        let tools = d.ok("tools.list", json!({ "session_key": session }))["tools"].clone();
        let of_editor = tools.as_array().unwrap().iter().filter(|tool| tool["provider"] == "editor");
        of_editor.cloned().collect::<Vec<Value>>()
    };
    let ready = listed(json!("s"));
    assert_eq!(
        ready[0],
        json!({ "name": "editor.open", "provider": "editor", "description": "Opens a file.", "effect": "write",
            "idempotent": false, "parallel": true, "state": "ready" })
    );
    assert_eq!((ready.len(), listed(json!("other")), listed(Value::Null)), (2, vec![], vec![]));
    d.refused_param("name", "tools.call", json!({ "name": "editor.look", "session_key": "other" }));
    drop(client);
    d.eventually("it has gone", || listed(json!("s"))[0]["state"] == "unavailable");
    let why = listed(json!("s"))[1]["why"].clone();
    assert!(why.as_str().unwrap().contains("disconnected at"), "{why}");
}

#[test]
fn a_call_that_is_cancelled_or_late_is_cancelled_at_the_client() {
    let d = Daemon::start();
    let (mut client, mut caller) = (serving(&d, json!({})), d.conn());
    let number = call(&mut caller, "open", json!({}));
    let request = invoked(&mut client, "open");
    caller.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": number } }));
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": request["id"] } });
    assert_eq!(client.recv(), cancel);
    answer(&mut client, &request, json!("too late"));
    assert_eq!(kind(caller.answer(number)), "cancelled");

    let number = call(&mut caller, "look", json!({ "timeout_ms": 50 }));
    let request = invoked(&mut client, "look");
    assert_eq!(client.recv()["params"]["id"], request["id"]);
    // Without an answer: the caller gets its error all the same.
    assert_eq!(kind(caller.answer(number)), "timeout");
    answer(&mut client, &request, json!("much too late"));
    assert_eq!(client.call("daemon.info", json!({})).unwrap()["tool_providers"][0]["ignored_answers"], 1);
}

#[test]
fn a_new_call_waits_for_a_client_that_has_gone() {
    let d = Daemon::start();
    let mut caller = d.conn();
    drop(serving(&d, json!({ "reconnect_ms": 20_000 })));
    d.eventually("it has gone", || d.ok("daemon.info", json!({}))["tool_providers"][0]["state"] == "gone");
    let waiting = call(&mut caller, "open", json!({}));
    let mut client = serving(&d, json!({ "reconnect_ms": 50 }));
    let request = invoked(&mut client, "open");
    answer(&mut client, &request, json!(1));
    assert_eq!(caller.answer(waiting).unwrap()["result"], 1);
    drop(client);
    d.eventually("it has gone", || d.ok("daemon.info", json!({}))["tool_providers"][0]["state"] == "gone");
    let late = call(&mut caller, "open", json!({}));
    assert_eq!(kind(caller.answer(late)), "unavailable");
}

#[test]
fn a_call_in_flight_is_repeated_only_if_it_is_idempotent() {
    let d = Daemon::start();
    let (mut client, mut caller) = (back(&d), d.conn());
    let open = call(&mut caller, "open", json!({}));
    let first = invoked(&mut client, "open");
    let look = call(&mut caller, "look", json!({}));
    let second = invoked(&mut client, "look");
    drop(client);
    let unknown = caller.answer(open).unwrap_err();
    assert_eq!((&unknown["code"], &unknown["data"]["kind"]), (&json!(-32010), &json!("outcome_unknown")));
    assert_eq!((&unknown["data"]["tool"], &unknown["data"]["call"]), (&json!("editor.open"), &first["params"]["call"]));
    assert!(unknown["data"]["sent_at"].as_str().unwrap().ends_with('Z'), "{unknown}");
    let mut client = back(&d);
    let again = invoked(&mut client, "look");
    assert_eq!(again["params"], second["params"]);
    answer(&mut client, &again, json!("seen"));
    assert_eq!(caller.answer(look).unwrap()["result"], "seen");
}

/// The Python code of a script that calls one tool and reports its result or the kind of its error.
fn script(tool: &str) -> String {
    format!(
        "from toold_tools import tools, ToolError, result\n\
         try: result(tools.editor.{tool}(path='a'))\n\
         except ToolError as e: result({{'kind': e.kind, 'sent_at': e.data.get('sent_at')}})"
    )
}

/// Starts a script that may call the tools of the editor. Returns its id.
fn start(d: &Daemon, code: &str) -> String {
    let tools = json!(["editor.open", "editor.look"]);
    id(&d.ok("script.run", json!({ "code": code, "cwd": d.home(), "tools": tools, "yield_ms": 0 })))
}

fn value(d: &Daemon, script: &str) -> Value {
    let ended = d.ok("script.result", json!({ "id": script, "wait_ms": 20_000 }));
    assert_eq!(ended["status"], "ok", "{ended}");
    ended["value"].clone()
}

#[test]
fn a_call_of_a_script_outlives_a_daemon_that_is_killed_and_is_repeated_only_if_it_is_idempotent() {
    let mut d = Daemon::start();
    let mut client = back(&d);
    let look = start(&d, &script("look"));
    let sent = invoked(&mut client, "look");
    let open = start(&d, &script("open"));
    invoked(&mut client, "open");
    d.kill9();
    d.spawn();
    // Before its client is back: the call cannot be repeated, so nothing waits.
    let unknown = value(&d, &open);
    assert_eq!(unknown["kind"], "outcome_unknown", "{unknown}");
    assert!(unknown["sent_at"].as_str().unwrap().ends_with('Z'), "{unknown}");
    let mut client = back(&d);
    let again = invoked(&mut client, "look");
    assert_eq!(again["params"]["call"], sent["params"]["call"]);
    answer(&mut client, &again, json!({ "seen": true }));
    assert_eq!(value(&d, &look), json!({ "seen": true }));
    let calls = d.ok("script.calls", json!({ "id": look }));
    assert_eq!(calls["total"], 1, "{calls}");
}

#[test]
fn a_new_call_of_a_script_waits_for_a_client_that_comes_back_after_the_daemon() {
    let mut d = Daemon::start();
    let client = back(&d);
    let go = d.home().join("go");
    let code = format!("import os, time\nwhile not os.path.exists({go:?}): time.sleep(0.01)\n{}", script("open"));
    let waits = start(&d, &code);
    d.kill9();
    drop(client);
    d.spawn();
    std::fs::write(&go, "").unwrap();
    let mut client = back(&d);
    let request = invoked(&mut client, "open");
    answer(&mut client, &request, json!(1));
    assert_eq!(value(&d, &waits), json!(1));
}

#[test]
fn a_request_that_was_in_flight_is_resumed_by_its_caller_after_a_restart() {
    let mut d = Daemon::start();
    for (tool, repeated) in [("look", true), ("open", false)] {
        let (mut client, mut caller) = (back(&d), d.conn());
        let request = json!({ "request_id": format!("r-{tool}"), "cwd": d.home() });
        call(&mut caller, tool, request.clone());
        let sent = invoked(&mut client, tool);
        d.kill9();
        d.spawn();
        let mut caller = d.conn();
        let resumed = call(&mut caller, tool, request);
        if !repeated {
            assert_eq!(kind(caller.answer(resumed)), "outcome_unknown");
            continue;
        }
        let mut client = back(&d);
        let again = invoked(&mut client, tool);
        assert_eq!(again["params"]["call"], sent["params"]["call"]);
        answer(&mut client, &again, json!(2));
        assert_eq!(caller.answer(resumed).unwrap()["result"], 2);
    }
}

#[test]
fn a_script_cannot_offer_tools() {
    let d = Daemon::start();
    let register = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools.register", "params": editor(json!({})) });
    let code = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({:?})\ns.sendall({:?}.encode() + b'\\n')\n\
         print(s.makefile().readline())",
        d.socket(),
        register.to_string()
    );
    let ended = d.ok("script.run", json!({ "code": code, "cwd": d.home() }));
    assert!(ended["output"].as_str().unwrap().contains("-32005"), "{ended}");
    assert_eq!(d.ok("daemon.info", json!({}))["tool_providers"], json!([]));
}
