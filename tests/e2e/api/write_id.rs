//! `write_id`: the window of remembered writes, over a crash of the daemon and the exit.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// The number of remembered ids that the documentation promises.
const REMEMBERED: u64 = 4096;
/// The writes that are sent before their answers are read.
const WINDOW: u64 = 200;

fn ask(proc: &str, n: u64) -> Value {
    json!({ "id": proc, "data": format!("{n}"), "write_id": format!("write {n}") })
}

/// Submits numbered lines, each with a write_id of its own, and returns how many were duplicates.
fn submit(conn: &mut Conn, proc: &str, range: std::ops::Range<u64>) -> u64 {
    let (mut duplicates, mut next) = (0, range.start);
    while next < range.end {
        let end = range.end.min(next + WINDOW);
        let sent: Vec<u64> = (next..end).map(|n| conn.request("submit", ask(proc, n))).collect();
        for request in sent {
            let answer = conn.answer(request).unwrap();
            assert_eq!((&answer["complete"], &answer["remembered_write_ids"]), (&json!(true), &json!(REMEMBERED)));
            duplicates += u64::from(answer["duplicate"] == true);
        }
        next = end;
    }
    duplicates
}

/// The broken code remembered 128 writes, and 64 after the exit: an older one was written a second time.
#[test]
fn the_last_4096_write_ids_are_remembered_over_a_crash_and_after_the_exit() {
    let mut d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    assert_eq!(submit(&mut d.conn(), &proc, 0..REMEMBERED), 0);
    assert_eq!(submit(&mut d.conn(), &proc, 0..REMEMBERED), REMEMBERED, "every one is remembered");
    d.restart();
    assert_eq!(submit(&mut d.conn(), &proc, 0..REMEMBERED), REMEMBERED, "also by the next daemon");
    // The oldest makes room.
    assert_eq!(submit(&mut d.conn(), &proc, REMEMBERED..REMEMBERED + 1), 0);
    assert_eq!(submit(&mut d.conn(), &proc, 1..REMEMBERED + 1), REMEMBERED);
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    // Calls on one connection run concurrently, so the lines are in any order.
    let mut lines: Vec<u64> = d.text(&proc).lines().map(|line| line.parse().unwrap()).collect();
    lines.sort_unstable();
    assert!(lines.into_iter().eq(0..=REMEMBERED), "a line was written twice or not at all");
    for _ in 0..2 {
        assert_eq!(submit(&mut d.conn(), &proc, 1..REMEMBERED + 1), REMEMBERED, "also after the exit");
        let error = d.refused(-32002, "already_exited", "submit", ask(&proc, 0));
        assert_eq!(error["data"]["remembered_write_ids"], REMEMBERED, "{error}");
        assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
        d.restart();
    }
}

#[test]
fn damaged_write_ids_are_reported_and_the_newest_are_left() {
    let mut d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    // One after the other: calls on one connection run concurrently, and the order reports which ids are the newest.
    let mut conn = d.conn();
    (0..100).for_each(|n| assert_eq!(submit(&mut conn, &proc, n..n + 1), 0));
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    d.kill9();
    let file = d.state().join("procs").join(&proc).join("writes");
    let mut bytes = fs::read(&file).unwrap();
    bytes[30] ^= 1;
    fs::write(&file, bytes).unwrap();
    d.spawn();
    let damaged = d.ok("daemon.info", json!({}))["damaged"].clone();
    assert!(damaged[0].as_str().unwrap().contains("writes: the checksum is wrong"), "{damaged}");
    assert_eq!(submit(&mut d.conn(), &proc, 40..100), 60);
    d.refused(-32002, "already_exited", "submit", ask(&proc, 0));
    assert_eq!(d.process(&proc)["exit_code"], 0, "nothing else is touched");
}

/// The memory is used as it is needed: a table that is allocated whole would cost every shim 96 KiB.
#[test]
fn a_shim_without_named_writes_has_no_memory_for_them() {
    let d = Daemon::start();
    let start = |d: &Daemon| id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    let (quiet, busy) = (start(&d), start(&d));
    let shim = |proc: &str| {
        let program = d.process(proc)["pid"].as_i64().unwrap();
        let stat = fs::read_to_string(format!("/proc/{program}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse::<i32>().unwrap()
    };
    let private = |pid: i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let line = text.lines().find(|line| line.starts_with("Private_Dirty:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    submit(&mut d.conn(), &quiet, 0..1);
    submit(&mut d.conn(), &busy, 0..REMEMBERED);
    // The look-up of an unknown id in an almost empty table reads nothing of the rest.
    submit(&mut d.conn(), &quiet, 1..2);
    let (quiet, busy) = (private(shim(&quiet)), private(shim(&busy)));
    assert!(quiet + 64 <= busy, "quiet: {quiet} KiB, busy: {busy} KiB");
}
