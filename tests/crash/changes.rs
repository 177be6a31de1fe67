//! kill -9 of the daemon at every step of a patch, of a revert, and of the walk back: old bytes everywhere or new bytes everywhere,
//! one event, nothing left beside the files. A file that another program changed meanwhile is left alone and named.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use toold_test_support::rig::{Daemon, files};

/// The points at which nothing of a change may be left after the next start.
const BEFORE_THE_MARK: [&str; 8] = [
    "changes.planned",
    "changes.temp",
    "changes.temps",
    "changes.prepared",
    "changes.first",
    "changes.last_but_one",
    "changes.renamed",
    "changes.synced",
];
/// The points at which all of it holds.
const AFTER_THE_MARK: [&str; 3] = ["changes.committed", "changes.cleaned", "patch.published"];
const VERIFIED: &str = "patch.verified";
const REVERTED: &str = "changes.reverted";
const WALKED_BACK: &str = "changes.walked_back";

pub const POINTS: [&str; 14] = [
    BEFORE_THE_MARK[0],
    BEFORE_THE_MARK[1],
    BEFORE_THE_MARK[2],
    BEFORE_THE_MARK[3],
    BEFORE_THE_MARK[4],
    BEFORE_THE_MARK[5],
    BEFORE_THE_MARK[6],
    BEFORE_THE_MARK[7],
    AFTER_THE_MARK[0],
    AFTER_THE_MARK[1],
    AFTER_THE_MARK[2],
    VERIFIED,
    REVERTED,
    WALKED_BACK,
];

const PATCH: &str = "*** Begin Patch\n*** Update File: a\n-old a\n+new a\n*** Update File: b\n-old b\n+new b\n\
                     *** Delete File: c\n*** Add File: new/d\n+new d\n*** End Patch";

type Tree = Vec<(String, String)>;

fn tree(entries: &[(&str, &str)]) -> Tree {
    entries.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

fn old() -> Tree {
    tree(&[("a", "old a\n"), ("b", "old b\n"), ("c", "old c\n")])
}

fn new() -> Tree {
    tree(&[("a", "new a\n"), ("b", "new b\n"), ("new/d", "new d\n")])
}

struct PatchCase {
    daemon: Daemon,
    hooks: PathBuf,
    work: PathBuf,
}

impl PatchCase {
    fn start() -> PatchCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        let work = daemon.root().join("work");
        fs::create_dir(&work).unwrap();
        old().iter().for_each(|(name, text)| fs::write(work.join(name), text).unwrap());
        PatchCase { daemon, hooks, work }
    }

    fn call(&self) -> Value {
        json!({ "patch": PATCH, "cwd": self.work, "request_id": "r" })
    }

    fn arm(&self, point: &str) {
        let _ = fs::remove_file(self.hooks.join(format!("{point}.hit")));
        fs::write(self.hooks.join(point), "").unwrap();
    }

    fn hit(&self, point: &str) {
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || file.exists());
    }

    /// Makes a call, and kills the daemon at the point.
    fn strike(&mut self, point: &str, method: &str, call: Value) {
        self.arm(point);
        let mut conn = self.daemon.conn();
        conn.request(method, call);
        self.hit(point);
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
    }

    fn tree(&self) -> Tree {
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let name = |path: &Path| path.strip_prefix(&self.work).unwrap().display().to_string();
        let mut all: Tree = files(&self.work).iter().map(|path| (name(path), read(path))).collect();
        all.sort();
        all
    }

    fn damaged(&self) -> Value {
        self.daemon.ok("daemon.info", json!({}))["damaged"].clone()
    }

    fn events(&self) -> Vec<String> {
        let types = json!(["patch_applied", "patch_reverted"]);
        let all = self.daemon.ok("events.next", json!({ "consumer": "check", "types": types, "limit": 100 }));
        all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
    }

    /// Applies the patch, or finds it applied, and checks that it happened once.
    fn finish(&self, point: &str) -> Value {
        let result = self.daemon.ok("patch.apply", self.call());
        assert_eq!(self.tree(), new(), "{point}");
        assert_eq!(self.events(), ["patch_applied"], "{point}");
        assert_eq!(self.damaged(), json!([]), "{point}");
        let kept: Vec<_> = fs::read_dir(self.daemon.state().join("changes")).unwrap().collect();
        assert_eq!(kept.len(), 1, "{point}: {kept:?}");
        result
    }
}

impl Drop for PatchCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

#[test]
fn a_patch_happens_all_or_not_at_all_whichever_step_the_daemon_dies_in() {
    let before = BEFORE_THE_MARK.iter().chain([&VERIFIED]).map(|point| (*point, old()));
    let after = AFTER_THE_MARK.iter().map(|point| (*point, new()));
    for (point, expected) in before.chain(after) {
        let mut case = PatchCase::start();
        case.strike(point, "patch.apply", case.call());
        case.daemon.spawn();
        assert_eq!(case.tree(), expected, "{point}");
        assert!(!case.work.join("new").exists() || expected == new(), "{point}: a directory is left");
        let result = case.finish(point);
        // It is whole: it can be undone.
        case.daemon.ok("patch.revert", json!({ "patch_id": result["patch_id"] }));
        assert_eq!(case.tree(), old(), "{point}");
    }
}

