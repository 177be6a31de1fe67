//! `patch.apply` and `patch.revert`: all or nothing, results, requests, events.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toold_test_support::rig::Daemon;
use toold_test_support::sys::refuse_calls;

/// A directory of files that a patch changes.
pub struct Work {
    pub dir: PathBuf,
}

impl Work {
    pub fn new(d: &Daemon) -> Work {
        let dir = d.root().join("work");
        fs::create_dir_all(&dir).unwrap();
        Work { dir: dir.canonicalize().unwrap() }
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_else(|e| format!("({e})"))
    }

    /// All files beneath, with their contents.
    pub fn all(&self) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<(String, Vec<u8>)> = toold_test_support::rig::files(&self.dir)
            .into_iter()
            .map(|path| {
                (path.strip_prefix(&self.dir).unwrap().display().to_string(), fs::read(&path).unwrap_or_default())
            })
            .collect();
        all.sort();
        all
    }

    pub fn call(&self, operations: &str, more: Value) -> Value {
        let patch = format!("*** Begin Patch\n{operations}\n*** End Patch\n");
        let mut call = json!({ "patch": patch, "cwd": self.dir });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    }
}

fn sha256(bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("toold-sha-{}-{:p}", std::process::id(), bytes));
    fs::write(&path, bytes).unwrap();
    let out = std::process::Command::new("sha256sum").arg(&path).output().unwrap();
    fs::remove_file(path).unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_string()
}

fn events(d: &Daemon) -> Vec<Value> {
    let types = json!(["patch_applied", "patch_reverted"]);
    let all = d.ok("events.next", json!({ "consumer": "patches", "types": types, "limit": 100 }));
    all["events"].as_array().unwrap().clone()
}

#[test]
fn a_patch_adds_updates_moves_and_deletes_files_and_is_undone() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("update", "one\r\ntwo\r\nthree\r\n");
    work.put("move", "#!/bin/sh\necho old\n");
    fs::set_permissions(work.dir.join("move"), PermissionsExt::from_mode(0o750)).unwrap();
    work.put("delete", "gone\n");
    work.put("over", "before\n");
    let before = work.all();
    let operations = "*** Add File: new/deep/file\n+hello\n*** Add File: over\n+after\n*** Delete File: delete\n\
                      *** Update File: update\n@@ one\n-two\n+TWO\n*** Update File: move\n*** Move to: bin/moved\n@@\n-echo old\n+echo new";
    let result = d.ok("patch.apply", work.call(operations, json!({ "session_key": "s", "task_id": "t" })));
    assert_eq!(result["status"], "applied");
    assert_eq!(work.text("new/deep/file"), "hello\n");
    assert_eq!(work.text("over"), "after\n");
    assert_eq!(work.text("update"), "one\r\nTWO\r\nthree\r\n");
    assert_eq!(work.text("bin/moved"), "#!/bin/sh\necho new\n");
    assert_eq!(fs::metadata(work.dir.join("bin/moved")).unwrap().mode() & 0o7777, 0o750);
    assert!(!work.dir.join("delete").exists() && !work.dir.join("move").exists());
    let files = result["files"].as_array().unwrap();
    let facts: Vec<Value> =
        files.iter().map(|f| json!([f["path"], f["op"], f["to"], f["added"], f["removed"], f["fuzz"]])).collect();
    assert_eq!(
        json!(facts),
        json!([
            ["new/deep/file", "add", null, 1, 0, 0],
            ["over", "add", null, 1, 1, 0],
            ["delete", "delete", null, 0, 1, 0],
            ["update", "update", null, 1, 1, 0],
            ["move", "update", "bin/moved", 1, 1, 0],
        ])
    );
    assert_eq!(files[0]["before_sha256"], Value::Null);
    assert_eq!(files[2]["after_sha256"], Value::Null);
    assert_eq!(files[3]["before_sha256"], json!(sha256(b"one\r\ntwo\r\nthree\r\n")));
    assert_eq!(files[3]["after_sha256"], json!(sha256(b"one\r\nTWO\r\nthree\r\n")));
    let diff = result["diff"].as_str().unwrap();
    for part in [
        "--- /dev/null\n+++ b/new/deep/file\n",
        "+++ /dev/null\n",
        "rename from move\nrename to bin/moved\n",
        "-two\r\n+TWO\r\n",
    ] {
        assert!(diff.contains(part), "{part:?} in {diff}");
    }
    let id = &result["patch_id"];
    let applied = events(&d);
    assert_eq!(applied.len(), 1);
    let event = &applied[0];
    assert_eq!((&event["type"], &event["patch_id"], &event["id"]), (&json!("patch_applied"), id, &Value::Null));
    assert_eq!((&event["session_key"], &event["task_id"], &event["cwd"]), (&json!("s"), &json!("t"), &json!(work.dir)));
    assert_eq!((&event["count"], &event["added"], &event["removed"]), (&json!(5), &json!(4), &json!(4)), "{event}");

    let reverted = d.ok("patch.revert", json!({ "patch_id": id }));
    assert_eq!((&reverted["status"], &reverted["patch_id"]), (&json!("reverted"), id));
    assert_eq!(work.all(), before, "old bytes are back and nothing else is left");
    assert!(!work.dir.join("new").exists() && !work.dir.join("bin").exists());
    assert_eq!(fs::metadata(work.dir.join("move")).unwrap().mode() & 0o7777, 0o750);
    let kinds: Vec<Value> = events(&d).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["patch_applied", "patch_reverted"]);
    let again = d.refused(-32009, "conflict", "patch.revert", json!({ "patch_id": id }));
    assert_eq!(again["data"]["reason"], "reverted");
    d.refused(-32001, "not_found", "patch.revert", json!({ "patch_id": "patch_000000000000" }));
}

