//! The soak: a mixed load for a minute (`TOOLD_SOAK_SECONDS` for longer), in four quarters with a rest after each. After the
//! first quarter nothing grows: memory of daemon, zygote and spares, descriptors, threads, processes, disk.

use crate::footprint::{self, nothing_runs, rss_kib};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, files, id};

const DEFAULT_SECONDS: u64 = 60;
const QUARTERS: u32 = 4;
const WORKERS: u64 = 4;
/// A small retention, so that the first quarter reaches it.
const CONFIG: &str = "log_max_bytes = 262144\n[retention]\nmax_count = 100\n[events]\nmax_bytes = 262144\n\
    segment_bytes = 65536\nmax_consumers = 8\n[watch]\nmin_interval_ms = 10\n";
/// Growth that is allowed after the first quarter. An allocator keeps some of what it freed, more on a busy machine; a leak of
/// one kilobyte per call is beyond this within a quarter.
const MAX_GROWTH_KIB: u64 = 12 * 1024;
/// Disk that may differ between two rests: the pool of prepared records, a segment more or less, logs of the last processes.
const MAX_DISK_GROWTH: u64 = 8 << 20;
const MAX_DESCRIPTOR_GROWTH: usize = 8;
const MAX_THREAD_GROWTH: usize = 2;

/// The weight of everything at rest.
#[derive(Debug, Clone, Copy)]
struct Weight {
    rss_kib: u64,
    helpers_rss_kib: u64,
    descriptors: usize,
    threads: usize,
    processes: usize,
    disk: u64,
}

#[test]
fn under_a_mixed_load_nothing_grows_after_the_first_quarter() {
    let seconds = std::env::var("TOOLD_SOAK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(DEFAULT_SECONDS);
    let daemon = Daemon::start_with(CONFIG, &[]);
    let mut weights = Vec::new();
    for quarter in 0..QUARTERS {
        let until = Instant::now() + Duration::from_secs(seconds) / QUARTERS;
        let actions: u64 = std::thread::scope(|scope| {
            let seed = |worker| u64::from(quarter) * WORKERS + worker;
            let workers = (0..WORKERS).map(|worker| {
                scope.spawn({
                    let daemon = &daemon;
                    move || work(daemon, seed(worker), until)
                })
            });
            let workers: Vec<_> = workers.collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        weights.push(rest(&daemon));
        println!("quarter {quarter}: {actions} actions, then {:?}", weights.last().unwrap());
    }
    let (first, last) = (weights[0], weights[weights.len() - 1]);
    let all = format!("after the first quarter {first:?}, at the end {last:?}");
    assert!(last.rss_kib <= first.rss_kib + MAX_GROWTH_KIB, "the daemon's memory grew: {all}");
    assert!(last.helpers_rss_kib <= first.helpers_rss_kib + MAX_GROWTH_KIB, "memory of zygote or spares grew: {all}");
    assert!(last.descriptors <= first.descriptors + MAX_DESCRIPTOR_GROWTH, "descriptors: {all}");
    assert!(last.threads <= first.threads + MAX_THREAD_GROWTH, "threads: {all}");
    assert!(last.processes <= first.processes + 2, "processes: {all}");
    assert!(last.disk <= first.disk + MAX_DISK_GROWTH, "disk: {all}");
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]));
}

/// Ends what runs and weighs the daemon once it is at rest.
fn rest(daemon: &Daemon) -> Weight {
    daemon.ok("kill", json!({ "all": true, "grace_ms": 0 }));
    nothing_runs(daemon);
    daemon.eventually("the daemon is at rest", || {
        let now = footprint::measure(daemon);
        // The blocking pool ends its threads after some seconds.
        footprint::connections(daemon) == 0 && now.zombies == 0 && now.only_spares && now.threads <= 8
    });
    let now = footprint::measure(daemon);
    let helpers: Vec<i32> = daemon.marked().iter().map(|process| process.pid).collect();
    Weight {
        rss_kib: rss_kib(daemon.pid()),
        helpers_rss_kib: helpers.iter().filter(|pid| !procfs::name(**pid).is_empty()).map(|pid| rss_kib(*pid)).sum(),
        descriptors: now.descriptors,
        threads: now.threads,
        processes: helpers.len(),
        disk: files(&daemon.state()).iter().map(|file| size(file)).sum(),
    }
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(0, |found| found.len())
}

/// Makes one action after the other until the time is over. Returns their number.
fn work(daemon: &Daemon, seed: u64, until: Instant) -> u64 {
    let mut n = seed;
    let mut count = 0;
    while Instant::now() < until {
        // A fixed sequence per worker: a run can be repeated.
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        act(daemon, (n >> 33) % 12, n);
        count += 1;
    }
    count
}

