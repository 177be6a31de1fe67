//! After kill -9: time until a new daemon answers for a process of the old one, and for all of them.

use crate::Bench;
use crate::client::{Client, call};
use crate::many;
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};
use toold_test_support::rig::Daemon;

/// Number of processes, of running ones among them, and of running ones in a quick run.
const SIZES: [(usize, usize, usize); 2] = [(1000, 1000, 1000), (10_000, 10_000, 1000)];
/// Delay between two attempts to connect.
const CONNECT_RETRY_DELAY: Duration = Duration::from_micros(200);
const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon that is killed and started again, and the measured milliseconds.
struct KilledDaemon {
    daemon: Daemon,
    /// The daemon that was started after the first kill.
    restarted: Option<Child>,
    living: usize,
    total: usize,
    alive: Vec<String>,
    first: Vec<f64>,
    all: Vec<f64>,
}

impl KilledDaemon {
    fn start(total: usize, living: usize) -> KilledDaemon {
        let daemon = many::daemon();
        many::finished(&daemon, total - living);
        let alive = many::sleeping(&daemon, living);
        KilledDaemon { daemon, restarted: None, living, total, alive, first: Vec::new(), all: Vec::new() }
    }

    fn repeat(&mut self) {
        match self.restarted.take() {
            None => self.daemon.kill9(),
            Some(mut restarted) => {
                restarted.kill().unwrap();
                restarted.wait().unwrap();
            }
        }
        let began = Instant::now();
        self.restarted = Some(self.daemon.command().spawn().unwrap());
        while UnixStream::connect(self.daemon.socket()).is_err() {
            assert!(began.elapsed() < DEADLINE, "no daemon answers:\n{}", self.daemon.log());
            std::thread::sleep(CONNECT_RETRY_DELAY); // measured: there is no notification for a new socket
        }
        let mut client = Client::open(&self.daemon.socket());
        match self.alive.last() {
            Some(id) => assert_eq!(client.checked(&call("poll", json!({ "id": id }))).0["status"], "running"),
            None => drop(client.checked(&call("daemon.info", json!({})))),
        }
        self.first.push(began.elapsed().as_secs_f64() * 1e3);
        // All processes are known by then.
        let counts: Value = client.checked(&call("daemon.info", json!({}))).0["counts"].clone();
        let count = |name: &str| counts[name].as_u64().unwrap_or(0) as usize;
        assert_eq!((count("running"), count("running") + count("exited")), (self.living, self.total), "{counts}");
        // The shim answers a signal.
        let mut conn = self.daemon.conn();
        for some in self.alive.chunks(many::IN_FLIGHT) {
            let signal = |id| json!({ "id": id, "signal": "SIGCONT" });
            let asked: Vec<u64> = some.iter().map(|id| conn.request("signal", signal(id))).collect();
            asked.into_iter().for_each(|call| drop(conn.answer(call).unwrap()));
        }
        self.all.push(began.elapsed().as_secs_f64() * 1e3);
    }
}

impl Drop for KilledDaemon {
    /// The rig kills the daemon that listens on its socket, but reaps only a daemon that it started itself.
    fn drop(&mut self) {
        let Some(mut restarted) = self.restarted.take() else { return };
        restarted.kill().ok();
        restarted.wait().ok();
        // After a failure the rig cleans up without a daemon.
        if !std::thread::panicking() {
            self.daemon.spawn();
        }
    }
}

pub fn after_kill(bench: &mut Bench) {
    let sizes = SIZES.map(|(total, full, quick)| (total, many::max_running(bench.pick(quick, full))));
    let mut empty = KilledDaemon::start(0, 0);
    let mut killed = sizes.map(|(total, living)| KilledDaemon::start(total, living));
    for _ in 0..bench.pick(5, 9) {
        empty.repeat();
        killed.iter_mut().for_each(KilledDaemon::repeat);
    }
    for one in &killed {
        let (total, living) = (one.total, one.living);
        let note = format!("{living} living, {} finished; from starting the program", total - living);
        let first = Figure::new(format!("recovery.{total}.serving"), Unit::Ms, &one.first);
        let first = first.floor("start with nothing", &empty.first).note(note);
        bench.report.add(if total == 1000 { first.target(AtMost(100.0)) } else { first });
        let all = Figure::new(format!("recovery.{total}.all_answered"), Unit::Ms, &one.all);
        bench.report.add(all.note("the shim of every running process has confirmed a SIGCONT"));
    }
}
