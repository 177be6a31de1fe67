//! A restart, and a daemon that is killed around it: never two runs at once, and the same call again completes it.

use crate::case_run::tempfile_name;
use serde_json::json;
use std::fs;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 2] = ["restart.checked", "restart.killed"];

#[test]
fn a_crash_at_any_step_of_a_restart_leaves_one_run_or_none_and_the_call_can_be_repeated() {
    std::thread::scope(|scope| POINTS.iter().for_each(|point| drop(scope.spawn(move || crash_at(point)))));
}

fn crash_at(point: &str) {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; exec sleep 1000", marker.display());
    let old = id(&daemon.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "name": "web" })));
    daemon.eventually("it runs", || marker.exists());

    fs::write(hooks.join(point), "").unwrap();
    let mut conn = daemon.conn();
    conn.request("restart", json!({ "id": "web" }));
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{point} is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    let runs = || fs::read_to_string(&marker).unwrap().lines().count();
    assert_eq!(runs(), 1, "{point}: nothing was started");
    let status = daemon.process(&old)["status"].clone();
    assert_eq!(status, if point == "restart.checked" { "running" } else { "exited" }, "{point}");
    let new = daemon.ok("restart", json!({ "id": "web" }));
    assert_eq!(new["restart_of"], json!(old), "{point}");
    daemon.eventually("the new one runs", || runs() == 2);
    assert_eq!(daemon.ids(json!({ "status": "running" })), [id(&new)], "{point}");
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
    daemon.ok("exec", exec);
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{case}: it is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(&hit).unwrap();
    if again {
        // The next daemon comes to the same point, or has nothing to do there any more.
        daemon.spawn();
        let arrived =
            || hit.exists() || daemon.ids(json!({ "status": "running" })).len() == 1 || point == "restart.gave_up";
        daemon.eventually(&format!("{case}: the next daemon goes on"), arrived);
        daemon.kill9();
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
