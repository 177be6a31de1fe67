//! kill -9 of the daemon at random instants, while processes start, write and end.

use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

const ROUNDS: u64 = 20;
const PROCESSES: u64 = 10;
/// Lines of each process, in bursts with a pause between.
const BURSTS: u64 = 30;
const BURST: u64 = 100;

/// A random generator: xorshift of its seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn exec(daemon: &Daemon, n: u64) -> Value {
    let marker = daemon.root().join("ran").display().to_string();
    // The pace of the program, so that it outlives several daemons. It synchronises nothing.
    let script = format!(
        "echo {n} >> {marker}; i=0; while [ $i -lt {} ]; do echo {n}-$i; i=$((i+1)); \
         [ $((i % {BURST})) -ne 0 ] || sleep 0.05; done; exit {}",
        BURSTS * BURST,
        10 + n
    );
    let pty = if n.is_multiple_of(2) { json!(false) } else { json!(true) };
    json!({ "argv": ["/bin/sh", "-c", script], "pty": pty, "request_id": format!("request-{n}") })
}

#[test]
fn a_daemon_killed_at_random_instants_loses_no_line_and_no_exit() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("TOOLD_CRASH_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(now.as_nanos() as u64 | 1);
    println!("TOOLD_CRASH_SEED={seed}");
    let mut random = Random(seed);
    let mut daemon = Daemon::start();
    for round in 0..ROUNDS {
        let mut conn = daemon.conn();
        // Two of them are requested repeatedly, in starts that may be interrupted anywhere.
        for _ in 0..2 {
            conn.request("exec", exec(&daemon, random.below(PROCESSES)));
        }
        follow(&mut conn, round);
        // The instant is what this test varies: it is random, not waited for.
        std::thread::park_timeout(Duration::from_micros(random.below(120_000)));
        daemon.kill9();
        daemon.spawn();
    }
    let ids: Vec<String> = (0..PROCESSES).map(|n| id(&daemon.ok("exec", exec(&daemon, n)))).collect();
    for (n, process) in (0..).zip(&ids) {
        let ended = daemon.closed(process);
        assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("exited"), &json!(10 + n)), "seed {seed}: {ended}");
        let eol = if n % 2 == 0 { "\n" } else { "\r\n" };
        let expected: String = (0..BURSTS * BURST).map(|i| format!("{n}-{i}{eol}")).collect();
        assert_eq!(daemon.text(process), expected, "seed {seed}: the lines of process {n}");
    }
    let mut runs: Vec<u64> =
        fs::read_to_string(daemon.root().join("ran")).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    runs.sort_unstable();
    assert_eq!(runs, (0..PROCESSES).collect::<Vec<_>>(), "seed {seed}: each ran once");
    assert_eq!(daemon.ids(json!({})).len() as u64, PROCESSES, "seed {seed}");
}

/// Sends calls whose answers the test does not read: they are pending when the daemon dies.
fn follow(conn: &mut Conn, round: u64) {
    conn.request("list", json!({}));
    conn.request("wait", json!({ "ids": [format!("request-{round}")], "timeout_ms": 1000 }));
    conn.request("daemon.info", json!({}));
}