#[test]
fn a_check_changes_nothing_and_shows_the_result() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    let before = work.all();
    let result =
        d.ok("patch.apply", work.call("*** Update File: f\n-a\n+b\n*** Add File: g\n+g", json!({ "check": true })));
    assert_eq!((&result["status"], &result["patch_id"]), (&json!("checked"), &Value::Null));
    assert_eq!(result["files"].as_array().unwrap().len(), 2);
    assert!(result["diff"].as_str().unwrap().contains("-a\n+b\n"));
    assert_eq!(work.all(), before);
    assert_eq!(events(&d), Vec::<Value>::new());
    assert!(!d.state().join("changes").exists(), "a check leaves nothing in the state directory");
}

#[test]
fn bytes_of_other_lines_the_byte_order_mark_and_attributes_are_kept() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let path = work.dir.join("f");
    fs::write(&path, b"\xef\xbb\xbffirst\r\n\xff\xfe raw\nlast  \r\n").unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o604)).unwrap();
    let has_xattrs = std::process::Command::new("setfattr")
        .args(["-n", "user.kept", "-v", "yes"])
        .arg(&path)
        .status()
        .is_ok_and(|status| status.success());
    let result = d.ok("patch.apply", work.call("*** Update File: f\n-first\n+FIRST\n@@\n last\n+more", json!({})));
    assert_eq!(fs::read(&path).unwrap(), b"\xef\xbb\xbfFIRST\r\n\xff\xfe raw\nlast  \r\nmore\r\n");
    assert_eq!(result["files"][0]["fuzz"], 1, "`last` has blanks at its end");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o604);
    if has_xattrs {
        let out = std::process::Command::new("getfattr").args(["-n", "user.kept"]).arg(&path).output().unwrap();
        assert!(String::from_utf8_lossy(&out.stdout).contains("yes"), "{out:?}");
    }
}

#[test]
fn sequential_operations_see_each_other_and_end_at_the_first_that_fails() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let operations = "*** Add File: f\n+one\n*** Update File: f\n-one\n+two\n*** Add File: g\n+g\n*** Delete File: g";
    let error = d.refused(-32602, "invalid_params", "patch.apply", work.call(operations, json!({})));
    assert_eq!(error["data"]["line"], 4, "{error}");
    assert_eq!(work.all(), []);
    let result = d.ok("patch.apply", work.call(operations, json!({ "mode": "sequential" })));
    assert_eq!(result["status"], "applied");
    assert_eq!(work.all(), [("f".into(), b"two\n".to_vec())]);
    let operations = "*** Update File: f\n-two\n+three\n*** Update File: missing\n-a\n+b\n*** Add File: h\n+h";
    let result = d.ok("patch.apply", work.call(operations, json!({ "mode": "sequential" })));
    assert_eq!((&result["status"], &result["failed"]["line"]), (&json!("partial"), &json!(5)), "{result}");
    assert_eq!(work.all(), [("f".into(), b"three\n".to_vec())]);
    d.ok("patch.revert", json!({ "patch_id": result["patch_id"] }));
    assert_eq!(work.text("f"), "two\n");
}

