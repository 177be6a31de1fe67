//! A commit, a discard and the start of a staged job, and a daemon that is killed at every step: old files everywhere or new
//! files everywhere, nothing left over, one `stage_ready`.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 6] =
    ["stage.given", "stage.noted", "stage.commit_noted", "stage.committed", "stage.modes", "stage.ended"];

/// Points of the journal that a commit passes too.
const JOURNAL_POINTS: [&str; 4] = ["changes.prepared", "changes.first", "changes.renamed", "changes.committed"];

struct Case {
    daemon: Daemon,
    hooks: PathBuf,
    project: PathBuf,
}

fn case() -> Case {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let project = daemon.root().join("project");
    fs::create_dir(&project).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(project.join(name), "old").unwrap();
    }
    Case { daemon, hooks, project }
}

impl Case {
    fn exec(&self) -> Value {
        let script = "for f in a b d; do printf new > $f; done; unlink c";
        json!({ "argv": ["sh", "-c", script], "cwd": self.project, "stage": true, "request_id": "r" })
    }

    fn ready(&self, proc: &str) {
        self.daemon.eventually("the stage is ready", || self.daemon.process(proc)["stage"]["state"] == "ready");
    }

    /// Calls a method, kills the daemon at the point, and starts it again.
    fn crash(&mut self, point: &str, method: &str, params: Value) {
        fs::write(self.hooks.join(point), "").unwrap();
        let mut conn = self.daemon.conn();
        conn.request(method, params);
        let hit = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || hit.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
        self.daemon.spawn();
    }

    fn announced(&self) -> usize {
        let all = json!({ "consumer": "t", "from": "oldest", "limit": 100, "types": ["stage_ready"], "wait_ms": 5000 });
        self.daemon.ok("events.next", all)["events"].as_array().unwrap().len()
    }
}

/// Returns true for all new, false for all old, and fails for a mix.
fn is_new(project: &Path, case: &str) -> bool {
    let texts: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| fs::read_to_string(project.join(name)).ok()).collect();
    let of = |all: [Option<&str>; 4]| all.map(|text| text.map(str::to_owned)).to_vec();
    if texts == of([Some("new"), Some("new"), None, Some("new")]) {
        return true;
    }
    assert_eq!(texts, of([Some("old"), Some("old"), Some("old"), None]), "{case}");
    false
}

fn entries(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_commit_is_whole_or_nothing_after_a_crash_at_any_step() {
    for point in POINTS[2..].iter().chain(&JOURNAL_POINTS) {
        let mut case = case();
        let proc = id(&case.daemon.ok("exec", case.exec()));
        case.ready(&proc);
        let digest = case.daemon.ok("stage.diff", json!({ "id": proc }))["digest"].clone();
        case.crash(point, "stage.commit", json!({ "id": proc, "digest": digest }));
        let state = || case.daemon.process(&proc)["stage"]["state"].clone();
        if is_new(&case.project, point) {
            case.daemon.eventually(&format!("{point}: it is committed"), || state() == "committed");
        } else {
            assert_eq!(state(), "ready", "{point}");
            case.daemon.ok("stage.commit", json!({ "id": proc, "digest": digest }));
            assert!(is_new(&case.project, point), "{point}");
        }
        let left = entries(&case.project);
        assert_eq!(left.len(), 3, "{point}: {left:?}");
        let stage = case.daemon.state().join("procs").join(&proc).join("stage");
        case.daemon.eventually(&format!("{point}: the layers are gone"), || !stage.join("0").exists());
        assert_eq!(case.announced(), 1, "{point}");
        fs::remove_dir_all(&case.hooks).unwrap();
    }
}

#[test]
fn a_discard_is_whole_after_a_crash_and_changes_nothing() {
    let mut case = case();
    let proc = id(&case.daemon.ok("exec", case.exec()));
    case.ready(&proc);
    case.crash("stage.ended", "stage.discard", json!({ "id": proc }));
    assert_eq!(case.daemon.process(&proc)["stage"]["state"], "discarded");
    assert!(!is_new(&case.project, "discard"));
    let stage = case.daemon.state().join("procs").join(&proc).join("stage");
    case.daemon.eventually("the layers are gone", || !stage.join("0").exists());
    fs::remove_dir_all(&case.hooks).unwrap();
}

#[test]
fn a_start_that_a_crash_ends_leaves_no_stage_and_an_end_is_announced_once() {
    let mut case = case();
    let call = case.exec();
    case.crash("stage.given", "exec", call.clone());
    assert!(!is_new(&case.project, "start"));
    assert_eq!(entries(&case.daemon.state().join("stages")), Vec::<String>::new());
    // The same request again: the first one never ran.
    let proc = id(&case.daemon.ok("exec", call));
    case.ready(&proc);
    assert_eq!(case.announced(), 1);
    fs::remove_dir_all(&case.hooks).unwrap();

    let mut case = self::case();
    let call = case.exec();
    case.crash("stage.noted", "exec", call.clone());
    let proc = id(&case.daemon.ok("exec", call));
    case.ready(&proc);
    assert_eq!(case.announced(), 1);
    assert_eq!(case.daemon.ok("stage.diff", json!({ "id": proc }))["total"], 4);
    fs::remove_dir_all(&case.hooks).unwrap();
}
