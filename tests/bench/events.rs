//! Events and watches: how fast they are written, read, pushed, and what a watch costs the capture.

use crate::conn::Conn;
use crate::report::{Report, in_ms, median, ms};
use crate::rig::{Daemon, id};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;
use toold_daemon::events::{Draft, Journal, Limits, Now};
use toold_proto::{EventType, ProcId};

const MILLION: u64 = 1_000_000;
const OPEN: &str = "log_max_bytes = 4294967296\n[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 1000000000\n\
                    [events]\nmax_bytes = 1073741824\n";

/// A journal as a daemon with many short processes leaves it.
fn fill(dir: &Path, count: u64) -> f64 {
    let limits = Limits { segment_bytes: 4 << 20, max_bytes: 1 << 30, max_age_ms: u64::MAX };
    let (journal, _) = Journal::open(dir, limits, 0, 0).unwrap();
    let facts: Map<String, Value> = serde_json::from_value(json!({
        "name": null, "command": "make -j8 test", "exit_code": 0, "signal": null, "reason": "exited", "killed_by": null,
        "duration_ms": 1234, "bytes": 5678, "lines": 90,
    }))
    .unwrap();
    ms(|| {
        for n in 0..count {
            let session = format!("session-{}", n % 100);
            let draft = Draft {
                kind: EventType::Exited,
                id: Some(ProcId::from_bits(n)),
                session_key: Some(&session),
                task_id: None,
                facts: &facts,
                state: &[1; 24],
                cancelled: false,
            };
            journal.publish(&draft, Now { wall_ms: 1_800_000_000_000 + n, mono_ms: n }, |_| {}).unwrap();
        }
    })
}

/// The floor of an append: one write of as many bytes.
fn writes(dir: &Path, count: u64) -> f64 {
    use std::io::Write;
    let mut file = std::fs::File::options().append(true).create(true).open(dir.join("floor")).unwrap();
    let bytes = [b'x'; 400];
    ms(|| (0..count).for_each(|_| file.write_all(&bytes).unwrap()))
}

pub fn append(report: &mut Report) {
    let dir = tempfile::tempdir().unwrap();
    let count = 200_000;
    let (ours, floor) = (fill(&dir.path().join("events"), count), writes(dir.path(), count));
    let per_second = |ms: f64| count as f64 / ms * 1000.0;
    let beside = format!("write(2) of 400 bytes {:.0}/s; at least 100000/s", per_second(floor));
    report.add("journal append", per_second(ours), "events/s", beside);
}

