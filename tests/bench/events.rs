//! Events: rates of append, read and push.

use crate::Bench;
use crate::floors::Echo;
use crate::report::Target::{AtLeast, AtMost};
use crate::report::{Figure, Unit};
use crate::sample::{self, Series, ms, us};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use toold_daemon::events::{EventTime, Journal, JournalLimits, NewEvent};
use toold_proto::ProcId;
use toold_proto::event::{Exited, Outcome};
use toold_proto::params::Status;
use toold_proto::process::Reason;
use toold_test_support::rig::{Daemon, id};

const MILLION: u64 = 1_000_000;
const UNLIMITED: &str = "log_max_bytes = 4294967296\n[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 1000000000\n\
                    [events]\nmax_bytes = 1073741824\n";

/// Fills a journal as a daemon with many short processes does, and returns the milliseconds.
fn fill(dir: &Path, count: u64) -> f64 {
    let limits = JournalLimits { segment_bytes: 4 << 20, max_bytes: 1 << 30, max_age_ms: u64::MAX };
    let (journal, _) = Journal::open(dir, limits, 0, 0).unwrap();
    let outcome = Outcome {
        name: None,
        command: "make -j8 test".to_owned(),
        exit_code: Some(0),
        signal: None,
        reason: Some(Reason::Exited),
        killed_by: None,
        duration_ms: 1234,
        suppressed: None,
        unseen_bytes: None,
        failure: None,
    };
    let exited = Exited { outcome, status: Status::Exited, bytes: 5678, lines: 90 };
    ms(|| {
        for n in 0..count {
            let session = format!("session-{}", n % 100);
            let draft = NewEvent {
                fields: &exited,
                id: Some(ProcId::from_bits(n)),
                session_key: Some(&session),
                task_id: None,
                state: &[1; 24],
                cancelled: false,
            };
            let at = EventTime { wall_ms: 1_800_000_000_000 + n, mono_ms: n, retention_ms: 1_800_000_000_000 + n };
            journal.publish(&draft, at, |_| {}).unwrap();
        }
    })
}

/// Measures the floor of an append: one write of the same size.
fn writes(dir: &Path, count: u64) -> f64 {
    use std::io::Write;
    let mut file = std::fs::File::options().append(true).create(true).open(dir.join("floor")).unwrap();
    let bytes = [b'x'; 400];
    ms(|| (0..count).for_each(|_| file.write_all(&bytes).unwrap()))
}

pub fn append(bench: &mut Bench) {
    let count = bench.pick(100_000, 200_000);
    let per_second = |ms: f64| count as f64 / ms * 1000.0;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(3, 5) {
        let dir = tempfile::tempdir().unwrap();
        floor.push(per_second(writes(dir.path(), count)));
        ours.push(per_second(fill(&dir.path().join("events"), count)));
    }
    let figure = Figure::new("events.append", Unit::PerSecond, &ours).floor("write(2) of 400 bytes", &floor);
    bench.report.add(figure.target(AtLeast(100_000.0)));
}

pub fn next(bench: &mut Bench) {
    let mut daemon = Daemon::prepare(UNLIMITED, &[]);
    let (repetitions, total) = (bench.pick(3, 5), bench.pick(300_000, MILLION));
    fill(&daemon.state().join("events"), total);
    let mut start = vec![ms(|| daemon.spawn())];
    for _ in 1..repetitions {
        daemon.kill9();
        start.push(ms(|| daemon.spawn()));
    }
    let (mut conn, mut echo) = (daemon.conn(), Echo::start());
    let (mut pages, mut floor, mut again, mut short) =
        (Series::default(), Series::default(), Series::default(), Series::default());
    let rare = json!({ "consumer": "rare", "session_key": "missing", "limit": 10 });
    conn.call("events.next", rare.clone()).unwrap();
    let mut first = Vec::new();
    for repetition in 0..repetitions {
        let none = json!({ "consumer": format!("n{repetition}"), "session_key": "missing", "limit": 10 });
        first.push(ms(|| assert_eq!(conn.call("events.next", none).unwrap()["events"], json!([]))));
        let mut bytes = 0;
        let mut page = 0;
        pages.take(15, || {
            let name = format!("c{repetition}-{page}");
            page += 1;
            conn.call("events.next", json!({ "consumer": name, "limit": 1 })).unwrap();
            conn.call("events.ack", json!({ "consumer": name, "seq": page * (total / 20) })).unwrap();
            let mut got = Vec::new();
            let time = ms(|| {
                conn.request("events.next", json!({ "consumer": name, "limit": 1000 }));
                got = conn.line().unwrap();
            });
            let answer: Value = serde_json::from_slice(&got).unwrap();
            assert_eq!(answer["result"]["events"].as_array().unwrap().len(), 1000);
            bytes = got.len();
            time
        });
        floor.take(15, || echo.ask_for(bytes) / 1e3);
        short.take(50, || echo.client.ask(b"a line of some text\n"));
        again.take(50, || us(|| drop(conn.call("events.next", rare.clone()).unwrap())));
    }
    let report = &mut bench.report;
    let note = format!("from a journal of {total}");
    report.add(
        Figure::new("events.next.1000.p50", Unit::Ms, &pages.p50)
            .floor("as many bytes by a socket", &floor.p50)
            .target(AtMost(5.0))
            .note(&note),
    );
    report.add(Figure::new("events.next.start", Unit::Ms, &start).note(format!("start of a daemon {note}")));
    report.add(Figure::new("events.next.none.first", Unit::Ms, &first).note(format!("a filter that fits none {note}")));
    report.add(Figure::new("events.next.none.p50", Unit::Us, &again.p50).floor("socket echo", &short.p50));
}