fn act(daemon: &Daemon, kind: u64, n: u64) {
    match kind {
        0 => run_to_the_end(daemon),
        1 => drop(daemon.call("exec", json!({ "argv": ["no-such-program", "x".repeat(10_000)] }))),
        2 => write_and_close(daemon, n),
        3 => terminal(daemon),
        4 => watched(daemon),
        5 => limited(daemon),
        6 => subscriber_that_leaves(daemon, n),
        7 => consumer(daemon, n),
        8 => batch(daemon),
        9 => vanish_in_http(daemon, n),
        10 => vanish_in_websocket(daemon, n),
        _ => slow_reader(daemon),
    }
}

fn run_to_the_end(daemon: &Daemon) {
    let process = daemon.sh("seq 1 200; exit 3");
    daemon.closed(&process);
    daemon.ok("log", json!({ "id": process, "grep": "^1" }));
    daemon.ok("inspect", json!({ "id": process }));
    daemon.ok("list", json!({}));
    // Retention may have been faster.
    let _ = daemon.call("forget", json!({ "ids": [process] }));
}

fn write_and_close(daemon: &Daemon, n: u64) {
    let process = id(&daemon.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    for write in 0..5 {
        daemon.ok("submit", json!({ "id": process, "data": "line", "write_id": format!("{n}-{write}") }));
    }
    daemon.ok("close", json!({ "id": process }));
    daemon.closed(&process);
}

fn terminal(daemon: &Daemon) {
    let process = id(&daemon.sh_with("read x; exec sleep 1000", json!({ "pty": true })));
    daemon.ok("resize", json!({ "id": process, "rows": 30, "cols": 100 }));
    daemon.ok("submit", json!({ "id": process, "data": "go" }));
    daemon.ok("kill", json!({ "id": process, "grace_ms": 0 }));
}

fn watched(daemon: &Daemon) {
    let script = "for n in 1 2 3; do echo error $n; done";
    let process = daemon.sh_with(script, json!({ "watch": ["error", { "regex": "er+or [0-9]" }], "notify": true }));
    daemon.closed(&id(&process));
}

fn limited(daemon: &Daemon) {
    let limits = json!({ "limits": { "output_bytes": 65_536, "pids": 50 }, "timeout_ms": 200 });
    let process = id(&daemon.sh_with("yes | head -c 300000; exec sleep 1000", limits));
    daemon.exited(&process);
}

fn subscriber_that_leaves(daemon: &Daemon, n: u64) {
    let process = daemon.sh("seq 1 2000; exec sleep 1000");
    let mut conn = daemon.conn();
    for _ in 0..8 {
        let params = if n.is_multiple_of(2) { json!({ "output": true, "id": process }) } else { json!({}) };
        // An argument may be refused; what counts is what stays when the connection goes.
        let _ = conn.call("events.subscribe", params);
    }
    drop(conn);
    daemon.ok("kill", json!({ "id": process, "grace_ms": 0 }));
}

fn consumer(daemon: &Daemon, n: u64) {
    let name = format!("soak-{}", n % 4);
    let mut conn = daemon.conn();
    let Ok(next) = conn.call("events.next", json!({ "consumer": name, "limit": 50 })) else { return };
    if let Some(last) = next["events"].as_array().and_then(|events| events.last()) {
        let _ = conn.call("events.ack", json!({ "consumer": name, "seq": last["seq"] }));
    }
}

fn batch(daemon: &Daemon) {
    let mut conn = daemon.conn();
    let call = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    conn.send(&json!([
        call(1, "list", json!({ "limit": 5 })),
        call(2, "exec", json!({ "argv": ["/bin/true"] })),
        call(3, "no.such", json!({})),
        call(4, "daemon.info", json!({})),
    ]));
    assert_eq!(conn.recv().as_array().map(Vec::len), Some(4));
}

fn vanish_in_http(daemon: &Daemon, n: u64) {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"list","params":{}}"#;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let all = format!("{head}{body}");
    // In the head, in the body, or before the answer.
    let sent = [head.len() / 2, head.len() + body.len() / 2, all.len()][(n % 3) as usize];
    let _ = stream.write_all(&all.as_bytes()[..sent]);
}

fn vanish_in_websocket(daemon: &Daemon, n: u64) {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.set_read_timeout(Some(toold_test_support::rig::DEADLINE)).unwrap();
    let head = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    if n.is_multiple_of(2) {
        let mut answer = [0u8; 64];
        let _ = stream.read(&mut answer);
        // The start of a masked text frame whose rest never comes.
        let _ = stream.write_all(&[0x81, 0xfe, 0x10, 0x00, 1, 2, 3, 4, 5]);
    }
}

/// Requests much and reads nothing.
fn slow_reader(daemon: &Daemon) {
    let process = daemon.sh("seq 1 20000");
    daemon.closed(&process);
    let mut conn = daemon.conn();
    for _ in 0..20 {
        conn.request("poll", json!({ "id": process, "cursor": 0, "max_bytes": 100_000 }));
    }
}
