//! Tools of clients and web tools in a session that is confined: they run outside the sandbox, so a person is asked.

use super::approvals::{decide, decision};
use super::approvals_script::{asked, ended, grant, pending, start};
use serde_json::{Value, json};
use toold_test_support::conn::Conn;
use toold_test_support::rig::Daemon;

/// Serves `editor.open`, which writes, and `editor.look`, which reads.
fn editor(d: &Daemon) -> Conn {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let mut conn = d.conn();
    let tools = json!([
        { "name": "open", "description": "Opens a file.", "input_schema": schema, "effect": "write" },
        { "name": "look", "description": "Looks at it.", "input_schema": schema, "effect": "read", "idempotent": true },
    ]);
    conn.call("tools.register", json!({ "provider": "editor", "tools": tools, "reconnect_ms": 30_000 })).unwrap();
    conn
}

/// Answers one call. Returns its parameters.
fn serve(conn: &mut Conn) -> Value {
    let request = conn.recv();
    assert_eq!(request["method"], "tools.invoke", "{request}");
    conn.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "done": true } }));
    request["params"].clone()
}

/// A daemon with the session `s`, which may only read.
fn confined(more: Value) -> Daemon {
    let d = Daemon::start();
    let mut call = json!({ "session_key": "s", "sandbox": "read-only" });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    d.ok("session.configure", call);
    d
}