/// Measures the time from a program's write until a client has the push.
pub fn push(bench: &mut Bench) {
    let daemon = Daemon::start_with(UNLIMITED, &[]);
    let gate = daemon.gate("go");
    let mut live = daemon.conn();
    live.call("events.subscribe", json!({ "types": ["watch_match"] })).unwrap();
    let script = format!("while {}; do echo HIT; done", gate.wait());
    daemon.sh_with(&script, json!({ "watch": ["HIT", "MISS"] }));
    let mut waited = daemon.conn();
    let cat = id(&daemon.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
    let (mut pushes, mut polls, mut cursor) = (Series::default(), Series::default(), 0);
    for _ in 0..bench.pick(5, 9) {
        // The same path without a watch: a program that echoes, a pipe, a follower's poll.
        polls.take(60, || {
            let at = waited.request("poll", json!({ "id": cat, "cursor": cursor, "wait_ms": 10_000 }));
            cursor += 4;
            ms(|| {
                daemon.ok("write", json!({ "id": cat, "data": "hit\n" }));
                waited.answer(at).unwrap();
            })
        });
        pushes.take(100, || {
            ms(|| {
                gate.open();
                assert_eq!(live.push()["type"], "watch_match");
            })
        });
    }
    bench.report.add(
        Figure::new("events.push.match.p50", Unit::Ms, &pushes.p50)
            .floor("write to poll through cat", &polls.p50)
            .target(AtMost(2.0))
            .note("from opening a fifo that the program reads, to the push of its line's match"),
    );
}

/// Measures matches of a hundred concurrent processes.
pub fn rate(bench: &mut Bench) {
    let (mut lines, mut events) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (line, event) = matched(bench.pick(200, 500));
        lines.push(line);
        events.push(event);
    }
    let figure = Figure::new("events.rate.matches", Unit::PerSecond, &lines);
    let published = sample::median(&events);
    bench
        .report
        .add(figure.note(format!("lines at the pace of 100 processes, as {published:.0} events a second, none lost")));
}

/// Returns matching lines per second, and events for them per second.
fn matched(lines: u64) -> (f64, f64) {
    let daemon = Daemon::start_with(UNLIMITED, &[]);
    let (gate, never) = (daemon.gate("go"), daemon.gate("never"));
    let mut live = daemon.conn();
    live.call("events.subscribe", json!({ "types": ["watch_match", "exited"] })).unwrap();
    let script = format!(
        "{}; exec 9<>{}; for ((i = 0; i < {lines}; i++)); do echo HIT $i; read -t 0.008 -u 9 x; done; exit 0",
        gate.wait(),
        never.path.display()
    );
    let exec = json!({ "argv": ["/bin/bash", "-c", script], "watch": ["HIT"] });
    (0..100).for_each(|_| drop(daemon.ok("exec", exec.clone())));
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
    (matched as f64 / seconds, events as f64 / seconds)
}

/// Measures events per second to a subscriber that starts at the first event.
pub fn replay(bench: &mut Bench) {
    let mut daemon = Daemon::prepare(UNLIMITED, &[]);
    let total = bench.pick(100_000, MILLION / 2);
    fill(&daemon.state().join("events"), total);
    daemon.spawn();
    let mut echo = Echo::start();
    let (mut rates, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(5, 9) {
        let (mut live, mut bytes) = (daemon.conn(), 0);
        let time = ms(|| {
            live.request("events.subscribe", json!({ "types": ["exited"], "after": 0 }));
            bytes = (0..=total).map(|_| live.line().unwrap().len()).sum();
        });
        rates.push(total as f64 / time * 1e3);
        floor.push(total as f64 / echo.ask_for(bytes) * 1e6);
    }
    let figure = Figure::new("events.rate.push", Unit::PerSecond, &rates).floor("as many bytes by a socket", &floor);
    bench.report.add(figure.note(format!("a subscription from the first of {total} on")));
}
