//! After kill -9: how soon a new daemon answers for what the old one started, and for all of it.

use crate::Bench;
use crate::client::{Client, call};
use crate::crowd;
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use crate::rig::Daemon;
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// How many processes, how many of them living, and how many in a quick run.
const SIZES: [(usize, usize, usize); 2] = [(1000, 1000, 1000), (10_000, 10_000, 1000)];
/// Between two looks for a socket that answers.
const LOOK: Duration = Duration::from_micros(200);
const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon that is killed and started again, and milliseconds of each time.
struct Killed {
    daemon: Daemon,
    /// The life after the first.
    life: Option<Child>,
    living: usize,
    total: usize,
    asked: String,
    first: Vec<f64>,
    all: Vec<f64>,
}

impl Killed {
    fn gathered(total: usize, living: usize) -> Killed {
        let daemon = crowd::daemon();
        crowd::finished(&daemon, total - living);
        let asked = crowd::sleeping(&daemon, living).pop().unwrap_or_default();
        Killed { daemon, life: None, living, total, asked, first: Vec::new(), all: Vec::new() }
    }

    fn repeat(&mut self) {
        match self.life.take() {
            None => self.daemon.kill9(),
            Some(mut life) => {
                life.kill().unwrap();
                life.wait().unwrap();
            }
        }
        let began = Instant::now();
        self.life = Some(self.daemon.command().spawn().unwrap());
        while UnixStream::connect(self.daemon.socket()).is_err() {
            assert!(began.elapsed() < DEADLINE, "no daemon answers:\n{}", self.daemon.log());
            std::thread::sleep(LOOK); // measured: a socket tells nobody that it is there
        }
        let mut client = Client::open(&self.daemon.socket());
        if self.living > 0 {
            let polled = client.checked(&call("poll", json!({ "id": self.asked }))).0;
            assert_eq!(polled["status"], "running");
        } else {
            client.checked(&call("daemon.info", json!({})));
        }
        self.first.push(began.elapsed().as_secs_f64() * 1e3);
        loop {
            let counts: Value = client.checked(&call("daemon.info", json!({}))).0["counts"].clone();
            let count = |name: &str| counts[name].as_u64().unwrap_or(0) as usize;
            if count("running") == self.living && count("running") + count("exited") == self.total {
                break;
            }
            assert!(began.elapsed() < DEADLINE, "not all came back: {counts}");
            std::thread::sleep(LOOK); // measured: without keeping the daemon busy
        }
        self.all.push(began.elapsed().as_secs_f64() * 1e3);
    }
}

impl Drop for Killed {
    /// The rig ends whoever answers at its socket, but only what it started itself is reaped by it.
    fn drop(&mut self) {
        let Some(mut life) = self.life.take() else { return };
        life.kill().ok();
        life.wait().ok();
        // After a failure it sweeps by itself.
        if !std::thread::panicking() {
            self.daemon.spawn();
        }
    }
}

pub fn after_kill(bench: &mut Bench) {
    let sizes = SIZES.map(|(total, full, quick)| (total, crowd::can_live(bench.pick(quick, full))));
    let mut empty = Killed::gathered(0, 0);
    let mut killed = sizes.map(|(total, living)| Killed::gathered(total, living));
    for _ in 0..bench.pick(5, 9) {
        empty.repeat();
        killed.iter_mut().for_each(Killed::repeat);
    }
    for one in &killed {
        let (total, living) = (one.total, one.living);
        let note = format!("{living} living, {} finished; from starting the program", total - living);
        let first = Figure::new(format!("recovery.{total}.first"), Unit::Ms, &one.first);
        bench.report.add(first.floor("start with nothing", &empty.first).note(note));
        let all = Figure::new(format!("recovery.{total}.all"), Unit::Ms, &one.all);
        let all = all.floor("start with nothing", &empty.all);
        bench.report.add(if total == 1000 { all.target(AtMost(100.0)) } else { all });
    }
}
