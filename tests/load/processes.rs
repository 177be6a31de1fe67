//! A thousand processes at once, and ten thousand in a row.

use crate::footprint::{Baseline, nothing_runs};
use crate::scaled;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

const AT_ONCE: usize = 1000;
const IN_A_ROW: usize = 10_000;
/// Requests in flight at once: below `max_requests_in_flight`.
const IN_FLIGHT: usize = 100;
/// `retention.max_count` in these tests, so that records do not pile up.
const KEPT: usize = 200;

#[test]
fn a_thousand_processes_survive_a_restart_and_can_be_killed() {
    let mut daemon = Daemon::start();
    let rest = Baseline::measure(&daemon);
    let mut ids = BTreeSet::new();
    let mut conn = daemon.conn();
    for _ in 0..AT_ONCE / IN_FLIGHT {
        let calls: Vec<u64> =
            (0..IN_FLIGHT).map(|_| conn.request("exec", json!({ "argv": ["sleep", "1000"] }))).collect();
        ids.extend(calls.into_iter().map(|call| id(&conn.answer(call).unwrap())));
    }
    assert_eq!(ids.len(), AT_ONCE);
    assert_eq!(conn.call("daemon.info", json!({})).unwrap()["counts"]["running"], AT_ONCE);
    daemon.restart();
    let mut conn = daemon.conn();
    assert_eq!(conn.call("daemon.info", json!({})).unwrap()["counts"]["running"], AT_ONCE);
    let killed = conn.call("kill", json!({ "all": true })).unwrap();
    assert_eq!(killed["status"], "killed");
    let results = killed["results"].as_array().unwrap();
    let by_term = results.iter().filter(|r| r["signal"] == "SIGTERM" && r["reason"] == "killed");
    assert_eq!((results.len(), by_term.count()), (AT_ONCE, AT_ONCE));
    drop(conn);
    nothing_runs(&daemon);
    rest.wait_restored(&daemon);
}

/// Reads every event from the oldest on, acknowledging each batch. Returns the last number; there is no gap before it.
fn read_all(conn: &mut Conn, consumer: &str) -> u64 {
    let mut last = 0;
    loop {
        let next = conn.call("events.next", json!({ "consumer": consumer, "limit": 1000, "wait_ms": 1000 })).unwrap();
        let events = next["events"].as_array().unwrap();
        if events.is_empty() {
            return last;
        }
        for event in events {
            last += 1;
            assert_eq!(event["seq"], last, "{event}");
        }
        conn.call("events.ack", json!({ "consumer": consumer, "seq": last })).unwrap();
    }
}

#[test]
fn ten_thousand_short_processes_in_a_row_all_publish_their_exit_and_leave_nothing() {
    let daemon = Daemon::start_with(&format!("[retention]\nmax_count = {KEPT}\n"), &[]);
    let rest = Baseline::measure(&daemon);
    let count = scaled(IN_A_ROW);
    println!("{count} processes");
    let mut conn = daemon.conn();
    let before = conn.call("daemon.info", json!({})).unwrap()["events"]["last"].as_u64().unwrap();
    for n in 0..count {
        let ended = conn.call("exec", json!({ "argv": ["/bin/true"], "yield_ms": 60_000 })).unwrap();
        assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("exited"), &json!(0)), "process {n}: {ended}");
    }
    let last = read_all(&mut conn, "behind");
    assert_eq!(last - before, 3 * count as u64, "each was started, exited and closed");
    drop(conn);
    nothing_runs(&daemon);
    let records = || fs::read_dir(daemon.state().join("procs")).unwrap().count();
    daemon.eventually("retention has forgotten all but the newest", || records() == KEPT);
    rest.wait_restored(&daemon);
}
