//! Reading: `poll`, `list` and `log` of a daemon with 1, 100, 1,000 and 10,000 processes, and a page of a large log.

use crate::Bench;
use crate::client::{Client, call};
use crate::floors::Echo;
use crate::many;
use crate::report::Target::{AtMost, TimesFloor};
use crate::report::{Figure, Report, Unit};
use crate::sample::Series;
use serde_json::json;
use toold_test_support::rig::Daemon;

/// Number of processes, of running ones among them, and of running ones in a quick run.
const SIZES: [(usize, usize, usize); 4] = [(1, 1, 1), (100, 100, 100), (1000, 1000, 1000), (10_000, 10_000, 1000)];

/// Ratio up to which ten thousand processes count as no slower than one.
const MAX_FLAT_RATIO: f64 = 1.2;

/// A daemon with its processes, and the prepared requests.
struct LoadedDaemon {
    size: usize,
    client: Client,
    poll: Vec<u8>,
    poll_output: Vec<u8>,
    list: Vec<u8>,
    long_list: Vec<u8>,
    /// Set if a thousand processes have exited.
    ended_list: Option<Vec<u8>>,
    log: Vec<u8>,
    long_bytes: usize,
    times: [Series; 6],
    echo: Series,
    long_echo: Series,
    /// Last field: the client disconnects before the daemon is stopped.
    _daemon: Daemon,
}

impl LoadedDaemon {
    fn start(size: usize, living: usize) -> LoadedDaemon {
        let daemon = many::daemon();
        // One process without output, one with output (not counted in `size`), then the others.
        let silent = many::sleeping(&daemon, 1).remove(0);
        let asked = daemon.sh("seq 500; exec sleep 100000");
        daemon.printed(&asked, "500");
        many::finished(&daemon, size - living);
        many::sleeping(&daemon, living - 1);
        let mut client = Client::open(&daemon.socket());
        let long_list = call("list", json!({ "limit": 1000 }));
        let (listed, long_bytes) = client.checked(&long_list);
        assert_eq!(listed["processes"].as_array().unwrap().len(), (size + 1).min(1000));
        let poll = call("poll", json!({ "id": silent }));
        let poll_output = call("poll", json!({ "id": asked }));
        let log = call("log", json!({ "id": asked }));
        assert_eq!(client.checked(&poll).0["status"], "running");
        assert_eq!(client.checked(&log).0["lines_shown"], 200);
        LoadedDaemon {
            size,
            client,
            poll,
            poll_output,
            list: call("list", json!({})),
            long_list,
            ended_list: (size - living >= 1000).then(|| call("list", json!({ "limit": 1000, "status": "exited" }))),
            log,
            long_bytes,
            times: Default::default(),
            echo: Series::default(),
            long_echo: Series::default(),
            _daemon: daemon,
        }
    }

    fn repeat(&mut self, echo: &mut Echo, count: usize) {
        let LoadedDaemon { client, poll, poll_output, list, long_list, ended_list, log, long_bytes, .. } = self;
        // Warm up: the caches hold data of the measurement before.
        for _ in 0..20 {
            client.ask(poll);
            echo.client.ask(poll);
        }
        self.echo.take(count, || echo.client.ask(poll));
        self.long_echo.take(count / 10, || echo.ask_for(*long_bytes));
        let [polls, outputs, lists, long_lists, ended_lists, logs] = &mut self.times;
        polls.take(count, || client.ask(poll));
        outputs.take(count / 2, || client.ask(poll_output));
        lists.take(count / 5, || client.ask(list));
        long_lists.take(count / 10, || client.ask(long_list));
        if let Some(ended_list) = ended_list {
            ended_lists.take(count / 10, || client.ask(ended_list));
        }
        logs.take(count / 2, || client.ask(log));
    }

