//! `forget` and retention: finished records are removed with their logs, running ones never.

use serde_json::json;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

fn directory(d: &Daemon, proc: &str) -> PathBuf {
    d.ok("inspect", json!({ "id": proc }))["state_path"].as_str().unwrap().into()
}

#[test]
fn a_forgotten_process_is_removed_with_its_files_and_does_not_return() {
    let mut d = Daemon::start();
    let (one, two) = (id(&d.run("echo one")), id(&d.run("echo two")));
    let dir = directory(&d, &one);
    assert_eq!(d.ok("forget", json!({ "ids": [one] })), json!({ "forgotten": [one], "skipped": [] }));
    d.refused(-32001, "not_found", "poll", json!({ "id": one }));
    assert!(!dir.exists(), "{} is left", dir.display());
    d.restart();
    assert_eq!(d.ids(json!({})), vec![two.clone()]);
    assert_eq!(d.text(&two), "two\n");
}

#[test]
fn forget_skips_running_processes_and_those_with_running_orphans() {
    let d = Daemon::start();
    let runs = d.sh("exec sleep 1000");
    let ended = id(&d.run("exit 0"));
    let answer = d.ok("forget", json!({ "ids": [runs, ended] }));
    assert_eq!(answer, json!({ "forgotten": [ended], "skipped": [runs] }));
    assert_eq!(d.process(&runs)["status"], "running");
    let left = d.sh("sleep 1000 & exit 0");
    d.exited(&left);
    d.ok("forget", json!({ "ids": [left] }));
    // Forgotten or skipped: a process that no call can kill must not remain.
    assert!(d.call("kill", json!({ "id": left })).is_ok(), "an orphan without a record");
}

#[test]
fn failed_and_all_remove_only_what_has_ended() {
    let d = Daemon::start();
    let (runs, bad, well) = (d.sh("exec sleep 1000"), id(&d.run("exit 3")), id(&d.run("exit 0")));
    d.refused_param("ids", "forget", json!({ "ids": [bad], "failed": true }));
    d.refused_param("ids", "forget", json!({}));
    assert_eq!(d.ok("forget", json!({ "failed": true, "older_than_ms": 3_600_000 }))["forgotten"], json!([]));
    assert_eq!(d.ctl(&["forget", "--failed"]).stdout, "removed 1 process\n");
    assert_eq!(d.ids(json!({})), [well.as_str(), runs.as_str()]);
    assert_eq!(d.ctl(&["forget", "--all", "--failed"]).code, 2);
    assert_eq!(d.ctl(&["forget", "--all"]).stdout, "removed 1 process\n");
    assert_eq!(d.ids(json!({})), [runs.as_str()]);
    assert_eq!(d.ctl(&["forget"]).code, 2);
}

#[test]
fn older_than_removes_everything_older() {
    let d = Daemon::start();
    let runs = d.sh("exec sleep 1000");
    let ended = id(&d.run("exit 0"));
    assert_eq!(d.ok("forget", json!({ "older_than_ms": 3_600_000 }))["forgotten"], json!([]));
    let answer = d.ok("forget", json!({ "older_than_ms": 0 }));
    assert_eq!(answer["forgotten"], json!([ended]));
    assert_eq!(d.ids(json!({})), vec![runs]);
}

#[test]
fn forget_takes_either_ids_or_older_than() {
    let d = Daemon::start();
    let ended = id(&d.run("exit 0"));
    d.refused(-32602, "invalid_params", "forget", json!({}));
    d.refused(-32602, "invalid_params", "forget", json!({ "ids": [ended], "older_than_ms": 0 }));
    d.refused(-32001, "not_found", "forget", json!({ "ids": ["proc_000000000000"] }));
    assert_eq!(d.ids(json!({})), vec![ended]);
}

#[test]
fn a_forgotten_request_id_may_start_again() {
    let d = Daemon::start();
    let ask = json!({ "argv": ["/bin/true"], "request_id": "r", "yield_ms": 30000 });
    let first = id(&d.ok("exec", ask.clone()));
    d.closed(&first);
    assert_eq!(d.ok("forget", json!({ "ids": [first] }))["forgotten"], json!([first]));
    assert_ne!(id(&d.ok("exec", ask)), first);
}

#[test]
fn retention_by_count_keeps_the_newest_and_all_running_ones() {
    let d = Daemon::start_with("[retention]\nmax_count = 3\n", &[]);
    let runs = d.sh("exec sleep 1000");
    let ended: Vec<String> = (0..7).map(|n| id(&d.run(&format!("echo {n}")))).collect();
    d.eventually("three finished ones are left", || d.ids(json!({ "status": "exited" })).len() == 3);
    let newest: Vec<String> = ended[4..].iter().rev().cloned().collect();
    assert_eq!(d.ids(json!({ "status": "exited" })), newest);
    assert_eq!(d.process(&runs)["status"], "running");
}

#[test]
fn retention_by_age_counts_from_the_exit() {
    let d = Daemon::start_with("[retention]\nmax_age_ms = 300\n", &[]);
    let runs = d.sh("exec sleep 1000");
    let ended = id(&d.run("echo old"));
    let dir = d.state().join("procs").join(&ended);
    d.eventually("the old one is gone", || d.ids(json!({})) == vec![runs.clone()]);
    d.eventually("and its files", || !dir.exists());
}

#[test]
fn retention_by_bytes_drops_the_oldest_first() {
    let d = Daemon::start_with("[retention]\nmax_bytes = 300000\n", &[]);
    let ended: Vec<String> = (0..5).map(|_| id(&d.run("head -c 100000 /dev/zero | tr '\\0' x"))).collect();
    d.eventually("what is left fits", || d.ids(json!({})).len() <= 3);
    let left = d.ids(json!({}));
    assert_eq!(left[0], ended[4], "the newest is kept");
    assert!(left.iter().all(|p| ended[2..].contains(p)), "an older one was kept and a newer one removed: {left:?}");
}

#[test]
fn retention_applies_at_the_start_too() {
    let mut d = Daemon::start();
    let ended: Vec<String> = (0..5).map(|_| id(&d.run("exit 0"))).collect();
    d.kill9();
    std::fs::write(d.root().join("config/toold/config.toml"), "[retention]\nmax_count = 2\n").unwrap();
    d.spawn();
    d.eventually("two are left", || d.ids(json!({})).len() == 2);
    assert_eq!(d.ids(json!({})), vec![ended[4].clone(), ended[3].clone()]);
}
