//! A hundred followers on one process that writes as fast as it can.

use crate::footprint::{Rest, nothing_runs};
use crate::scaled;
use serde_json::json;
use std::hash::{DefaultHasher, Hasher};
use toold_test_support::rig::Daemon;

const FOLLOWERS: usize = 100;
/// What each of them reads. In a debug build every byte costs, a hundred times.
const BYTES: usize = 4 << 20;
/// A line of the flood, its end included: a number with zeros before it.
const LINE: usize = 16;

#[test]
fn a_hundred_followers_of_a_flood_each_get_every_byte() {
    let daemon = Daemon::start();
    let rest = Rest::of(&daemon);
    let lines = scaled(BYTES) / LINE;
    println!("{} bytes to {FOLLOWERS} followers", lines * LINE);
    let gate = daemon.gate("gate");
    let flood = daemon.sh(&format!("{}; seq -f %015.0f 1 {lines}", gate.wait()));
    let mut expected = DefaultHasher::new();
    for n in 1..=lines {
        expected.write(format!("{n:015}\n").as_bytes());
    }
    let expected = (expected.finish(), (lines * LINE) as u64);
    std::thread::scope(|scope| {
        let followers: Vec<_> = (0..FOLLOWERS).map(|_| scope.spawn(|| follow(&daemon, &flood))).collect();
        gate.open();
        for (n, follower) in followers.into_iter().enumerate() {
            assert_eq!(follower.join().unwrap(), expected, "follower {n}");
        }
    });
    nothing_runs(&daemon);
    rest.again(&daemon);
}

/// Reads to the end of the output, always waiting for more. The hash and the number of bytes.
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
