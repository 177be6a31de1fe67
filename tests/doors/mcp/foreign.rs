//! `--tools`: the daemon's other tools, and questions that wait for a person.

use super::client::{Server, events_in, id_in, text_of};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

#[test]
fn the_tools_of_the_daemon_follow_the_six_with_flat_schemas_and_are_called() {
    let daemon = Daemon::start();
    std::fs::write(daemon.root().join("note.txt"), "needle\n").unwrap();
    let mut server = Server::legacy(&daemon, &["--tools", "all"]);
    let tools = server.request("tools/list", json!({}))["tools"].take();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(&names[..6], ["proc_start", "proc_wait", "proc_read", "proc_write", "proc_kill", "proc_list"]);
    assert!(names.contains(&"read_file") && names.contains(&"terminal"), "{names:?}");
    for tool in tools.as_array().unwrap() {
        let schema = tool["inputSchema"].to_string();
        for keyword in ["$ref", "oneOf", "anyOf", "allOf"] {
            assert!(!schema.contains(&format!("\"{keyword}\"")), "{}: {schema}", tool["name"]);
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert!(tool.get("outputSchema").is_none(), "{tool}");
    }
    let text = server.call("read_file", json!({"path": "note.txt"}));
    assert!(text.contains("needle"), "{text}");
    let text = server.fails("read_file", json!({"path": "nothing.txt"}));
    assert!(text.ends_with("(not_found)"), "{text}");
    let mut one = Server::legacy(&daemon, &["--tools", "read_file"]);
    assert_eq!(one.request("tools/list", json!({}))["tools"].as_array().unwrap().len(), 7);
    assert_eq!(one.refused("tools/call", json!({"name": "terminal", "arguments": {"command": "id"}}))["code"], -32602);
    let mut reads = Server::legacy(&daemon, &["--tools", "all", "--read-only"]);
    let tools = reads.request("tools/list", json!({}))["tools"].take();
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools}");
    assert_eq!(
        reads.refused("tools/call", json!({"name": "terminal", "arguments": {"command": "id"}}))["code"],
        -32602
    );
}

/// Starts a server in a session whose commands a person is asked about.
fn asking(daemon: &Daemon, session: &str) {
    daemon.ok("session.configure", json!({"session_key": session, "approval": "untrusted"}));
}

#[test]
fn a_start_that_waits_for_a_person_is_reported_and_decided_by_the_form_of_the_client() {
    let daemon = Daemon::start();
    asking(&daemon, "s");
    let mut server = Server::start(&daemon, &["--session", "s"]);
    server.initialize("2025-11-25", "test", json!({"elicitation": {}}));
    let call = server.send("tools/call", json!({"name": "proc_start", "arguments": {"command": "echo allowed"}}));
    let asked = server.wait_for("the form", |message| message["method"] == "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().contains("echo allowed"), "{asked}");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"decision": "approve"}}});
    server.send_line(&answer.to_string());
    let text = text_of(&server.answer(&call)["result"], false);
    assert!(text.contains("\nallowed\n") && events_in(&text).is_none(), "{text}");
    let call = server.send("tools/call", json!({"name": "proc_start", "arguments": {"command": "echo refused"}}));
    let asked = server.wait_for("the form", |message| message["method"] == "elicitation/create");
    server.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}).to_string());
    let text = text_of(&server.answer(&call)["result"], true);
    assert!(text.contains(" was denied: by the form of the MCP client") && text.ends_with("(denied)"), "{text}");
}

#[test]
fn a_client_without_forms_is_shown_what_a_person_can_do() {
    let daemon = Daemon::start();
    asking(&daemon, "s");
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let text = server.call("proc_start", json!({"command": "echo allowed"}));
    let approval = daemon.ok("approvals.list", json!({}))["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!(" pending, waits for a person's approval {approval}")), "{text}");
    assert!(text.contains(&format!("[waits for a person: `toolctl approve {approval}` or ")), "{text}");
    let output = daemon.ctl(&["approve", &approval]);
    assert_eq!(output.code, 0, "{output:?}");
    daemon.exited(&id_in(&text));
    let text = server.call("proc_list", json!({"everyone": true}));
    assert!(events_in(&text).is_some_and(|line| line.contains("was approved")), "{text}");
}

#[test]
fn in_the_newer_era_the_call_is_made_again_with_the_answer() {
    let daemon = Daemon::start();
    asking(&daemon, "s");
    let mut server = Server::modern(&daemon, &["--session", "s"], "test", json!({"elicitation": {"form": {}}}));
    let params = json!({"name": "proc_start", "arguments": {"command": "echo allowed"}});
    let asked = server.request("tools/call", params.clone());
    assert_eq!(asked["resultType"], "input_required");
    let (key, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["method"], "elicitation/create");
    let mut again = params;
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({key.clone(): {"action": "accept", "content": {"decision": "approve"}}});
    let text = text_of(&server.request("tools/call", again), false);
    assert!(text.contains("\nallowed\n"), "{text}");
    assert_eq!(daemon.ids(json!({})).len(), 1, "one process");
}

#[test]
fn a_tool_that_waits_for_a_person_is_decided_by_the_form() {
    let daemon = Daemon::start();
    asking(&daemon, "s");
    let mut server = Server::start(&daemon, &["--session", "s", "--tools", "terminal"]);
    server.initialize("2025-11-25", "test", json!({"elicitation": {}}));
    let call = server.send("tools/call", json!({"name": "terminal", "arguments": {"command": "echo allowed"}}));
    let asked: Value = server.wait_for("the form", |message| message["method"] == "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"decision": "approve"}}});
    server.send_line(&answer.to_string());
    let text = text_of(&server.answer(&call)["result"], false);
    assert!(text.contains("allowed"), "{text}");
}
