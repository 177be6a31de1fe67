//! `fs.*` with a sandbox: roots, hidden and protected paths, links, and files that are swapped.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use toold_test_support::rig::Daemon;

struct Tree {
    d: Daemon,
    base: PathBuf,
}

/// A root with a repository, a file outside, and a directory that the config hides.
fn tree() -> Tree {
    let base = tempfile::tempdir().unwrap().keep().canonicalize().unwrap();
    for (path, content) in [
        ("root/a/file", "needle inside\n"),
        ("root/.git/config", ""),
        ("outside/file", "needle outside\n"),
        ("secret/key", "needle secret\n"),
    ] {
        fs::create_dir_all(base.join(path).parent().unwrap()).unwrap();
        fs::write(base.join(path), content).unwrap();
    }
    let d = Daemon::start_with(&format!("[sandbox]\nhide = [\"{}/secret\"]\n", base.display()), &[]);
    Tree { d, base }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

impl Tree {
    fn call(&self, profile: &str, path: &str, more: Value) -> Value {
        let mut call = json!({ "path": self.base.join(path), "cwd": self.base.join("root"), "sandbox": profile });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if call.get("content").is_some() || call.get("old").is_some() {
            call["approval_timeout_ms"] = json!(0);
        }
        call
    }

    #[track_caller]
    fn denied(&self, reason: &str, method: &str, call: Value) -> Value {
        let error = self.d.refused(-32005, "denied", method, call);
        assert_eq!(error["data"]["reason"], reason, "{error}");
        error
    }
}

#[test]
fn writes_are_allowed_in_the_roots_and_denied_outside_with_the_root_to_grant() {
    let t = tree();
    let new = |path: &str| t.call("workspace-write", path, json!({ "content": "x", "approval_timeout_ms": 0 }));
    t.d.ok("fs.write", new("root/a/new"));
    t.d.ok("fs.write", new("root/deep/er/new"));
    let error = t.denied("outside_roots", "fs.write", new("outside/new"));
    assert_eq!(error["data"]["root"], json!(t.base.join("outside")));
    assert!(!t.base.join("outside/new").exists());
    let edit = t.call(
        "workspace-write",
        "outside/file",
        json!({ "old": "outside", "new": "changed", "approval_timeout_ms": 0 }),
    );
    t.denied("outside_roots", "fs.edit", edit);
    let granted = json!({ "mode": "workspace-write", "roots": [t.base.join("outside")] });
    let mut call = new("outside/new");
    call["sandbox"] = granted;
    t.d.ok("fs.write", call);
    let write = t.call("read-only", "root/a/file", json!({ "content": "x", "approval_timeout_ms": 0 }));
    t.denied("outside_roots", "fs.write", write);
    assert_eq!(fs::read_to_string(t.base.join("root/a/file")).unwrap(), "needle inside\n");
}

#[test]
fn reads_outside_are_allowed_and_hidden_paths_are_not() {
    let t = tree();
    for profile in ["workspace-write", "read-only"] {
        let read = |path: &str| t.call(profile, path, json!({}));
        assert_eq!(t.d.ok("fs.read", read("outside/file"))["content"], "needle outside\n");
        t.denied("hidden", "fs.read", read("secret/key"));
        t.denied("hidden", "fs.list", read("secret"));
        t.denied("hidden", "fs.write", t.call(profile, "secret/new", json!({ "content": "x" })));
        t.denied("hidden", "fs.search", t.call(profile, "secret", json!({ "pattern": "needle" })));
        let found = t.d.ok("fs.search", t.call(profile, "", json!({ "pattern": "needle" })));
        assert_eq!(found["total"], 2, "{found}");
        let listed = t.d.ok("fs.list", t.call(profile, "", json!({ "depth": 2 })));
        assert!(!listed.to_string().contains("secret/key") && !listed.to_string().contains("\"secret\""), "{listed}");
        let state = json!({ "path": t.d.state(), "cwd": t.base.join("root"), "sandbox": profile });
        t.denied("hidden", "fs.list", state);
        let environ = json!({ "path": format!("/proc/{}/status", t.d.pid()), "cwd": t.base, "sandbox": profile });
        t.denied("kernel", "fs.read", environ);
    }
}

#[test]
fn paths_that_lead_out_of_a_root_are_refused_for_reading_and_writing() {
    let t = tree();
    symlink("../outside/file", t.base.join("root/link")).unwrap();
    symlink(t.base.join("outside"), t.base.join("root/dir")).unwrap();
    symlink("a/file", t.base.join("root/inside")).unwrap();
    for path in ["root/link", "root/dir/file", "root/../outside/file", "root/a/../../outside/file"] {
        t.denied("escapes", "fs.read", t.call("workspace-write", path, json!({})));
        t.denied("escapes", "fs.write", t.call("workspace-write", path, json!({ "content": "x" })));
    }
    t.denied("escapes", "fs.write", t.call("workspace-write", "root/dir/new", json!({ "content": "x" })));
    t.d.ok("fs.write", t.call("workspace-write", "root/inside", json!({ "content": "x" })));
    assert_eq!(fs::read_to_string(t.base.join("root/a/file")).unwrap(), "x");
    assert_eq!(fs::read_to_string(t.base.join("outside/file")).unwrap(), "needle outside\n");
}

#[test]
fn protected_paths_in_a_root_stay_as_they_are() {
    let t = tree();
    for path in ["root/.git/config", "root/.git/hooks/post-commit", "root/.envrc", "root/.vscode/tasks.json"] {
        t.denied("protected", "fs.write", t.call("workspace-write", path, json!({ "content": "x" })));
    }
    assert_eq!(fs::read_dir(t.base.join("root/.git")).unwrap().count(), 1);
    // A `.git` that is a file names the repository that git uses, with its hooks. Two calls made a repository in a directory.
    let nested = ["root/a/.git/config", "root/a/.git/hooks/pre-commit", "root/a/b/.git/commondir"];
    for path in nested {
        t.denied("protected", "fs.write", t.call("workspace-write", path, json!({ "content": "x" })));
    }
    fs::create_dir(t.base.join("bare")).unwrap();
    let bare =
        json!({ "path": ".git", "content": "gitdir: evil", "cwd": t.base.join("bare"), "sandbox": "workspace-write" });
    t.denied("protected", "fs.write", bare);
    let patch = "*** Begin Patch\n*** Add File: .git\n+gitdir: evil\n*** End Patch\n";
    let call = json!({ "patch": patch, "cwd": t.base.join("bare"), "sandbox": "workspace-write" });
    t.d.refused(-32005, "denied", "patch.apply", call);
    assert_eq!(fs::read_dir(t.base.join("bare")).unwrap().count(), 0);
    let set_id = t.call("workspace-write", "root/a/tool", json!({ "content": "x", "mode": "4755" }));
    t.denied("set_id", "fs.write", set_id);
}

#[test]
fn a_call_with_a_sandbox_needs_a_directory_that_exists_and_a_known_profile() {
    let t = tree();
    let path = t.base.join("root/a/file");
    t.d.refused_param("sandbox", "fs.read", json!({ "path": path, "cwd": t.base, "sandbox": "unknown" }));
    t.d.refused_param("cwd", "fs.read", json!({ "path": path, "cwd": t.base.join("none"), "sandbox": "read-only" }));
    assert_eq!(t.d.ok("fs.read", json!({ "path": path, "sandbox": "full" }))["total_lines"], 1);
}

#[test]
fn without_a_directory_the_roots_are_those_of_the_profile_and_of_the_session() {
    let t = tree();
    let (inside, secret) = (t.base.join("root/a/file"), t.base.join("secret/key"));
    for profile in ["read-only", "workspace-write"] {
        // It was -32602: a directory had to be given.
        let read = |path: &PathBuf| json!({ "path": path, "sandbox": profile });
        assert_eq!(t.d.ok("fs.read", read(&inside))["content"], "needle inside\n");
        assert_eq!(t.d.ok("fs.list", read(&t.base.join("root")))["entries"][0]["path"], json!(t.base.join("root/a")));
        let search = json!({ "path": t.base, "pattern": "needle", "sandbox": profile });
        assert_eq!(t.d.ok("fs.search", search)["total"], 2);
        t.denied("hidden", "fs.read", read(&secret));
        t.d.refused_param("path", "fs.read", json!({ "path": "root/a/file", "sandbox": profile }));
        let change = json!({ "path": inside, "content": "x", "sandbox": profile, "approval_timeout_ms": 0 });
        let error = t.denied("outside_roots", "fs.write", change);
        assert_eq!(error["data"]["root"], json!(t.base.join("root/a")));
    }
    let own = json!({ "mode": "workspace-write", "roots": [t.base.join("root")] });
    let edit = |old: &str, new: &str| json!({ "path": inside, "old": old, "new": new, "sandbox": own });
    t.d.ok("fs.edit", edit("inside", "edited"));
    let session = json!({ "session_key": "r", "sandbox": "workspace-write", "roots": [t.base.join("root")] });
    t.d.ok("session.configure", session);
    t.d.ok("fs.write", json!({ "path": inside, "content": "of the session\n", "session_key": "r" }));
    let outside = json!({ "path": t.base.join("outside/file"), "content": "x", "session_key": "r",
        "approval_timeout_ms": 0 });
    t.denied("outside_roots", "fs.write", outside);
}

#[test]
fn a_patch_without_a_directory_has_absolute_paths_and_the_same_roots() {
    let t = tree();
    let file = t.base.join("root/a/file");
    let patch = |path: &str| {
        let text = format!("*** Begin Patch\n*** Update File: {path}\n-needle inside\n+pin inside\n*** End Patch\n");
        json!({ "patch": text, "sandbox": { "mode": "workspace-write", "roots": [t.base.join("root")] } })
    };
    let absolute = patch(file.to_str().unwrap());
    let mut no_roots = absolute.clone();
    (no_roots["sandbox"], no_roots["approval_timeout_ms"]) = (json!("workspace-write"), json!(0));
    t.d.refused(-32005, "denied", "patch.apply", no_roots.clone());
    let relative = t.d.refused(-32602, "invalid_params", "patch.apply", patch("root/a/file"));
    assert_eq!(relative["data"]["line"], 2, "{relative}");
    let mut oracle = absolute.clone();
    // It answered whether a hidden file has this hash.
    oracle["expect"] = json!({ t.base.join("secret/key").to_str().unwrap(): "0".repeat(64) });
    t.d.refused(-32005, "denied", "patch.apply", oracle);
    let applied = t.d.ok("patch.apply", absolute);
    assert_eq!(fs::read_to_string(&file).unwrap(), "pin inside\n");
    let id = &applied["patch_id"];
    t.d.refused(
        -32005,
        "denied",
        "patch.revert",
        json!({ "patch_id": id, "sandbox": "workspace-write", "approval_timeout_ms": 0 }),
    );
    let roots = json!({ "mode": "workspace-write", "roots": [t.base.join("root")] });
    t.d.ok("patch.revert", json!({ "patch_id": id, "sandbox": roots }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "needle inside\n");
    t.d.ok(
        "session.configure",
        json!({ "session_key": "r", "sandbox": "workspace-write", "cwd": t.base.join("root") }),
    );
    let mut of_session = patch("a/file");
    (of_session["sandbox"], of_session["session_key"]) = (json!(null), json!("r"));
    t.d.ok("patch.apply", of_session);
    assert_eq!(fs::read_to_string(&file).unwrap(), "pin inside\n");
}

#[test]
fn a_change_that_cannot_be_made_is_refused_before_a_person_is_asked_and_nothing_blocks() {
    let t = tree();
    let fifo = t.base.join("outside/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let asking = |path: &str, more: Value| {
        let mut call = t.call("workspace-write", path, more);
        call["approval_timeout_ms"] = json!(600_000);
        call
    };
    // It opened the FIFO to show its content, and waited for a writer.
    t.d.refused_param("path", "fs.write", asking("outside/fifo", json!({ "content": "x" })));
    t.d.refused(-32009, "no_match", "fs.edit", asking("outside/file", json!({ "old": "not there", "new": "x" })));
    t.d.refused(-32009, "conflict", "fs.write", asking("outside/file", json!({ "content": "x", "expect": "absent" })));
    assert_eq!(t.d.ok("approvals.list", json!({ "state": "pending" }))["approvals"], json!([]));
}

#[test]
fn an_approval_holds_for_the_content_that_was_shown() {
    let t = tree();
    let mut call = t.call("workspace-write", "outside/file", json!({ "old": "needle", "new": "pin" }));
    call["approval_timeout_ms"] = json!(60_000);
    let mut conn = t.d.conn();
    let edit = conn.request("fs.edit", call);
    let pending = || t.d.ok("approvals.list", json!({ "state": "pending" }))["approvals"][0].clone();
    t.d.eventually("the question is there", || pending().is_object());
    let asked = pending();
    assert!(asked["action"]["diff"].as_str().unwrap().contains("-needle outside\n+pin outside\n"), "{asked}");
    fs::write(t.base.join("outside/file"), "other needle\n").unwrap();
    let decision = json!({ "id": asked["id"], "decision": "approve", "scope": "once", "digest": asked["digest"] });
    t.d.ok("approvals.decide", decision);
    assert_eq!(conn.answer(edit).unwrap_err()["data"]["kind"], "conflict");
    assert_eq!(fs::read_to_string(t.base.join("outside/file")).unwrap(), "other needle\n");
}

#[test]
fn the_settings_of_a_session_hold_for_files() {
    let t = tree();
    let settings =
        json!({ "session_key": "s", "cwd": t.base.join("root"), "sandbox": "workspace-write", "approval": "never" });
    t.d.ok("session.configure", settings);
    let of_session = |path: &str| json!({ "path": path, "session_key": "s", "content": "x" });
    t.d.ok("fs.write", of_session("a/new"));
    assert!(t.base.join("root/a/new").exists(), "relative to the directory of the session");
    let outside = t.base.join("outside/new");
    t.denied("outside_roots", "fs.write", of_session(outside.to_str().unwrap()));
    t.denied("hidden", "fs.read", json!({ "path": t.base.join("secret/key"), "session_key": "s" }));
    let wider = json!({ "path": outside, "session_key": "s", "content": "x", "sandbox": "full" });
    t.denied("ceiling", "fs.write", wider);
    assert!(!outside.exists());
}

/// A job in the root could swap a directory for a link while a search walks: no line of a hidden file may come out.
#[test]
fn a_directory_that_is_swapped_during_a_search_shows_nothing_hidden() {
    let t = tree();
    let (dir, real, hidden) = (t.base.join("root/swap"), t.base.join("root/real"), t.base.join("secret"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("key"), "needle plain\n").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::rename(&real, &dir);
                let _ = fs::rename(&dir, &real);
                let _ = symlink(&hidden, &dir);
                let _ = fs::remove_file(&dir);
            }
        });
        for _ in 0..200 {
            let found = t.d.ok("fs.search", t.call("workspace-write", "root", json!({ "pattern": "needle" })));
            assert!(!found.to_string().contains("secret"), "{found}");
            let read = t.d.call("fs.read", t.call("workspace-write", "root/swap/key", json!({})));
            assert!(!format!("{read:?}").contains("needle secret"), "{read:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