pub fn next(report: &mut Report) {
    let mut d = Daemon::prepare(OPEN, &[]);
    fill(&d.state().join("events"), MILLION);
    let began = Instant::now();
    d.spawn();
    report.add("start with a journal of a million", in_ms(began.elapsed()), "ms", "");
    let mut conn = d.conn();
    let echo = median((0..500).map(|_| ms(|| drop(conn.call("no.such", json!({}))))).collect());
    let mut times = Vec::new();
    for n in 0..40 {
        let name = format!("c{n}");
        conn.call("events.next", json!({ "consumer": name, "limit": 1 })).unwrap();
        conn.call("events.ack", json!({ "consumer": name, "seq": n * 24_000 + 1 })).unwrap();
        let mut got = Vec::new();
        times.push(ms(|| {
            conn.request("events.next", json!({ "consumer": name, "limit": 1000 }));
            got = conn.line().unwrap();
        }));
        let answer: Value = serde_json::from_slice(&got).unwrap();
        assert_eq!(answer["result"]["events"].as_array().unwrap().len(), 1000);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let beside = format!("p50; echo {echo:.3} ms; at most 5 ms; worst {worst:.2}");
    report.add("events.next of 1,000 from a million", median(times), "ms", beside);
    let rare = ms(|| {
        let call = json!({ "consumer": "rare", "session_key": "nobody", "limit": 10 });
        assert_eq!(conn.call("events.next", call).unwrap()["events"], json!([]));
    });
    report.add("a filter that fits none of a million, first time", rare, "ms", "");
    let again = median(
        (0..50)
            .map(|_| {
                ms(|| {
                    conn.call("events.next", json!({ "consumer": "rare", "session_key": "nobody", "limit": 10 }))
                        .unwrap();
                })
            })
            .collect(),
    );
    report.add("the same again", again, "ms", format!("echo {echo:.3} ms"));
}

/// From the byte that a program writes to the push in a client's hands.
pub fn push(report: &mut Report) {
    let d = Daemon::start_with(OPEN, &[]);
    let gate = d.gate("go");
    let mut live = d.conn();
    live.call("events.subscribe", json!({ "types": ["watch_match"] })).unwrap();
    let script = format!("while {}; do echo HIT; done", gate.pass());
    d.sh_with(&script, json!({ "watch": ["HIT", "MISS"] }));
    let mut waited = d.conn();
    let cat = id(&d.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
    let mut times = Vec::new();
    for n in 0..300 {
        let began = Instant::now();
        gate.open();
        assert_eq!(live.push()["type"], "watch_match");
        if n >= 20 {
            times.push(in_ms(began.elapsed()));
        }
    }
    // The floor of the same way without a watch: a fifo, a shell, a pipe, a follower's poll.
    let mut floor = Vec::new();
    for n in 0..100u64 {
        let at = waited.request("poll", json!({ "id": cat, "cursor": n * 4, "wait_ms": 10_000 }));
        let began = Instant::now();
        d.ok("write", json!({ "id": cat, "data": "hit\n" }));
        waited.answer(at).unwrap();
        floor.push(in_ms(began.elapsed()));
    }
    let beside = format!(
        "from opening a fifo the program reads; write to poll through `cat` {:.3} ms; at most 2",
        median(floor)
    );
    report.add("byte written to push received, p50", median(times), "ms", beside);
}

/// Matches from a hundred processes at once, each an event of its own.
pub fn rate(report: &mut Report) {
    let d = Daemon::start_with(OPEN, &[]);
    let (gate, never, lines) = (d.gate("go"), d.gate("never"), 500);
    let mut live = d.conn();
    live.call("events.subscribe", json!({ "types": ["watch_match", "exited"] })).unwrap();
    let script = format!(
        "{}; exec 9<>{}; for ((i = 0; i < {lines}; i++)); do echo HIT $i; read -t 0.008 -u 9 x; done; exit 0",
        gate.pass(),
        never.path.display()
    );
    let exec = json!({ "argv": ["/bin/bash", "-c", script], "watch": ["HIT"] });
    (0..100).for_each(|_| drop(d.ok("exec", exec.clone())));
    let began = Instant::now();
    (0..100).for_each(|_| gate.open());
    let (mut events, mut matched, mut ended) = (0, 0, 0);
    while ended < 100 {
        let event = live.push();
        ended += usize::from(event["type"] == "exited");
        events += usize::from(event["type"] == "watch_match");
        matched += event["matches"].as_u64().unwrap_or(0);
    }
    assert_eq!(matched, 100 * lines);
    let seconds = began.elapsed().as_secs_f64();
    let beside = format!("{:.0} lines/s from 100 processes, none lost", matched as f64 / seconds);
    report.add("events pushed a second", events as f64 / seconds, "events/s", beside);
}

fn captured(conn: &mut Conn, bytes: u64, patterns: &[String]) -> f64 {
    let line = "x".repeat(79);
    let script = format!("yes {line} | head -c {bytes}");
    let began = Instant::now();
    let exec = json!({ "argv": ["/bin/sh", "-c", script], "watch": patterns });
    let process = id(&conn.call("exec", exec).unwrap());
    conn.call("wait", json!({ "id": process, "until": "closed" })).unwrap();
    // An exit of a watched process is told when its last line was looked at, or eight megabytes are left: wait for those.
    loop {
        let watch = conn.call("poll", json!({ "id": process })).unwrap()["watch"].clone();
        if watch.is_null() || watch["state"] == "ended" {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    conn.call("forget", json!({ "ids": [process] })).unwrap();
    bytes as f64 / seconds / f64::from(1 << 20)
}

pub fn capture(report: &mut Report) {
    let d = Daemon::start_with(OPEN, &[]);
    let mut conn = d.conn();
    let patterns: Vec<String> = (0..20).map(|n| format!("ERROR-{n:02} at")).collect();
    let (mut all, bytes) = ([Vec::new(), Vec::new(), Vec::new()], 512 << 20);
    for _ in 0..5 {
        for (n, speeds) in [0, 5, 20].into_iter().zip(&mut all) {
            speeds.push(captured(&mut conn, bytes, &patterns[..n]));
        }
    }
    let [none, five, twenty] = all.map(median);
    report.add("capture without patterns", none, "MiB/s", "");
    report.add("capture with 5 patterns", five, "MiB/s", format!("{:.0} % of it", five / none * 100.0));
    let beside = format!("{:.0} % of it; at least 70 %", twenty / none * 100.0);
    report.add("capture with 20 patterns", twenty, "MiB/s", beside);
}
