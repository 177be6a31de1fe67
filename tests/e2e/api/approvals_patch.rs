//! `patch.apply`, `patch.revert` and `apply_patch` outside the roots: they ask, and wait for the answer.

use super::approvals::{decide, decision};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::Daemon;

/// Makes a directory that is a root, and one outside with a file.
fn dirs(d: &Daemon) -> (PathBuf, PathBuf) {
    let (root, outside) = (d.root().join("w"), d.root().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "old\n").unwrap();
    (root, outside)
}

fn patch_text(outside: &std::path::Path) -> String {
    let file = outside.join("f");
    format!("*** Begin Patch\n*** Add File: in\n+in\n*** Update File: {}\n-old\n+new\n*** End Patch\n", file.display())
}

fn patch(root: &std::path::Path, outside: &std::path::Path, more: Value) -> Value {
    let mut call = json!({ "patch": patch_text(outside), "cwd": root, "sandbox": "workspace-write" });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn asked(d: &Daemon) -> Value {
    let list = || d.ok("approvals.list", json!({}))["approvals"].clone();
    d.eventually("it asks", || list()[0].is_object());
    list()[0].clone()
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_patch_outside_the_roots_waits_for_its_approval_and_so_does_its_revert() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    let mut conn = d.conn();
    let call = conn.request("patch.apply", patch(&root, &outside, json!({ "task_id": "t" })));
    let approval = asked(&d);
    assert_eq!((&approval["kind"], &approval["task_id"]), (&json!("patch"), &json!("t")), "{approval}");
    let files = approval["action"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{approval}");
    assert_eq!((&files[1]["path"], &files[1]["op"]), (&json!(outside.join("f")), &json!("update")), "{approval}");
    let diff = approval["action"]["diff"].as_str().unwrap();
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    assert_eq!((text(outside.join("f")), text(root.join("in"))), ("old\n".into(), String::new()), "all or nothing");
    decide(&d, &approval, "approve");
    let applied = conn.answer(call).unwrap();
    assert_eq!((text(outside.join("f")), text(root.join("in"))), ("new\n".into(), "in\n".into()), "{applied}");

    let revert = json!({ "patch_id": applied["patch_id"], "sandbox": "workspace-write" });
    let call = conn.request("patch.revert", revert.clone());
    let approval = asked(&d);
    assert_eq!(approval["kind"], "patch", "{approval}");
    let diff = approval["action"]["diff"].as_str().unwrap();
    assert!(diff.contains("-new") && diff.contains("+old"), "{diff}");
    let mut deny = decision(&approval, "deny");
    deny["message"] = json!("keep it");
    d.ok("approvals.decide", deny);
    let error = conn.answer(call).expect_err("denied");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32005), &json!("denied")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("keep it"), "{error}");
    assert_eq!(text(outside.join("f")), "new\n");
    let call = conn.request("patch.revert", revert);
    decide(&d, &asked(&d), "approve");
    conn.answer(call).unwrap();
    assert_eq!((text(outside.join("f")), root.join("in").exists()), ("old\n".into(), false));
}

#[test]
fn a_patch_is_not_asked_about_without_time_under_never_or_if_it_does_not_fit() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    d.ok("session.configure", json!({ "session_key": "never", "approval": "never" }));
    for more in [json!({ "approval_timeout_ms": 0 }), json!({ "session_key": "never" })] {
        let error = d.refused(-32005, "denied", "patch.apply", patch(&root, &outside, more));
        assert_eq!(error["data"]["reason"], "outside_roots", "{error}");
    }
    let write = json!({ "path": outside.join("f"), "cwd": root, "content": "x", "sandbox": "workspace-write",
        "session_key": "never" });
    d.refused(-32005, "denied", "fs.write", write);
    let error =
        d.refused(-32005, "denied", "patch.apply", patch(&root, &outside, json!({ "approval_timeout_ms": 20 })));
    assert_eq!(error["data"]["reason"], "timeout", "{error}");
    fs::write(outside.join("f"), "another\n").unwrap();
    d.refused(-32602, "invalid_params", "patch.apply", patch(&root, &outside, json!({})));
    assert_eq!((text(outside.join("f")), root.join("in").exists()), ("another\n".into(), false));
    assert_eq!(d.ok("approvals.list", json!({ "state": "all" }))["total"], 1, "only the one that was late");
    // `never` of the config holds for sessions without settings.
    let d = Daemon::start_with("[policy]\napproval = \"never\"\n", &[]);
    let (root, outside) = dirs(&d);
    d.refused(-32005, "denied", "patch.apply", patch(&root, &outside, json!({})));
}

