//! Calls of tools of a server, in both eras of the protocol.

use super::Rig;
use serde_json::{Value, json};

#[test]
fn a_server_starts_at_the_first_call_and_is_a_process_like_any_other() {
    let rig = Rig::start(&[]);
    assert_eq!(rig.effects(), Vec::<String>::new(), "nothing starts by itself");
    assert_eq!(rig.text("echo", json!({ "text": "a\nb" })), "a\nb");
    assert_eq!(rig.text("echo", json!({ "text": "c" })), "c");
    assert_eq!(rig.effects(), ["start", "discover", "initialize", "list"]);
    let process = rig.process();
    let shown = [&process["name"], &process["status"], &process["stdin"], &process["labels"]["toold"]];
    assert_eq!(shown, [&json!("mcp/fake"), &json!("running"), &json!("pipe"), &json!("mcp")]);
    rig.end();
}

#[test]
fn results_have_text_content_and_structure_and_failures_have_a_kind_of_their_own() {
    let rig = Rig::start(&[]);
    let result = rig.call("structured", json!({ "n": 3 })).unwrap();
    let content = json!([{ "type": "text", "text": "{\"n\": 3}" }]);
    assert_eq!(result["result"], json!({ "text": "{\"n\": 3}", "content": content, "structured": { "n": 3 } }));
    let error = rig.error("fail", json!({ "text": "no such city" }));
    assert_eq!((&error["code"], &error["message"]), (&json!(-32012), &json!("no such city")), "{error}");
    assert_eq!(
        (&error["data"]["kind"], &error["data"]["result"]["text"]),
        (&json!("tool_failed"), &json!("no such city"))
    );
    let wrong = rig.error("echo", json!({ "text": 7 }));
    assert_eq!((&wrong["code"], &wrong["data"]["pointer"]), (&json!(-32602), &json!("/text")), "{wrong}");
    assert!(rig.error("nothing", json!({}))["message"].as_str().unwrap().contains("there is no tool"));
    rig.end();
}

#[test]
fn a_modern_server_gets_no_handshake_and_metadata_with_each_request() {
    let rig = Rig::start(&["--era", "modern"]);
    let meta: Value = serde_json::from_str(&rig.text("meta", json!({}))).unwrap();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "toold");
    assert!(meta["toold/call"].as_str().is_some_and(|call| !call.is_empty()), "{meta}");
    assert_eq!(rig.effects(), ["start", "discover", "list"]);
    assert_eq!(rig.text("grow", json!({ "text": "later" })), "grown");
    rig.d.eventually("the new tool is listed", || rig.names().contains(&"fake.later".to_string()));
    rig.end();
}

#[test]
fn servers_that_are_silent_or_end_at_the_probe_are_of_the_older_era_and_that_is_remembered() {
    for era in ["silent", "strict"] {
        let mut rig = Rig::with(&["--era", era], "idle_ms = 1000000", "");
        assert_eq!(rig.text("echo", json!({ "text": era })), era);
        let starts = rig.count("start");
        assert_eq!((starts, rig.count("initialize")), (if era == "strict" { 2 } else { 1 }, 1), "{era}");
        rig.d.ok("kill", json!({ "id": "mcp/fake" }));
        rig.d.restart();
        assert_eq!(rig.text("echo", json!({ "text": "again" })), "again");
        assert_eq!((rig.count("start"), rig.count("discover")), (starts + 1, 1), "{era}: it is not probed again");
        rig.end();
    }
}

#[test]
fn every_older_version_is_accepted_and_an_unknown_one_is_refused_with_both() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let rig = Rig::start(&["--version", version]);
        assert_eq!(rig.text("echo", json!({ "text": version })), version);
        rig.end();
    }
    let rig = Rig::start(&["--version", "2031-01-01"]);
    let error = rig.error("echo", json!({}));
    let message = error["message"].as_str().unwrap();
    assert_eq!(error["data"]["kind"], "unavailable");
    assert!(message.contains("2031-01-01") && message.contains("2025-11-25"), "{message}");
    rig.end();
    let rig = Rig::start(&["--era", "future"]);
    let message = rig.error("echo", json!({}))["message"].to_string();
    assert!(message.contains("2031-01-01") && message.contains("2026-07-28"), "{message}");
    rig.end();
}