#[test]
fn the_same_request_returns_the_first_result_also_after_a_crash() {
    let mut d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    let call = work.call("*** Update File: f\n-a\n+a\n+b", json!({ "request_id": "r" }));
    let first = d.ok("patch.apply", call.clone());
    assert_eq!(d.ok("patch.apply", call.clone()), first);
    d.kill9();
    d.spawn();
    assert_eq!(d.ok("patch.apply", call), first);
    assert_eq!(work.text("f"), "a\nb\n");
    let other = work.call("*** Update File: f\n-a\n+x", json!({ "request_id": "r" }));
    let error = d.refused(-32009, "conflict", "patch.apply", other.clone());
    assert_eq!((&error["data"]["patch_id"], &error["data"]["request_id"]), (&first["patch_id"], &json!("r")));
    assert_eq!(events(&d).len(), 1);
    assert_eq!(work.text("f"), "a\nb\n");
}

#[test]
fn two_calls_with_one_request_at_once_apply_it_once() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    let call = work.call("*** Update File: f\n a\n+b", json!({ "request_id": "r" }));
    let mut connections: Vec<_> = (0..4).map(|_| d.conn()).collect();
    let ids: Vec<u64> = connections.iter_mut().map(|conn| conn.request("patch.apply", call.clone())).collect();
    let results: Vec<Value> = connections.iter_mut().zip(ids).map(|(conn, id)| conn.answer(id).unwrap()).collect();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!((work.text("f"), events(&d).len()), ("a\nb\n".into(), 1));
}

#[test]
fn a_revert_of_a_changed_file_is_a_conflict_and_does_nothing() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    work.put("g", "g\n");
    let result = d.ok("patch.apply", work.call("*** Update File: f\n-a\n+b\n*** Delete File: g", json!({})));
    let path = work.put("f", "mine\n");
    let error = d.refused(-32009, "conflict", "patch.revert", json!({ "patch_id": result["patch_id"] }));
    assert_eq!(error["data"]["paths"], json!([path]), "{error}");
    assert_eq!(work.all(), [("f".into(), b"mine\n".to_vec())]);
    work.put("f", "b\n");
    d.ok("patch.revert", json!({ "patch_id": result["patch_id"] }));
    assert_eq!(work.text("f") + &work.text("g"), "a\ng\n");
}

#[test]
fn kept_bytes_are_removed_after_their_time() {
    let d = Daemon::start_with("[patch]\nkeep_ms = 1\n", &[]);
    let work = Work::new(&d);
    let result = d.ok("patch.apply", work.call("*** Add File: f\n+a", json!({ "request_id": "r" })));
    let kept = d.state().join("changes").join(result["patch_id"].as_str().unwrap());
    d.eventually("the kept bytes are removed", || !kept.exists());
    d.refused(-32001, "not_found", "patch.revert", json!({ "patch_id": result["patch_id"] }));
    assert_eq!((work.text("f"), events(&d).len()), ("a\n".into(), 1));
}

#[test]
fn a_file_system_without_exchange_is_served_all_the_same() {
    let mut d = Daemon::prepare("", &[]);
    let mut command = d.command();
    // File systems without it answer so.
    refuse_calls(&mut command, &[libc::SYS_renameat2], libc::EINVAL);
    d.spawn_as(command);
    let work = Work::new(&d);
    work.put("f", "a\n");
    work.put("g", "g\n");
    let before = work.all();
    let operations = "*** Update File: f\n-a\n+b\n*** Delete File: g\n*** Add File: new/h\n+h";
    let result = d.ok("patch.apply", work.call(operations, json!({})));
    assert_eq!(work.all(), [("f".into(), b"b\n".to_vec()), ("new/h".into(), b"h\n".to_vec())]);
    d.ok("patch.revert", json!({ "patch_id": result["patch_id"] }));
    assert_eq!(work.all(), before);
}

#[test]
fn a_full_disk_changes_nothing() {
    let mut d = Daemon::start_with("", &[]);
    let work = Work::new(&d);
    let disk = d.root().join("small");
    fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(&disk)
        .output()
        .is_ok_and(|out| out.status.success());
    if toold_test_support::rig::skip_unless(mounted, "a small tmpfs needs root") {
        return;
    }
    let unmount = |disk: &Path| drop(std::process::Command::new("umount").arg("-l").arg(disk).output());
    fs::write(disk.join("a"), "a\n").unwrap();
    let large: String = (0..3000).map(|n| format!("+{n:040}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Update File: a\n-a\n+b\n*** Add File: large\n{large}*** End Patch");
    let error = d.refused(-32008, "unavailable", "patch.apply", json!({ "patch": patch, "cwd": disk }));
    assert_eq!(error["data"]["errno"], libc::ENOSPC, "{error}");
    let names: Vec<_> = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let text = fs::read_to_string(disk.join("a")).unwrap();
    unmount(&disk);
    assert_eq!((names, text), (vec!["a".into()], "a\n".into()));
    assert_eq!(fs::read_dir(d.state().join("changes")).unwrap().count(), 0);
    d.restart();
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
    drop(work);
}
