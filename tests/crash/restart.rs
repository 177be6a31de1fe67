//! A restart, and a daemon that is killed around it: one run at any time, nothing forgotten, nothing started twice.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 4] = ["restart.checked", "restart.replacing", "restart.kept", "restart.killed"];

/// The origin of the values of the new run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Values {
    /// The daemon builds them.
    None,
    /// The shim of the old run has them.
    Kept,
    /// The call has them.
    Given,
}

#[test]
fn a_crash_at_any_step_of_a_restart_neither_forgets_nor_doubles_the_new_run() {
    for values in [Values::None, Values::Kept, Values::Given] {
        std::thread::scope(|scope| {
            for point in POINTS {
                for again in [false, true] {
                    scope.spawn(move || crash_at(point, values, again));
                }
            }
        });
    }
}

fn crash_at(point: &str, values: Values, again: bool) {
    let case = format!("{point}, {values:?}, killed again: {again}");
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let lock = daemon.root().join("lock");
    // Two at once would fail: the lock is held for as long as the program runs.
    let script = format!(
        "exec 9> {}; flock -n 9 || echo both >> {1}; echo ${{MARK-none}} >> {1}; exec sleep 1000",
        lock.display(),
        marker.display()
    );
    let mut exec = json!({ "argv": ["/bin/sh", "-c", script], "name": "web" });
    if values != Values::None {
        exec["env"] = json!({ "MARK": "first" });
    }
    let old = id(&daemon.ok("exec", exec));
    let ran = || fs::read_to_string(&marker).unwrap_or_default();
    daemon.eventually("it runs", || ran().lines().count() == 1);

    fs::write(hooks.join(point), "").unwrap();
    let mut call = json!({ "id": "web" });
    if values == Values::Given {
        // More than one frame carries.
        call["env"] = json!({ "MARK": "second", "PATH": "/usr/bin:/bin", "LONG": "x".repeat(40_000) });
    }
    daemon.conn().request("restart", call.clone());
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{case}: it is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(&hit).unwrap();
    if again && point == "restart.killed" {
        daemon.spawn();
        daemon.eventually(&format!("{case}: the next daemon comes to it too"), || hit.exists());
        daemon.kill9();
    }
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    let first = if values == Values::None { "none\n" } else { "first\n" };
    let second = if values == Values::Given { "second\n" } else { first };
    // The values of the call are in the old shim from `restart.kept` on.
    let is_lost = point == "restart.replacing" && values == Values::Given;
    let newest = || daemon.ok("list", json!({}))["processes"][0].clone();
    if point == "restart.checked" || is_lost {
        if is_lost {
            daemon.eventually(&format!("{case}: it has the reason"), || newest()["reason"] == "failed_start");
            let failed = newest();
            assert_eq!((&failed["failure"]["error"], &failed["restart_of"]), (&json!("environment lost"), &json!(old)));
        }
        assert_eq!(ran(), first, "{case}: nothing was started");
        assert_eq!(daemon.process(&old)["status"], "running", "{case}: the old run was not touched");
        daemon.ok("restart", call);
    }
    daemon.eventually(&format!("{case}: the new run is there"), || ran().lines().count() == 2);
    assert_eq!(ran(), format!("{first}{second}"), "{case}");
    let new: Value = newest();
    assert_eq!((&new["restart_of"], &new["name"]), (&json!(old), &json!("web")), "{case}");
    daemon.eventually(&format!("{case}: it runs"), || daemon.ids(json!({ "status": "running" })) == [id(&new)]);
    assert_eq!(daemon.process(&old)["reason"], "killed", "{case}");
    // Nothing is kept for it any more, and nothing starts it again.
    daemon.eventually(&format!("{case}: the old shim is gone"), || {
        daemon.ok("forget", json!({ "older_than_ms": 0 }));
        daemon.ids(json!({})) == [id(&new)]
    });
    daemon.kill9();
    daemon.spawn();
    assert_eq!(daemon.ids(json!({ "status": "running" })), [id(&new)], "{case}");
    assert_eq!(ran(), format!("{first}{second}"), "{case}: once");
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{case}");
    fs::remove_dir_all(&hooks).unwrap();
}

pub const POLICY_POINTS: [&str; 4] = ["restart.due", "restart.recorded", "restart.started", "restart.gave_up"];

/// A program that fails at its first runs, then stays. The daemon is killed at a step of its restarts.
#[test]
fn a_policy_neither_doubles_nor_forgets_a_run_when_the_daemon_is_killed_at_any_step() {
    std::thread::scope(|scope| {
        for point in POLICY_POINTS {
            for again in [false, true] {
                scope.spawn(move || policy_crash_at(point, again));
            }
        }
    });
}

fn policy_crash_at(point: &str, again: bool) {
    let case = format!("{point}, killed again: {again}");
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let runs = || fs::read_to_string(&marker).unwrap_or_default().lines().count();
    let fails = if point == "restart.gave_up" { 9 } else { 2 };
    let script =
        format!("echo $MARK >> {0}; [ $(wc -l < {0}) -gt {fails} ] && exec sleep 1000; exit 1", marker.display());
    let policy = json!({ "policy": "on-failure", "max": 2, "backoff_ms": 1 });
    fs::write(hooks.join(point), "").unwrap();
    let exec =
        json!({ "argv": ["/bin/sh", "-c", script], "name": "web", "restart": policy, "env": { "MARK": "kept" } });
    // The answer is not waited for: restarts that wait at the hook may have every place for the disk before it goes out.
    let mut conn = daemon.conn();
    conn.request("exec", exec);
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{case}: it is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(&hit).unwrap();
    if again {
        // The next daemon comes to the same point, or has nothing to do there any more.
        // It may not become ready before that: restarts that wait at the hook can have every place for the disk.
        let mut next = daemon.command().spawn().unwrap();
        let arrived = || hit.exists() || runs() == 3 || point == "restart.gave_up";
        daemon.eventually(&format!("{case}: the next daemon goes on"), arrived);
        next.kill().unwrap();
        next.wait().unwrap();
    }
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    let gave_up = || {
        let call = json!({ "consumer": "c", "types": ["restart_gave_up"], "limit": 100 });
        daemon.ok("events.next", call)["events"].as_array().unwrap().len()
    };
    if point == "restart.gave_up" {
        daemon.eventually(&format!("{case}: it gave up"), || gave_up() == 1);
    } else {
        daemon.eventually(&format!("{case}: the third run stays"), || {
            runs() == 3 && daemon.ids(json!({ "status": "running" })).len() == 1
        });
        assert_eq!(gave_up(), 0, "{case}");
    }
    assert_eq!(fs::read_to_string(&marker).unwrap(), "kept\n".repeat(3), "{case}");
    let mut all = daemon.ok("list", json!({}))["processes"].as_array().unwrap().clone();
    all.reverse();
    assert_eq!(all.len(), 3, "{case}: {all:?}");
    for pair in all.windows(2) {
        assert_eq!(pair[1]["restart_of"], pair[0]["id"], "{case}");
    }
    // The shims of ended runs are gone.
    daemon.eventually(&format!("{case}: no shim is left over"), || {
        daemon.ok("forget", json!({ "older_than_ms": 0 }));
        daemon.ids(json!({})).len() == usize::from(point != "restart.gave_up")
    });
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{case}");
    fs::remove_dir_all(&hooks).unwrap();
}
