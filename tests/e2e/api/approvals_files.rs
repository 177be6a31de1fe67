//! `fs.write` and `fs.edit` outside the roots: they ask, and wait for the answer.

use super::approvals::{decide, decision};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

/// A daemon with a directory that is a root, and one outside.
fn dirs(d: &Daemon) -> (PathBuf, PathBuf) {
    let (root, outside) = (d.root().join("w"), d.root().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    (root, outside)
}

fn write(root: &std::path::Path, path: &std::path::Path, more: Value) -> Value {
    let mut call = json!({ "path": path, "cwd": root, "content": "new\n", "sandbox": "workspace-write" });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn asked(d: &Daemon) -> Value {
    let list = || d.ok("approvals.list", json!({}))["approvals"].clone();
    d.eventually("it asks", || list()[0].is_object());
    list()[0].clone()
}

#[test]
fn a_write_outside_the_roots_waits_for_its_approval() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    let file = outside.join("f");
    fs::write(&file, "old\n").unwrap();
    d.ok("fs.write", write(&root, &root.join("f"), json!({})));
    let mut conn = d.conn();
    let call = conn.request("fs.write", write(&root, &file, json!({ "task_id": "t" })));
    let approval = asked(&d);
    assert_eq!((&approval["kind"], &approval["process"]), (&json!("write"), &Value::Null), "{approval}");
    assert_eq!(approval["action"]["files"][0]["path"], file.to_str().unwrap(), "{approval}");
    let diff = approval["action"]["diff"].as_str().unwrap();
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    decide(&d, &approval, "approve");
    let written = conn.answer(call).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n", "{written}");
    // Once means once.
    let edit = json!({ "path": file, "cwd": root, "old": "new", "new": "newer", "sandbox": "workspace-write" });
    let call = conn.request("fs.edit", edit);
    let mut deny = decision(&asked(&d), "deny");
    deny["message"] = json!("not there");
    d.ok("approvals.decide", deny);
    let error = conn.answer(call).expect_err("denied");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32005), &json!("denied")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("not there"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    let error = d.refused(-32005, "denied", "fs.write", write(&root, &file, json!({ "approval_timeout_ms": 0 })));
    assert_eq!(error["data"]["reason"], "outside_roots", "{error}");
    let error = d.refused(-32005, "denied", "fs.write", write(&root, &file, json!({ "approval_timeout_ms": 20 })));
    assert_eq!(error["data"]["reason"], "timeout", "{error}");
}

#[test]
fn a_root_that_is_granted_for_the_session_is_not_asked_for_again_unless_it_is_swapped() {
    let mut d = Daemon::start();
    let (root, outside) = dirs(&d);
    let session = || json!({ "session_key": "s" });
    let mut conn = d.conn();
    let call = conn.request("fs.write", write(&root, &outside.join("a"), session()));
    let mut approve = decision(&asked(&d), "approve");
    approve["scope"] = json!("session");
    let grant = d.ok("approvals.decide", approve)["grant"].clone();
    assert_eq!(grant["covers"]["root"], outside.to_str().unwrap(), "{grant}");
    conn.answer(call).unwrap();
    d.restart();
    d.ok("fs.write", write(&root, &outside.join("b"), session()));
    assert_eq!(d.ok("grants.list", json!({}))["grants"][0]["uses"], 1);
    let protected = outside.join(".envrc");
    let error = d.refused(-32005, "denied", "fs.write", write(&root, &protected, session()));
    assert_eq!(error["data"]["reason"], "protected", "{error}");
    fs::rename(&outside, d.root().join("moved")).unwrap();
    fs::create_dir(&outside).unwrap();
    let mut swapped = write(&root, &outside.join("c"), session());
    swapped["approval_timeout_ms"] = json!(20);
    let error = d.refused(-32005, "denied", "fs.write", swapped);
    assert_eq!(error["data"]["reason"], "timeout", "it asks again: {error}");
    assert!(!outside.join("c").exists());
}

#[test]
fn a_repeated_call_waits_for_the_same_answer_and_a_swapped_directory_is_refused() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    let call = || write(&root, &outside.join("f"), json!({ "request_id": "r" }));
    let (mut first, mut second) = (d.conn(), d.conn());
    let one = first.request("fs.write", call());
    let approval = asked(&d);
    let two = second.request("fs.write", call());
    // Both are on the way; the second finds the question of the first.
    second.call("daemon.info", json!({})).unwrap();
    assert_eq!(d.ok("approvals.list", json!({}))["total"], 1);
    fs::rename(&outside, d.root().join("moved")).unwrap();
    fs::create_dir(&outside).unwrap();
    decide(&d, &approval, "approve");
    let error = first.answer(one).expect_err("swapped");
    assert_eq!(error["data"]["reason"], "swapped", "{error}");
    let _ = second.answer(two);
    assert!(!d.root().join("moved/f").exists());
    assert_eq!(d.ok("approvals.get", json!({ "id": id(&approval) }))["state"], "approved");
}
