//! Retention while the wall clock jumps: what the jump makes old is not forgotten, and what is old expires. The broken code
//! counted ages by the wall clock: eight days ahead, it forgot records, consumers and events at once.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use toold_test_support::rig::{Daemon, id};

const DAY_MS: i64 = 86_400_000;

/// A daemon whose wall clock a test can set.
fn start(config: &str) -> Daemon {
    let mut d = Daemon::prepare(config, &[("TOOLD_HOOKS", "hooks")]);
    fs::create_dir(d.root().join("hooks")).unwrap();
    d.spawn();
    d
}

fn shift(d: &Daemon, ms: i64) {
    fs::write(d.root().join("hooks/wall_offset_ms"), ms.to_string()).unwrap();
}

fn consumers(d: &Daemon) -> Value {
    let info = d.ok("daemon.info", json!({}));
    info["events"]["consumers"].as_array().unwrap().iter().map(|consumer| consumer["name"].clone()).collect()
}

/// Runs a process. When retention has removed the oldest one by count, it has looked at all ages too.
fn check_nothing_is_forgotten(d: &Daemon, kept: &mut Vec<String>, what: &str) {
    let oldest = kept.remove(0);
    kept.push(id(&d.run("echo new")));
    d.eventually("the oldest is gone", || !d.ids(json!({})).contains(&oldest));
    let sorted = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!(sorted(&d.ids(json!({}))), sorted(kept), "{what}");
    assert_eq!(consumers(d), json!(["c"]), "{what}");
    let next = d.ok("events.next", json!({ "consumer": "c", "limit": 1 }));
    assert_eq!((&next["events"][0]["seq"], &next["forgotten"]), (&json!(1), &Value::Null), "{what}: {next}");
}

#[test]
fn a_jump_of_the_wall_clock_forgets_nothing_at_once() {
    let mut d = start("[retention]\nmax_count = 3\n");
    d.ok("events.next", json!({ "consumer": "c" }));
    let mut kept: Vec<String> = (0..3).map(|_| id(&d.run("echo old"))).collect();
    for (ms, what) in [(8 * DAY_MS, "ahead"), (-365 * DAY_MS, "back"), (400 * DAY_MS, "ahead again"), (0, "right")] {
        shift(&d, ms);
        check_nothing_is_forgotten(&d, &mut kept, &format!("{what}, in a running daemon"));
        d.restart();
        check_nothing_is_forgotten(&d, &mut kept, &format!("{what}, in the next daemon"));
    }
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
}

#[test]
fn without_the_file_of_the_clock_a_jump_forgets_nothing_at_once_either() {
    let mut d = start("[retention]\nmax_count = 3\n");
    d.ok("events.next", json!({ "consumer": "c" }));
    let mut kept: Vec<String> = (0..3).map(|_| id(&d.run("echo old"))).collect();
    let file = d.state().join("retention_clock");
    d.kill9();
    // As an earlier version left it.
    fs::remove_file(&file).unwrap();
    shift(&d, 8 * DAY_MS);
    d.spawn();
    check_nothing_is_forgotten(&d, &mut kept, "the file is gone");
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
    d.kill9();
    fs::write(&file, "garbage").unwrap();
    shift(&d, 400 * DAY_MS);
    d.spawn();
    check_nothing_is_forgotten(&d, &mut kept, "the file is damaged");
    let damaged = d.ok("daemon.info", json!({}))["damaged"].to_string();
    assert!(damaged.contains("retention_clock"), "{damaged}");
    d.restart();
    check_nothing_is_forgotten(&d, &mut kept, "the file was written again");
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
}

/// The broken code kept records and consumers until the wall clock had reached their time again.
#[test]
fn what_is_old_expires_also_after_the_wall_clock_went_back() {
    let mut d = start("[retention]\nmax_age_ms = 1000\n[events]\nconsumer_ttl_ms = 1000\n");
    d.ok("events.next", json!({ "consumer": "c" }));
    d.run("echo old");
    shift(&d, -365 * DAY_MS);
    d.eventually("the record expires", || d.ids(json!({})).is_empty());
    d.eventually("the consumer expires", || consumers(&d) == json!([]));
    d.restart();
    d.run("echo old");
    d.ok("events.next", json!({ "consumer": "c2" }));
    d.eventually("a record of the next daemon expires", || d.ids(json!({})).is_empty());
    d.eventually("a consumer of the next daemon expires", || consumers(&d) == json!([]));
}