#[test]
fn a_revert_happens_all_or_not_at_all_whichever_step_the_daemon_dies_in() {
    let before = BEFORE_THE_MARK.iter().map(|point| (*point, new()));
    let after = AFTER_THE_MARK.iter().chain([&REVERTED]).map(|point| (*point, old()));
    for (point, expected) in before.chain(after) {
        let mut case = PatchCase::start();
        let result = case.finish(point);
        case.strike(point, "patch.revert", json!({ "patch_id": result["patch_id"] }));
        case.daemon.spawn();
        assert_eq!(case.tree(), expected, "{point}");
        let again = case.daemon.call("patch.revert", json!({ "patch_id": result["patch_id"] }));
        match expected == old() {
            true => assert_eq!(again.unwrap_err()["data"]["reason"], "reverted", "{point}"),
            false => assert_eq!(again.unwrap()["status"], "reverted", "{point}"),
        }
        assert_eq!(case.tree(), old(), "{point}");
        assert_eq!(case.events(), ["patch_applied", "patch_reverted"], "{point}");
        assert_eq!(case.damaged(), json!([]), "{point}");
    }
}

#[test]
fn a_walk_back_that_is_interrupted_is_done_by_the_next_daemon() {
    let mut case = PatchCase::start();
    case.strike("changes.renamed", "patch.apply", case.call());
    assert_eq!(case.tree().len(), 3 + 3, "the new files, and the old ones beside them");
    case.arm(WALKED_BACK);
    let mut child: Child = case.daemon.command().spawn().unwrap();
    case.hit(WALKED_BACK);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(case.hooks.join(WALKED_BACK)).unwrap();
    case.daemon.spawn();
    assert_eq!(case.tree(), old());
    case.finish(WALKED_BACK);
}

#[test]
fn a_file_that_another_program_changed_meanwhile_is_left_alone_and_named() {
    for point in ["changes.renamed", "changes.synced"] {
        let mut case = PatchCase::start();
        case.strike(point, "patch.apply", case.call());
        fs::write(case.work.join("a"), "mine\n").unwrap();
        case.daemon.spawn();
        let damaged = case.damaged();
        let text = damaged[0].as_str().unwrap().to_string();
        assert!(text.contains(case.work.join("a").to_str().unwrap()) && text.contains("left alone"), "{point}: {text}");
        let kept = PathBuf::from(text.rsplit("its old bytes are in ").next().unwrap());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "old a\n", "{point}");
        fs::remove_file(kept).unwrap();
        let expected = tree(&[("a", "mine\n"), ("b", "old b\n"), ("c", "old c\n")]);
        assert_eq!(case.tree(), expected, "{point}");
        assert_eq!(case.events(), Vec::<String>::new(), "{point}");
        // The request may be made again, and finds that the file is another one.
        case.daemon.refused(-32602, "invalid_params", "patch.apply", case.call());
        assert_eq!(case.tree(), expected, "{point}");
    }
}

#[test]
fn a_file_that_changes_while_its_patch_is_applied_is_a_conflict_and_nothing_is_changed() {
    let case = PatchCase::start();
    for point in [VERIFIED, "changes.prepared"] {
        case.arm(point);
        let mut conn = case.daemon.conn();
        let call = conn.request("patch.apply", case.call());
        case.hit(point);
        fs::write(case.work.join("b"), "mine\n").unwrap();
        fs::remove_file(case.hooks.join(point)).unwrap();
        let error = conn.answer(call).unwrap_err();
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32009), &json!("conflict")), "{point}: {error}");
        assert_eq!(error["data"]["paths"], json!([case.work.join("b").canonicalize().unwrap()]), "{point}");
        assert_eq!(case.tree(), tree(&[("a", "old a\n"), ("b", "mine\n"), ("c", "old c\n")]), "{point}");
        fs::write(case.work.join("b"), "old b\n").unwrap();
    }
    // The request that failed may be used again.
    case.finish("conflict");
}

#[test]
fn a_directory_that_is_swapped_before_the_commit_is_refused() {
    let case = PatchCase::start();
    fs::create_dir_all(case.work.join("sub")).unwrap();
    fs::write(case.work.join("sub/f"), "a\n").unwrap();
    let elsewhere = case.daemon.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("f"), "a\n").unwrap();
    let patch = "*** Begin Patch\n*** Update File: sub/f\n-a\n+b\n*** End Patch";
    for point in [VERIFIED, "changes.planned"] {
        case.arm(point);
        let mut conn = case.daemon.conn();
        let call =
            conn.request("patch.apply", json!({ "patch": patch, "cwd": case.work, "sandbox": "workspace-write" }));
        case.hit(point);
        fs::rename(case.work.join("sub"), case.work.join("moved")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, case.work.join("sub")).unwrap();
        fs::remove_file(case.hooks.join(point)).unwrap();
        let error = conn.answer(call).unwrap_err();
        assert!(matches!(error["code"].as_i64(), Some(-32009 | -32005)), "{point}: {error}");
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(
            (read(case.work.join("moved/f")), read(elsewhere.join("f"))),
            ("a\n".into(), "a\n".into()),
            "{point}"
        );
        fs::remove_file(case.work.join("sub")).unwrap();
        fs::rename(case.work.join("moved"), case.work.join("sub")).unwrap();
        assert_eq!(fs::read_dir(case.work.join("sub")).unwrap().count(), 1, "{point}: nothing is left there");
    }
}
