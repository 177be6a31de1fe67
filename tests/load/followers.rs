//! A hundred followers on one process that writes as fast as it can.

use crate::footprint::{Baseline, nothing_runs};
use crate::scaled;
use serde_json::json;
use std::hash::{DefaultHasher, Hasher};
use toold_test_support::rig::Daemon;

const FOLLOWERS: usize = 100;
/// Bytes that each of them reads. A debug build is slow, a hundred times.
const BYTES: usize = 4 << 20;
/// Length of a line of the flood with its newline: a number with leading zeros.
const LINE_LEN: usize = 16;

#[test]
fn a_hundred_followers_of_a_flood_each_get_every_byte() {
    let daemon = Daemon::start();
    let rest = Baseline::measure(&daemon);
    let lines = scaled(BYTES) / LINE_LEN;
    println!("{} bytes to {FOLLOWERS} followers", lines * LINE_LEN);
    let gate = daemon.gate("gate");
    let flood = daemon.sh(&format!("{}; seq -f %015.0f 1 {lines}", gate.wait()));
    let mut expected = DefaultHasher::new();
    for n in 1..=lines {
        expected.write(format!("{n:015}\n").as_bytes());
    }
    let expected = (expected.finish(), (lines * LINE_LEN) as u64);
    std::thread::scope(|scope| {
        let followers: Vec<_> = (0..FOLLOWERS).map(|_| scope.spawn(|| follow(&daemon, &flood))).collect();
        gate.open();
        for (n, follower) in followers.into_iter().enumerate() {
            assert_eq!(follower.join().unwrap(), expected, "follower {n}");
        }
    });
    nothing_runs(&daemon);
    rest.wait_restored(&daemon);
}

/// Reads to the end of the output, always waiting for more. Returns the hash and the number of bytes.
fn follow(daemon: &Daemon, process: &str) -> (u64, u64) {
    let (mut conn, mut cursor, mut hash) = (daemon.conn(), 0, DefaultHasher::new());
    loop {
        let params =
            json!({ "id": process, "cursor": cursor, "wait_ms": 30_000, "max_bytes": 1 << 20, "ansi": "keep" });
        let page = conn.call("poll", params).unwrap();
        assert_eq!(page["gap"], json!(null), "{}", page["gap"]);
        let output = page["output"].as_str().unwrap();
        hash.write(output.as_bytes());
        cursor = page["next_cursor"].as_u64().unwrap();
        if output.is_empty() && page["closed"] == json!(true) {
            return (hash.finish(), cursor);
        }
    }
}