fn call(name: &str, args: Value, more: Value) -> Value {
    let mut call = json!({ "name": name, "args": args, "session_key": "s" });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

const TOOLS: [&str; 2] = ["editor.open", "editor.look"];

#[test]
fn a_tool_that_writes_outside_the_sandbox_asks_and_a_person_sees_what_runs() {
    let d = confined(json!({}));
    let (mut client, mut conn) = (editor(&d), d.conn());
    let long = "x".repeat(10_000);
    let request = conn.request("tools.call", call("editor.open", json!({ "path": long }), json!({ "task_id": "t" })));
    let approval = asked(&d);
    assert_eq!((&approval["kind"], &approval["task_id"]), (&json!("tool"), &json!("t")), "{approval}");
    assert_eq!(approval["why"][0]["text"], "editor.open runs outside the sandbox of its caller", "{approval}");
    let action = &approval["action"];
    assert_eq!((&action["tool"], action["args"].as_str().unwrap().len()), (&json!("editor.open"), 4000), "{action}");
    assert_eq!(action["args_sha256"].as_str().unwrap().len(), 64, "{action}");
    let mut deny = decision(&approval, "deny");
    deny["message"] = json!("not now");
    d.ok("approvals.decide", deny);
    let error = conn.answer(request).expect_err("denied");
    assert_eq!((&error["data"]["kind"], &error["data"]["approval"]), (&json!("denied"), &approval["id"]), "{error}");
    assert!(error["message"].as_str().unwrap().contains("not now; nothing was run"), "{error}");
    // A tool that reads runs at once, and so does any outside of a sandbox.
    let reads = conn.request("tools.call", call("editor.look", json!({}), json!({})));
    assert_eq!(serve(&mut client)["name"], "look");
    conn.answer(reads).unwrap();
    let free = conn.request("tools.call", json!({ "name": "editor.open", "args": {} }));
    assert_eq!(serve(&mut client)["name"], "open");
    conn.answer(free).unwrap();
    assert_eq!(pending(&d), Vec::<Value>::new());
}

#[test]
fn a_grant_for_the_session_is_for_the_same_arguments() {
    let d = confined(json!({}));
    let (mut client, mut conn) = (editor(&d), d.conn());
    let request = conn.request("tools.call", call("editor.open", json!({ "path": "a" }), json!({})));
    let approval = asked(&d);
    let offers: Vec<&Value> = approval["offers"].as_array().unwrap().iter().map(|offer| &offer["scope"]).collect();
    assert_eq!(offers, ["once", "session"], "{approval}");
    let mut approve = decision(&approval, "approve");
    approve["scope"] = json!("session");
    d.ok("approvals.decide", approve);
    serve(&mut client);
    conn.answer(request).unwrap();
    let again = conn.request("tools.call", call("editor.open", json!({ "path": "a" }), json!({})));
    assert_eq!(serve(&mut client)["args"], json!({ "path": "a" }));
    conn.answer(again).unwrap();
    conn.request("tools.call", call("editor.open", json!({ "path": "b" }), json!({})));
    assert_eq!(asked(&d)["action"]["args"], r#"{"path":"b"}"#);
    assert_eq!(d.ok("grants.list", json!({}))["grants"][0]["uses"], 1);
}

#[test]
fn a_script_asks_once_for_a_tool_and_its_process_shows_that_it_waits() {
    let d = confined(json!({}));
    let mut client = editor(&d);
    let code = "for path in 'abc': tools.editor.open(path=path)\ntools.editor.look()";
    let script = start(&d, code, json!({ "session_key": "s", "tools": TOOLS, "timeout_ms": 60_000 }));
    let approval = asked(&d);
    assert_eq!(approval["script"], json!(script), "{approval}");
    d.eventually("its process shows it", || d.process(&script)["pending_on"]["approval"] == approval["id"]);
    let granted = grant(&d, &approval, json!({ "uses": 2 }));
    assert_eq!(granted["covers"], json!({ "script": script, "tool": "editor.open", "uses": 2 }), "{granted}");
    let served: Vec<Value> = (0..4).map(|_| serve(&mut client)["args"]["path"].clone()).collect();
    assert_eq!(served, [json!("a"), json!("b"), json!("c"), Value::Null]);
    let result = ended(&d, &script);
    assert_eq!((&result["status"], &result["calls"]["made"]), (&json!("ok"), &json!(4)), "{result}");
    let calls = d.ok("script.calls", json!({ "id": script }))["calls"].clone();
    assert_eq!(calls[0]["approval"], approval["id"], "{calls}");
}

#[test]
fn a_call_that_waits_outlives_the_daemon_and_is_sent_once() {
    let mut d = confined(json!({}));
    let client = editor(&d);
    let code = "print(tools.editor.open(path='a'))";
    let script = start(&d, code, json!({ "session_key": "s", "tools": TOOLS }));
    let approval = asked(&d);
    d.kill9();
    drop(client);
    d.spawn();
    let mut client = editor(&d);
    d.eventually("it waits again", || d.process(&script)["pending_on"]["approval"] == approval["id"]);
    assert_eq!(asked(&d)["expires_at"], approval["expires_at"]);
    decide(&d, &approval, "approve");
    assert_eq!(serve(&mut client)["args"], json!({ "path": "a" }));
    let result = ended(&d, &script);
    assert_eq!((&result["status"], &result["output"]), (&json!("ok"), &json!("{'done': True}\n")), "{result}");
    d.conn().request("tools.call", call("editor.look", json!({}), json!({})));
    assert_eq!(serve(&mut client)["name"], "look", "nothing was sent again");
}

#[test]
fn never_is_a_refusal_that_is_no_call_and_untrusted_asks_without_a_sandbox() {
    let d = confined(json!({ "approval": "never" }));
    let mut client = editor(&d);
    let error = d.refused(-32005, "denied", "tools.call", call("editor.open", json!({}), json!({})));
    assert!(error["data"]["reason"].as_str().unwrap().contains("approval is never"), "{error}");
    let code = "try: tools.editor.open(path='a')\nexcept ToolDenied as e: print(e.kind)";
    let script = start(&d, code, json!({ "session_key": "s", "tools": TOOLS }));
    let result = ended(&d, &script);
    assert_eq!((&result["output"], &result["calls"]["made"]), (&json!("denied\n"), &json!(0)), "{result}");
    assert_eq!(result["calls"]["refused"], 1, "{result}");
    let denied = d.ok("events.next", json!({ "consumer": "c", "types": ["denied"] }))["events"].clone();
    assert_eq!(denied[1]["command"], r#"editor.open {"path":"a"}"#, "{denied}");
    d.ok("session.configure", json!({ "session_key": "s", "approval": "untrusted" }));
    let mut conn = d.conn();
    let request = conn.request("tools.call", call("editor.open", json!({}), json!({})));
    let approval = asked(&d);
    assert_eq!(approval["why"][0]["label"], "policy", "{approval}");
    decide(&d, &approval, "approve");
    serve(&mut client);
    conn.answer(request).unwrap();
}

#[test]
fn web_tools_ask_where_the_profile_has_no_network() {
    // Without a provider no person is asked: `without_a_provider_a_search_is_unavailable_and_names_the_key`.
    let d = Daemon::start_with("[web.search]\nprovider = 'searxng'\nurl = 'http://127.0.0.1:1'\n", &[]);
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": "read-only" }));
    let mut conn = d.conn();
    let request = conn.request("tools.call", call("web_search", json!({ "query": "x" }), json!({})));
    let approval = asked(&d);
    assert_eq!(
        (&approval["kind"], &approval["action"]["tool"]),
        (&json!("network"), &json!("web_search")),
        "{approval}"
    );
    decide(&d, &approval, "deny");
    assert_eq!(conn.answer(request).expect_err("denied")["data"]["kind"], "denied");
    let online = json!({ "profile": "read-only", "network": "full" });
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": online }));
    let error = d.refused(-32008, "unavailable", "tools.call", call("web_search", json!({ "query": "x" }), json!({})));
    assert!(error["message"].as_str().unwrap().contains("127.0.0.1:1"), "it is sent to the provider: {error}");
}

#[test]
fn a_call_that_is_cancelled_withdraws_its_question() {
    let d = confined(json!({}));
    let _client = editor(&d);
    let mut conn = d.conn();
    let request = conn.request("tools.call", call("editor.open", json!({}), json!({})));
    let approval = asked(&d);
    conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": request } }));
    let state = || d.ok("approvals.get", json!({ "id": approval["id"] }))["state"].clone();
    d.eventually("the question is withdrawn", || state() == "withdrawn");
}

#[test]
fn a_call_that_is_cancelled_while_it_asks_withdraws_its_question() {
    // The write of the question went on beside that of its end, and one of them failed: the question stayed.
    let hooks = tempfile::tempdir().unwrap();
    let d = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.path().to_str().unwrap())]);
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": "read-only" }));
    let _client = editor(&d);
    let mut conn = d.conn();
    for _ in 0..5 {
        std::fs::write(hooks.path().join("approval.published"), "").unwrap();
        let request = conn.request("tools.call", call("editor.open", json!({}), json!({})));
        let hit = hooks.path().join("approval.published.hit");
        d.eventually("the question is being published", || hit.exists());
        conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": request } }));
        std::fs::remove_file(hooks.path().join("approval.published")).unwrap();
        d.eventually("the hook is left", || !hit.exists() || std::fs::remove_file(&hit).is_ok());
        assert_eq!(conn.answer(request).expect_err("cancelled")["data"]["kind"], "cancelled");
        d.eventually("no question is left", || {
            d.ok("approvals.list", json!({ "state": "pending" }))["approvals"] == json!([])
        });
    }
}
