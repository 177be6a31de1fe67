//! `tools.register`: a connection offers tools, and is replaced or forgotten as it comes and goes.

use super::events::until;
use super::framing::{Framed, Ws, http_raw, post};
use crate::sandbox::inside::client;
use serde_json::{Value, json};
use toold_test_support::conn::Conn;
use toold_test_support::rig::Daemon;

/// A registration of `editor.open` and `editor.look`, which is idempotent.
pub fn editor(more: Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut call = json!({ "provider": "editor", "tools": [
        { "name": "open", "description": "Opens a file.", "input_schema": schema },
        { "name": "look", "description": "Looks at it.", "input_schema": schema, "effect": "read", "idempotent": true },
    ] });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

/// Connects and registers.
pub fn serving(d: &Daemon, more: Value) -> Conn {
    let mut conn = d.conn();
    conn.call("tools.register", editor(more)).unwrap();
    conn
}

fn providers(d: &Daemon) -> Value {
    d.ok("daemon.info", json!({}))["tool_providers"].clone()
}

/// Returns the providers and states of the next events of a consumer, as many as are expected.
fn states<const N: usize>(d: &Daemon, filter: Value) -> [String; N] {
    std::array::from_fn(|_| {
        let mut filter = filter.clone();
        filter["types"] = json!(["tool_provider"]);
        let event = until(d, "states", filter);
        d.ok("events.ack", json!({ "consumer": "states", "seq": event["seq"] }));
        format!("{} {}", event["provider"].as_str().unwrap(), event["state"].as_str().unwrap())
    })
}

#[test]
fn a_connection_offers_tools_until_it_withdraws_them() {
    let d = Daemon::start();
    let mut conn = d.conn();
    let registered = conn.call("tools.register", editor(json!({ "session_key": "s" }))).unwrap();
    assert_eq!(registered, json!({ "provider": "editor", "tools": ["editor.open", "editor.look"], "replaced": false }));
    let own = std::process::id();
    let client = providers(&d)[0]["client"].clone();
    assert_eq!((&client["pid"], client["program"].is_string()), (&json!(own), true));
    assert_eq!(
        providers(&d),
        json!([{ "provider": "editor", "state": "ready", "tools": 2, "session_key": "s", "client": client,
            "in_flight": 0, "ignored_answers": 0 }])
    );
    // The same connection registers again: its list is replaced.
    let fewer = conn.call("tools.register", editor(json!({ "tools": [] }))).unwrap();
    assert_eq!(fewer, json!({ "provider": "editor", "tools": [], "replaced": false }));
    let withdrawn = conn.call("tools.unregister", json!({ "provider": "editor" })).unwrap();
    assert_eq!(withdrawn, json!({ "tools": [], "ended": 0 }));
    assert_eq!(providers(&d), json!([]));
    let again = conn.call("tools.unregister", json!({ "provider": "editor" })).unwrap_err();
    assert_eq!(again["data"]["kind"], "not_found");
    assert_eq!(states(&d, json!({})), ["editor ready", "editor ready", "editor removed"]);
}

#[test]
fn every_framing_with_a_connection_that_stays_can_offer_tools_and_a_post_cannot() {
    let d = Daemon::start();
    let call = |provider: &str| {
        let params = editor(json!({ "provider": provider }));
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools.register", "params": params })
    };
    let (mut headers, mut ws, mut lines) = (Framed::open(&d.socket()), Ws::open(&d.socket()), d.conn());
    headers.send(&call("headers"));
    ws.send(&call("ws"));
    lines.send(&call("lines"));
    for answer in [headers.recv(), ws.recv().unwrap(), lines.recv()] {
        assert_eq!(answer["result"]["replaced"], false, "{answer}");
    }
    let refused = http_raw(&d.socket(), post(&call("post")).as_bytes());
    assert!(refused.contains("-32600") && refused.contains("a connection that can be pushed to"), "{refused}");
    let listed = providers(&d);
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|p| p["provider"].as_str().unwrap()).collect();
    assert_eq!(names, ["headers", "lines", "ws"]);
}

#[test]
fn a_name_in_use_is_refused_with_its_client_and_a_takeover_notifies_the_old_one() {
    let d = Daemon::start();
    let mut old = serving(&d, json!({}));
    let in_use = d.refused(-32007, "already_exists", "tools.register", editor(json!({})));
    assert_eq!(in_use["data"]["client"]["pid"], std::process::id());
    let foreign = d.refused(-32005, "denied", "tools.unregister", json!({ "provider": "editor" }));
    assert_eq!(foreign["data"]["reason"], "other_connection");
    let mut new = d.conn();
    let taken = new.call("tools.register", editor(json!({ "takeover": true }))).unwrap();
    assert_eq!(taken["replaced"], true);
    let note = old.recv();
    assert_eq!((&note["method"], &note["params"]["provider"]), (&json!("tools.replaced"), &json!("editor")));
    assert_eq!(note["params"]["by"]["pid"], std::process::id());
    // The old connection goes: the new one is not affected.
    drop(old);
    assert_eq!(states(&d, json!({})), ["editor ready", "editor replaced", "editor ready"]);
    assert_eq!(providers(&d)[0]["state"], "ready");
    new.call("tools.unregister", json!({ "provider": "editor" })).unwrap();
}

