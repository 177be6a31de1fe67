//! kill -9 of the daemon and the sandbox: refusals and events are complete, nothing is left of a check or of a private `/tmp`.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 2] = ["session.tmp_aside", "probe.made"];

struct Case {
    daemon: Daemon,
    hooks: PathBuf,
    /// Not in `/tmp`, which a job has for itself.
    outside: tempfile::TempDir,
}

fn case() -> Case {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    fs::create_dir_all(daemon.home().join("work/.git")).unwrap();
    let outside = tempfile::Builder::new().prefix("toold-crash-").tempdir_in("/var/tmp").unwrap();
    Case { daemon, hooks, outside }
}

impl Case {
    fn exec(&self, script: &str) -> Value {
        let (cwd, argv) = (self.daemon.home().join("work"), json!(["/bin/sh", "-c", script]));
        self.daemon.ok("exec", json!({ "argv": argv, "cwd": cwd, "sandbox": "workspace-write", "session_key": "s" }))
    }

    fn crash(&mut self, point: &str, method: &str, params: Value) {
        fs::write(self.hooks.join(point), "").unwrap();
        let mut conn = self.daemon.conn();
        conn.request(method, params);
        let hit = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || hit.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let call = json!({ "consumer": kind, "from": "oldest", "types": [kind], "limit": 100 });
        self.daemon.ok("events.next", call)["events"].as_array().unwrap().clone()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}

/// Refused while no daemon runs, before and after a crash: each is listed with its count, and published once.
#[test]
fn refusals_survive_the_daemon_and_are_published_once() {
    let mut case = case();
    let (out, work) = (case.outside.path().display().to_string(), case.daemon.home().join("work"));
    let wait = |gate: &str| format!("while ! [ -e {gate} ]; do sleep 0.02; done");
    let script = format!(
        "echo x > {out}/first; {}; for n in 1 2; do echo x > {out}/second; done; echo x > .envrc; {}; echo x > {out}/third; exit 7",
        wait("go"),
        wait("on")
    );
    let process = id(&case.exec(&script));
    case.daemon.eventually("the first is published", || case.events("denial").len() == 1);
    case.daemon.kill9();
    fs::write(work.join("go"), "").unwrap();
    let made = work.join(".envrc");
    case.daemon.eventually("it goes on without a daemon", || made.exists());
    case.daemon.spawn();
    case.daemon.eventually("the second is published", || {
        !case.daemon.process(&process)["sandbox"]["denials"]["list"][1].is_null()
    });
    case.daemon.kill9();
    fs::write(work.join("on"), "").unwrap();
    case.daemon.spawn();
    let ended = case.daemon.closed(&process);
    for _ in 0..2 {
        let denials = &case.daemon.process(&process)["sandbox"]["denials"];
        let list: Vec<(&str, i64)> = denials["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| (call["path"].as_str().unwrap().rsplit('/').next().unwrap(), call["count"].as_i64().unwrap()))
            .collect();
        assert_eq!(list, [("first", 1), ("second", 2), ("third", 1)], "{ended}");
        assert_eq!((&denials["count"], &ended["exit_code"]), (&json!(4), &json!(7)), "{denials}");
        case.daemon.restart();
    }
    let all = |kind: &str| {
        let call = json!({ "consumer": format!("all-{kind}"), "from": "oldest", "types": [kind], "limit": 100 });
        case.daemon.ok("events.next", call)["events"].as_array().unwrap().clone()
    };
    let paths: Vec<Value> = all("denial").iter().map(|event| event["path"].clone()).collect();
    let expected = ["first", "second", "third"].map(|name| json!(case.outside.path().join(name)));
    assert_eq!(paths, expected);
    let created: Vec<Value> = all("protected_created").iter().map(|event| event["path"].clone()).collect();
    assert_eq!(created, [json!(made)]);
}

/// The private `/tmp` is taken from its name at once: a crash leaves it to the next daemon, and never to the next session.
#[test]
fn a_private_tmp_that_was_taken_away_is_removed_after_a_crash() {
    let mut case = case();
    let process = id(&case.exec("echo old > /tmp/file"));
    case.daemon.closed(&process);
    case.crash(POINTS[0], "session.end", json!({ "session_key": "s" }));
    let tmp = case.daemon.state().join("tmp");
    assert_eq!(count(&tmp), 1, "it is there, by another name");
    case.daemon.spawn();
    let looks = id(&case.exec("cat /tmp/file 2> /dev/null || echo fresh"));
    case.daemon.closed(&looks);
    assert_eq!(case.daemon.text(&looks), "fresh\n");
    case.daemon.eventually("the rest is removed", || count(&tmp) == 1);
    let names: Vec<_> = fs::read_dir(&tmp).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!names[0].to_string_lossy().starts_with("removed"), "{names:?}");
}

#[test]
fn nothing_is_left_of_a_check_that_a_crash_ended() {
    let mut case = case();
    case.crash(POINTS[1], "sandbox.probe", json!({}));
    let dir = case.daemon.state().join("probe");
    assert_eq!(count(&dir), 1);
    case.daemon.spawn();
    case.daemon.eventually("the rest is removed", || count(&dir) == 0);
    assert_eq!(case.daemon.ok("sandbox.probe", json!({}))["gaps"], json!([]));
    assert_eq!(case.daemon.ids(json!({})), Vec::<String>::new());
}
