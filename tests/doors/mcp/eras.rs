//! Both eras of the protocol, on one pipe.

use super::client::{MODERN, Server};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn own(key: &str) -> String {
    format!("io.modelcontextprotocol/{key}")
}

#[test]
fn each_older_revision_is_taken_as_asked_and_an_unknown_one_gets_the_newest() {
    let daemon = Daemon::prepare("", &[]);
    for (asked, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut server = Server::start(&daemon, &[]);
        let result = server.initialize(asked, "test", json!({}));
        assert_eq!(result["protocolVersion"], given);
        assert_eq!(result["serverInfo"]["name"], "toold");
        assert_eq!(result["capabilities"], json!({"tools": {}, "resources": {"subscribe": true, "listChanged": true}}));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.chars().count() <= 400 && instructions.contains("proc_wait"), "{instructions}");
        assert_eq!(server.request("ping", json!({})), json!({}));
        let list = server.request("tools/list", json!({}));
        assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"], "no key of the newer era");
    }
    assert!(!daemon.socket().exists(), "nothing of this starts a daemon");
}

#[test]
fn the_newer_era_has_discover_and_its_fields_in_every_result() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::modern(&daemon, &[], "test", json!({}));
    let found = server.request("server/discover", json!({}));
    assert_eq!(found["supportedVersions"], json!([MODERN]));
    assert_eq!(found["capabilities"]["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
    let has_common = |result: &Value| {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"][own("serverInfo")]["name"], "toold", "{result}");
    };
    let cached = |result: &Value| {
        has_common(result);
        assert!(
            result["ttlMs"].is_u64() && ["public", "private"].contains(&result["cacheScope"].as_str().unwrap()),
            "{result}"
        );
    };
    cached(&found);
    cached(&server.request("tools/list", json!({})));
    cached(&server.request("resources/list", json!({})));
    cached(&server.request("resources/templates/list", json!({})));
    cached(&server.request("resources/read", json!({"uri": "toold://procs"})));
    assert!(!daemon.socket().exists(), "nothing of this starts a daemon");
    assert_eq!(server.refused("ping", json!({}))["code"], -32601, "it is gone in this revision");
    assert_eq!(server.refused("initialize", json!({}))["code"], -32601);
    assert_eq!(server.refused("resources/subscribe", json!({"uri": "toold://procs"}))["code"], -32601);
}

#[test]
fn an_unsupported_version_is_refused_with_the_supported_ones() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::start(&daemon, &[]);
    for method in ["server/discover", "tools/list", "tools/call"] {
        let meta = json!({own("protocolVersion"): "1900-01-01", own("clientCapabilities"): {}});
        let error = server.refused(method, json!({"name": "proc_list", "_meta": meta}));
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32022), &json!({"supported": [MODERN], "requested": "1900-01-01"}))
        );
    }
    assert!(!daemon.socket().exists());
}

#[test]
fn both_eras_run_on_one_pipe() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let meta = json!({own("protocolVersion"): MODERN, own("clientCapabilities"): {}, own("clientInfo"): {"name": "other", "version": "1"}});
    let modern =
        server.request("tools/call", json!({"name": "proc_start", "arguments": {"command": "true"}, "_meta": meta}));
    assert_eq!(modern["resultType"], "complete");
    let legacy = server.request("tools/call", json!({"name": "proc_start", "arguments": {"command": "true"}}));
    assert!(legacy.get("resultType").is_none() && legacy.get("_meta").is_none(), "{legacy}");
    let labels: Vec<Value> = daemon.ok("list", json!({}))["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["labels"]["client"].clone())
        .collect();
    assert_eq!(labels, [json!("test"), json!("other")], "each call has the name of its client");
}

#[test]
fn a_batch_of_the_revision_that_has_them_is_answered_with_one() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::start(&daemon, &[]);
    server.initialize("2025-03-26", "test", json!({}));
    server.send_line(
        &json!([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "method": "x"}, {"id": 3}])
            .to_string(),
    );
    let answers = server.wait_for("the batch", Value::is_array);
    assert_eq!(
        (answers[0].clone(), answers.as_array().unwrap().len()),
        (json!({"jsonrpc": "2.0", "id": "a", "result": {}}), 2)
    );
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(3), &json!(-32600)));
}