#[test]
fn tools_of_a_client_that_has_gone_stay_until_it_is_back_or_removed() {
    let d = Daemon::start();
    drop(serving(&d, json!({})));
    assert_eq!(states(&d, json!({})), ["editor ready", "editor gone"]);
    assert_eq!(providers(&d)[0]["state"], "gone");
    let back = serving(&d, json!({}));
    assert_eq!(providers(&d)[0]["state"], "ready");
    drop(back);
    assert_eq!(states(&d, json!({})), ["editor ready", "editor gone"]);
    let removed = d.ok("tools.unregister", json!({ "provider": "editor" }));
    assert_eq!(removed["tools"], json!(["editor.open", "editor.look"]));
    assert_eq!(providers(&d), json!([]));
}

#[test]
fn forget_removes_the_tools_of_clients_that_have_gone_and_no_others() {
    let d = Daemon::start();
    let _stays = serving(&d, json!({ "provider": "stays" }));
    drop(serving(&d, json!({ "provider": "waits", "reconnect_ms": 600_000 })));
    drop(serving(&d, json!({ "reconnect_ms": 0 })));
    d.eventually("both have gone", || {
        providers(&d).as_array().unwrap().iter().filter(|provider| provider["state"] == "gone").count() == 2
    });
    let names = || -> Vec<String> {
        let all = providers(&d);
        all.as_array().unwrap().iter().map(|provider| provider["provider"].as_str().unwrap().to_owned()).collect()
    };
    d.ok("forget", json!({ "older_than_ms": 600_000 }));
    assert_eq!(names(), ["editor", "stays", "waits"]);
    // They stayed until `tools.unregister`.
    d.ok("forget", json!({ "older_than_ms": 0 }));
    assert_eq!(names(), ["stays", "waits"], "calls may still wait for the one");
}

#[test]
fn a_session_receives_the_events_of_its_own_tools_only() {
    let d = Daemon::start();
    let _own = serving(&d, json!({ "provider": "own", "session_key": "a" }));
    let _other = serving(&d, json!({ "provider": "other", "session_key": "b" }));
    assert_eq!(states(&d, json!({ "session_key": "b" })), ["other ready"]);
}

#[test]
fn a_registration_that_is_refused_names_the_parameter_and_registers_nothing() {
    let d = Daemon::start();
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object" } });
    for (param, more) in [
        ("provider", json!({ "provider": "native" })),
        ("provider", json!({ "provider": "terminal" })),
        ("provider", json!({ "provider": "Editor" })),
        ("provider", json!({ "provider": "a.b" })),
        ("tools", json!({ "tools": [tool("rm -rf")] })),
        ("tools", json!({ "tools": [{ "name": "x", "input_schema": { "type": "array" } }] })),
        ("tools[0].input_schema", json!({ "tools": [{ "name": "x" }] })),
        ("tools[0].inputSchema", json!({ "tools": [{ "name": "x", "inputSchema": {} }] })),
        ("reconnect_ms", json!({ "reconnect_ms": 3_600_000 })),
        ("session_key", json!({ "session_key": "" })),
    ] {
        d.refused_param(param, "tools.register", editor(more));
    }
    let both = d.call("tools.register", editor(json!({ "tools": [tool("a-b"), tool("a.b")] }))).unwrap_err();
    assert_eq!(both["data"]["tools"], json!(["a-b", "a.b"]));
    assert_eq!(providers(&d), json!([]));
}

#[test]
fn answers_to_no_open_request_are_counted_on_connections_that_offer_tools() {
    let d = Daemon::start();
    let answer = json!({ "jsonrpc": "2.0", "id": "toold-1", "result": 1 });
    let mut plain = d.conn();
    plain.send(&answer);
    assert_eq!(plain.recv()["error"]["data"]["kind"], "invalid_request");
    let mut conn = serving(&d, json!({}));
    conn.send(&answer);
    conn.send(&answer);
    assert_eq!(conn.call("daemon.info", json!({})).unwrap()["tool_providers"][0]["ignored_answers"], 2);
}

#[test]
fn a_process_of_a_job_cannot_offer_or_withdraw_tools() {
    let d = Daemon::start();
    let _conn = serving(&d, json!({}));
    let calls = [
        ("tools.register", editor(json!({ "provider": "inside" }))),
        ("tools.unregister", json!({ "provider": "editor" })),
    ];
    for (method, params) in calls {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let job = d.sh(&client(&std::env::current_exe().unwrap(), &d, &call));
        d.closed(&job);
        let output = d.text(&job);
        assert!(output.contains("inside_job") && output.contains("-32005"), "{output}");
    }
    assert_eq!(providers(&d).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_new_daemon_knows_no_tools_of_clients_until_they_register_again() {
    let mut d = Daemon::start();
    let mut conn = serving(&d, json!({}));
    d.kill9();
    d.spawn();
    assert_eq!(conn.try_recv(), None);
    assert_eq!(providers(&d), json!([]));
    let _back = serving(&d, json!({}));
    assert_eq!(providers(&d)[0]["state"], "ready");
}