#[test]
fn the_list_has_all_pages_and_follows_changes_and_refresh() {
    let rig = Rig::start(&["--page", "3"]);
    let names = rig.names();
    assert_eq!((names.len(), names[0].as_str()), (14, "fake.echo"), "{names:?}");
    assert_eq!(rig.text("grow", json!({ "text": "first" })), "grown");
    rig.d.eventually("the new tool is listed", || rig.names().contains(&"fake.first".to_string()));
    let lists = rig.count("list");
    let refreshed = rig.d.ok("tools.refresh", json!({ "provider": "fake" }));
    assert_eq!((refreshed["tools"].as_array().unwrap().len(), &refreshed["added"]), (15, &json!([])));
    assert!(rig.count("list") > lists);
    rig.d.refused_param("provider", "tools.refresh", json!({ "provider": "native" }));
    rig.d.refused(-32001, "not_found", "tools.refresh", json!({ "provider": "nothing" }));
    rig.end();
}

#[test]
fn a_server_may_ask_the_client_and_gets_an_answer_to_everything() {
    let rig = Rig::start(&[]);
    for (method, answer) in [
        ("ping", json!({})),
        ("roots/list", json!({ "roots": [] })),
        ("elicitation/create", json!({ "action": "decline" })),
        ("sampling/createMessage", json!({ "code": -32601, "message": "toold does not serve sampling/createMessage" })),
    ] {
        let text = rig.text("ask", json!({ "text": method }));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), answer, "{method}");
    }
    rig.end();
}

#[test]
fn calls_run_at_the_same_time_and_each_gets_its_own_answer() {
    let rig = Rig::start(&[]);
    let mut calls: Vec<_> = (0..8)
        .map(|n| rig.begin(&format!("r{n}"), "effect", json!({ "text": n.to_string(), "gate": "open" })))
        .collect();
    (0..8).for_each(|n| rig.waits_for(&format!("effect {n}")));
    rig.open("open");
    for (n, (conn, id)) in calls.iter_mut().enumerate() {
        assert_eq!(conn.answer(*id).unwrap()["result"]["text"], format!("done {n}"));
    }
    rig.end();
}

#[test]
fn a_cancelled_call_and_one_that_takes_too_long_are_reported_to_the_server() {
    let rig = Rig::start(&[]);
    let mut conn = rig.d.conn();
    let params = json!({ "name": "fake.effect", "args": { "text": "1", "gate": "never" } });
    let id = conn.request("tools.call", params);
    rig.waits_for("effect 1");
    conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": id } }));
    assert_eq!(conn.answer(id).unwrap_err()["code"], -32800);
    rig.waits_for("cancelled");
    let params = json!({ "name": "fake.effect", "args": { "text": "2", "gate": "never" }, "timeout_ms": 300 });
    let error = rig.d.call("tools.call", params).unwrap_err();
    assert_eq!(error["data"]["kind"], "timeout", "{error}");
    rig.d.eventually("the second cancellation", || rig.count("cancelled") == 2);
    assert_eq!(rig.text("echo", json!({ "text": "still there" })), "still there");
    rig.end();
}

#[test]
fn a_server_without_calls_is_ended_and_its_tools_stay_listed() {
    let rig = Rig::with(&[], "idle_ms = 300", "");
    assert_eq!(rig.text("echo", json!({ "text": "x" })), "x");
    assert_eq!(rig.tools()[0]["state"], "ready");
    rig.waits_for("eof");
    rig.d.eventually("the process has exited", || rig.process()["status"] == "exited");
    assert_eq!(rig.process()["exit_code"], 0, "its stdin was closed, as the protocol wants");
    let tools = rig.tools();
    assert_eq!((tools.len(), &tools[0]["state"]), (14, &json!("starting")));
    assert_eq!(rig.text("echo", json!({ "text": "again" })), "again");
    assert_eq!((rig.count("start"), rig.count("discover")), (2, 1));
    rig.end();
}