    fn report(&self, report: &mut Report) {
        let (size, [polls, outputs, lists, long_lists, ended_lists, logs]) = (self.size, &self.times);
        let (name, echo) = ("socket echo", &self.echo);
        let poll = Figure::new(format!("poll.{size}.p50"), Unit::Us, &polls.p50);
        report.add(poll.floor(name, &echo.p50).target(TimesFloor(2.0)));
        report.add(Figure::new(format!("poll.{size}.p99"), Unit::Us, &polls.p99).floor("socket echo p99", &echo.p99));
        let output = Figure::new(format!("poll.{size}.output.p50"), Unit::Us, &outputs.p50);
        report.add(output.floor(name, &echo.p50).note("with the last 1000 characters"));
        report.add(Figure::new(format!("log.{size}.p50"), Unit::Us, &logs.p50).floor(name, &echo.p50));
        report.add(Figure::new(format!("list.{size}.p50"), Unit::Us, &lists.p50).floor(name, &echo.p50));
        let ms = |all: &[f64]| all.iter().map(|us| us / 1e3).collect::<Vec<_>>();
        let long = |what: &str, times: &Series| {
            Figure::new(format!("list.{size}.{what}.p50"), Unit::Ms, &ms(&times.p50))
                .floor("as many bytes by a socket", &ms(&self.long_echo.p50))
                .target(AtMost(3.0))
        };
        if size >= 1000 {
            let note = format!("1,000 of them, {} KiB, most living", self.long_bytes >> 10);
            report.add(long("1000", long_lists).note(note));
        }
        if self.ended_list.is_some() {
            report.add(long("1000.ended", ended_lists).note("1,000 of those that ended"));
        }
    }
}

pub fn by_size(bench: &mut Bench) {
    let sizes = SIZES.map(|(size, full, quick)| (size, many::max_running(bench.pick(quick, full))));
    let mut daemons = sizes.map(|(size, living)| LoadedDaemon::start(size, living));
    let (repetitions, count) = bench.pick((5, 400), (9, 3000));
    let mut echo = Echo::start();
    for _ in 0..repetitions {
        daemons.iter_mut().for_each(|daemon| daemon.repeat(&mut echo, count));
    }
    daemons.iter().for_each(|daemon| daemon.report(&mut bench.report));
    let [first, .., last] = &daemons;
    let flat = Figure::new("poll.flat", Unit::Us, &last.times[0].p50).floor("poll.1.p50", &first.times[0].p50);
    bench.report.add(flat.target(TimesFloor(MAX_FLAT_RATIO)).note("poll.10000.p50 again"));
}

/// Measures 64 KiB by `poll`, and 200 lines by `log`, from the middle of a large log.
pub fn page(bench: &mut Bench) {
    let bytes = bench.pick(256 << 20, 1 << 30);
    let daemon = Daemon::start_with("log_max_bytes = 4294967296\n", &[]);
    let argv = bench.small.argv(&["lines", &bytes.to_string()]);
    let process = toold_test_support::rig::id(&daemon.ok("exec", json!({ "argv": argv })));
    let lines = daemon.closed(&process)["lines"].as_u64().unwrap();
    let (mut client, mut echo) = (Client::open(&daemon.socket()), Echo::start());
    let (mut polls, mut logs) = (Series::default(), Series::default());
    let (mut poll_floor, mut log_floor) = (Series::default(), Series::default());
    let (repetitions, count) = bench.pick((5, 40), (9, 200));
    for repetition in 0..repetitions {
        // Never the same page twice.
        let mut step = repetition * count;
        let (mut poll_bytes, mut log_bytes) = (0, 0);
        polls.take(count, || {
            step += 1;
            let time = client.ask(&call("poll", json!({ "id": process, "cursor": bytes / 2 + step * 70_000 })));
            poll_bytes = client.last().len();
            time
        });
        logs.take(count, || {
            step += 1;
            let time = client.ask(&call("log", json!({ "id": process, "offset": lines / 2 + step as u64 * 300 })));
            log_bytes = client.last().len();
            time
        });
        assert!(poll_bytes > 65_536 && log_bytes > 16_000, "{poll_bytes} {log_bytes}");
        poll_floor.take(count, || echo.ask_for(poll_bytes));
        log_floor.take(count, || echo.ask_for(log_bytes));
    }
    let (name, note) = ("as many bytes by a socket", format!("a log of {} MiB", bytes >> 20));
    bench.report.add(Figure::new("page.poll.p50", Unit::Us, &polls.p50).floor(name, &poll_floor.p50).note(&note));
    bench.report.add(Figure::new("page.log.p50", Unit::Us, &logs.p50).floor(name, &log_floor.p50).note(&note));
}