#[test]
fn a_granted_root_is_not_asked_for_again_and_a_repeated_patch_is_applied_once() {
    let mut d = Daemon::start();
    let (root, outside) = dirs(&d);
    let call = || patch(&root, &outside, json!({ "request_id": "r", "session_key": "s" }));
    d.conn().request("patch.apply", call());
    let approval = asked(&d);
    d.kill9();
    d.spawn();
    // The call is made again after the daemon died: it waits for the same answer.
    let mut conn = d.conn();
    let again = conn.request("patch.apply", call());
    assert_eq!(asked(&d)["id"], approval["id"]);
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    let grant = d.ok("approvals.decide", session)["grant"].clone();
    assert_eq!(grant["covers"]["root"], outside.to_str().unwrap(), "{grant}");
    let applied = conn.answer(again).unwrap();
    assert_eq!(text(outside.join("f")), "new\n");
    assert_eq!(d.ok("patch.apply", call())["patch_id"], applied["patch_id"], "the first result");
    d.ok("patch.revert", json!({ "patch_id": applied["patch_id"], "sandbox": "workspace-write", "session_key": "s" }));
    assert_eq!(text(outside.join("f")), "old\n");
    assert_eq!(d.ok("approvals.list", json!({ "state": "all" }))["total"], 1);
}

#[test]
fn a_file_or_a_directory_that_changed_after_the_approval_was_asked_for_is_not_touched() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    let mut conn = d.conn();
    // The person saw other bytes.
    let call = conn.request("patch.apply", patch(&root, &outside, json!({})));
    let approval = asked(&d);
    fs::write(outside.join("f"), "old\nand more\n").unwrap();
    decide(&d, &approval, "approve");
    let error = conn.answer(call).expect_err("it changed");
    assert_eq!(error["data"]["kind"], "conflict", "{error}");
    fs::write(outside.join("f"), "old\n").unwrap();
    let call = conn.request("patch.apply", patch(&root, &outside, json!({})));
    let approval = asked(&d);
    fs::rename(&outside, d.root().join("moved")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "old\n").unwrap();
    decide(&d, &approval, "approve");
    let error = conn.answer(call).expect_err("swapped");
    assert_eq!(error["data"]["reason"], "swapped", "{error}");
    assert_eq!((text(outside.join("f")), text(d.root().join("moved/f"))), ("old\n".into(), "old\n".into()));
    assert!(!root.join("in").exists());
}

#[test]
fn apply_patch_in_a_command_asks_too() {
    let d = Daemon::start();
    let (root, outside) = dirs(&d);
    let command = format!("apply_patch <<'EOF'\n{}EOF\n", patch_text(&outside));
    let call = json!({ "command": command, "cwd": root, "sandbox": "workspace-write", "yield_ms": 20000 });
    let mut conn = d.conn();
    let asking = conn.request("exec", call.clone());
    decide(&d, &asked(&d), "deny");
    let error = conn.answer(asking).expect_err("denied");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32005), &json!("denied")), "{error}");
    assert_eq!((text(outside.join("f")), d.ids(json!({})).len()), ("old\n".into(), 0));
    let asking = conn.request("exec", call);
    decide(&d, &asked(&d), "approve");
    let process = conn.answer(asking).unwrap();
    assert_eq!((&process["exit_code"], &process["patch"]["status"]), (&json!(0), &json!("applied")), "{process}");
    assert_eq!(text(outside.join("f")), "new\n");
}
