//! `tools.list` and `tools.call` over the socket.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::Daemon;

fn call(d: &Daemon, name: &str, args: Value) -> Value {
    d.ok("tools.call", json!({ "name": name, "args": args, "cwd": d.root() }))["result"].clone()
}

#[test]
fn tools_are_listed_in_the_detail_that_is_asked_for() {
    let d = Daemon::start();
    let names = |params: Value| -> Vec<String> {
        let listed = d.ok("tools.list", params)["tools"].clone();
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["terminal", "read_file", "write_file", "search_files", "patch", "web_search", "web_extract"];
    assert_eq!(names(json!({})), all);
    assert_eq!(names(json!({ "effect": "network" })), ["web_search", "web_extract"]);
    assert_eq!(names(json!({ "query": "hash whole" })), ["read_file"]);
    d.refused(-32001, "not_found", "tools.list", json!({ "provider": "absent" }));
    let full = d.ok("tools.list", json!({ "detail": "full", "query": "terminal" }))["tools"][0].clone();
    assert_eq!(full["input_schema"]["required"], json!(["command"]), "{full}");
    assert!(full["signatures"]["python"].as_str().unwrap().contains("terminal("), "{full}");
    assert_eq!(full["timeout_ms"], 300_000, "it was missing, unless the tool has one of its own: {full}");
    assert!(d.ok("tools.list", json!({ "detail": "names" }))["tools"][0].get("effect").is_none());
}

#[test]
fn wrong_arguments_name_the_place_and_nothing_runs() {
    let d = Daemon::start();
    for (args, pointer) in [
        (json!({}), "/command"),
        (json!({ "command": 7 }), "/command"),
        (json!({ "command": "touch x", "pty": true }), "/pty"),
        (json!({ "command": "touch x", "watch": [] }), "/watch"),
        (json!({ "command": "touch x", "notify": true }), "/notify"),
        (json!({ "command": "touch x", "timeout": -1 }), "/timeout"),
    ] {
        let call = json!({ "name": "terminal", "args": args, "cwd": d.root() });
        let error = d.refused(-32602, "invalid_params", "tools.call", call);
        assert_eq!(error["data"]["pointer"], pointer, "{error}");
    }
    assert!(!d.root().join("x").exists());
    // What runs the tool refused these, and its error had no pointer.
    for (name, args, pointer) in [
        ("search_files", json!({ "pattern": "(" }), "/pattern"),
        ("read_file", json!({ "path": "/" }), "/path"),
        ("terminal", json!({ "command": "true", "workdir": "/no/such/directory" }), "/workdir"),
        ("patch", json!({ "mode": "patch", "patch": "no patch" }), "/patch"),
    ] {
        let call = json!({ "name": name, "args": args, "cwd": d.root() });
        let error = d.refused(-32602, "invalid_params", "tools.call", call);
        assert_eq!(error["data"]["pointer"], pointer, "{error}");
    }
    d.refused_param("name", "tools.call", json!({ "name": "no_such_tool" }));
    d.refused_param("name", "tools.call", json!({ "name": "no_such.tool" }));
}

#[test]
fn a_request_is_done_once_also_over_a_restart() {
    let mut d = Daemon::start();
    let root = d.root().to_owned();
    let request =
        |command: &str| json!({ "name": "terminal", "args": { "command": command }, "request_id": "r-1", "cwd": root });
    let (same, other) = (request("echo x >> ran; wc -l < ran"), request("echo other"));
    let first = d.ok("tools.call", same.clone());
    assert_eq!(d.ok("tools.call", same.clone()), first);
    d.refused(-32009, "conflict", "tools.call", other.clone());
    d.kill9();
    d.spawn();
    assert_eq!(d.ok("tools.call", same), first);
    d.refused(-32009, "conflict", "tools.call", other);
    assert_eq!(fs::read_to_string(d.root().join("ran")).unwrap(), "x\n");
}

#[test]
fn a_check_makes_an_exit_code_an_error_with_the_result() {
    let d = Daemon::start();
    let call = json!({ "name": "terminal", "args": { "command": "echo why; exit 3", "check": true } });
    let error = d.refused(-32012, "tool_failed", "tools.call", call);
    let result = &error["data"]["result"];
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(3), &json!("why\n")));
}

#[test]
fn a_call_that_takes_too_long_is_ended_with_its_tree() {
    let d = Daemon::start();
    let args = json!({ "command": "echo $$ > pid; exec sleep 1000" });
    let call = json!({ "name": "terminal", "args": args, "timeout_ms": 1500, "cwd": d.root() });
    let error = d.refused(-32011, "timeout", "tools.call", call);
    assert_eq!(error["data"]["timeout_ms"], 1500);
    let pid: i32 = fs::read_to_string(d.root().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the command is gone");
}

#[test]
fn a_cancelled_call_ends_its_command() {
    let d = Daemon::start();
    let mut conn = d.conn();
    let args = json!({ "command": "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000" });
    let request = conn.request("tools.call", json!({ "name": "terminal", "args": args, "cwd": d.root() }));
    let pid = d.root().join("pid");
    d.eventually("the command runs", || pid.exists());
    conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": request } }));
    let error = conn.answer(request).unwrap_err();
    assert_eq!(error["code"], -32800, "{error}");
    let pid: i32 = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the command is gone");
}

#[test]
fn files_are_written_read_and_patched() {
    let d = Daemon::start();
    let written = call(&d, "write_file", json!({ "path": "dir/a", "content": "1\n2\n" }));
    assert_eq!((&written["bytes"], &written["before_sha256"]), (&json!(4), &Value::Null), "{written}");
    let args = json!({ "path": "dir/a", "content": "x", "expect": "absent" });
    let call_it = json!({ "name": "write_file", "args": args, "cwd": d.root() });
    let error = d.refused(-32009, "conflict", "tools.call", call_it);
    assert!(error["message"].as_str().unwrap().contains("dir/a"), "{error}");
    let read = call(&d, "read_file", json!({ "path": "dir/a", "offset": 2 }));
    assert_eq!((&read["content"], &read["total_lines"]), (&json!("2\n"), &json!(2)));
    assert_eq!(read["sha256"], written["sha256"]);
    let text = "*** Begin Patch\n*** Update File: dir/a\n@@\n-1\n+one\n*** End Patch";
    let patched = call(&d, "patch", json!({ "mode": "patch", "patch": text }));
    assert_eq!(patched["status"], "applied", "{patched}");
    assert_eq!(fs::read_to_string(d.root().join("dir/a")).unwrap(), "one\n2\n");
    let missing = json!({ "name": "patch", "args": { "path": "dir/a", "new_string": "x" }, "cwd": d.root() });
    assert_eq!(d.refused(-32602, "invalid_params", "tools.call", missing)["data"]["pointer"], "/old_string");
}
