//! Starting: latency of `exec`, and jobs per second.

use crate::Bench;
use crate::client::{Client, call};
use crate::floors::{bare_true, spawn_and_wait};
use crate::report::Target::{PartOfFloor, TimesFloor};
use crate::report::{Figure, Unit};
use crate::sample::{Series, seconds};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::time::Duration;
use toold_test_support::rig::{Daemon, id};

const EXEC_SHIM: &str = "shim = \"exec\"\n";
/// Config of a daemon that does not wait for the disk, to show the cost of the wait.
pub const UNSYNCED: &str = "survive_power_cut = false\n";
const MANY: &str = "max_pending = 100000\n[retention]\nmax_count = 100000\n[queues.four]\nslots = 4\n";
/// Jobs that wait in a queue, of which four run at a time.
const QUEUED: usize = 1000;
/// Concurrent requests: below `max_requests_in_flight`.
const IN_FLIGHT: usize = 100;
/// Idle time of all processes before a start is measured.
const IDLE_DURATION: Duration = Duration::from_millis(1);

/// Measures the response of `exec` on an idle daemon, and the time to the program's exit.
pub fn latency(bench: &mut Bench) {
    let (zygote, execd) = (Daemon::start(), Daemon::start_with(EXEC_SHIM, &[]));
    let unsynced = Daemon::start_with(UNSYNCED, &[]);
    let (mut zygote_client, mut execd_client) = (Client::open(&zygote.socket()), Client::open(&execd.socket()));
    let mut unsynced_client = Client::open(&unsynced.socket());
    let (mut by_unsynced, mut disk, page) = (Series::default(), Series::default(), Page::new(zygote.root()));
    let (repetitions, count) = bench.pick((5, 150), (9, 1000));
    let (mut spawn, mut whole, mut whole_ours) = (Series::default(), Series::default(), Series::default());
    let (mut by_zygote, mut by_exec) = (Series::default(), Series::default());
    let to_end = call("exec", json!({ "argv": ["/bin/true"], "yield_ms": 60_000 }));
    started(&mut zygote_client);
    started(&mut execd_client);
    started(&mut unsynced_client);
    for _ in 0..repetitions {
        let rested = |_| {
            rest();
            spawn_and_wait(&mut bare_true())
        };
        let both: Vec<(f64, f64)> = (0..count).map(rested).collect();
        spawn.add(both.iter().map(|both| both.0).collect());
        whole.add(both.iter().map(|both| both.1).collect());
        by_zygote.take(count, || started(&mut zygote_client));
        by_unsynced.take(count, || started(&mut unsynced_client));
        disk.take(count, || {
            rest();
            page.sync()
        });
        whole_ours.take(count, || {
            rest();
            zygote_client.ask(&to_end)
        });
        by_exec.take(count / 2, || started(&mut execd_client));
    }
    let (name, p99) = ("posix_spawn", "posix_spawn p99");
    let report = &mut bench.report;
    let zygote = Figure::new("exec.zygote.p50", Unit::Us, &by_zygote.p50).floor(name, &spawn.p50);
    report.add(zygote.target(TimesFloor(2.0)).note("/bin/true; the floor returns when the program was exec'd"));
    report.add(Figure::new("exec.unsynced.p50", Unit::Us, &by_unsynced.p50).floor(name, &spawn.p50));
    report.add(Figure::new("floor.fdatasync.p50", Unit::Us, &disk.p50).note("of a page that the disk has a place for"));
    report.add(Figure::new("exec.zygote.p99", Unit::Us, &by_zygote.p99).floor(p99, &spawn.p99));
    report.add(Figure::new("exec.execd.p50", Unit::Us, &by_exec.p50).floor(name, &spawn.p50));
    report.add(Figure::new("exec.execd.p99", Unit::Us, &by_exec.p99).floor(p99, &spawn.p99));
    let whole_name = "posix_spawn + wait";
    let end = Figure::new("exec.to_exit.p50", Unit::Us, &whole_ours.p50).floor(whole_name, &whole.p50);
    report.add(end.note("one call with `yield_ms`, answered at the exit"));
}

/// A file whose blocks are allocated on the disk.
struct Page(std::fs::File);

impl Page {
    fn new(dir: &std::path::Path) -> Page {
        let file = std::fs::File::create(dir.join("page")).unwrap();
        file.write_all_at(&[0; 8192], 0).unwrap();
        file.sync_all().unwrap();
        Page(file)
    }

    /// Measures microseconds of a write with `fdatasync`.
    fn sync(&self) -> f64 {
        seconds(|| {
            self.0.write_all_at(&[1; 96], 1024).unwrap();
            self.0.sync_data().unwrap();
        }) * 1e6
    }
}

/// Waits until all processes are idle.
pub fn rest() {
    std::thread::sleep(IDLE_DURATION); // measured: from rest, ours and the floor alike
}

/// Measures microseconds of one start. Waits for its exit too, which is not counted.
fn started(client: &mut Client) -> f64 {
    started_by(client, &call("exec", json!({ "argv": ["/bin/true"] })))
}

/// The same for a given call.
pub fn started_by(client: &mut Client, exec: &[u8]) -> f64 {
    rest();
    let time = client.ask(exec);
    let answer = serde_json::from_slice::<Value>(client.last()).unwrap();
    client.checked(&call("wait", json!({ "id": id(&answer["result"]), "until": "closed" })));
    time
}

/// Measures jobs per second: `true`, submitted one after the other, until all have exited.
pub fn jobs(bench: &mut Bench) {
    let daemon = Daemon::start_with(MANY, &[]);
    let unsynced = Daemon::start_with(&format!("{UNSYNCED}{MANY}"), &[]);
    let (repetitions, count) = bench.pick((5, 500), (9, 2000));
    let (mut ours, mut at_once, mut floor, mut serial) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut without, mut queued, mut unqueued) = (Vec::new(), Vec::new(), Vec::new());
    let (plain, in_queue) = (json!({ "argv": ["/bin/true"] }), json!({ "argv": ["/bin/true"], "queue": "four" }));
    let per_second = |time: f64| count as f64 / time;
    submitted(&daemon, 50, &plain);
    submitted(&unsynced, 50, &plain);
    for _ in 0..repetitions {
        floor.push(per_second(seconds(|| {
            let mut all: Vec<Child> = (0..count).map(|_| bare_true().spawn().unwrap()).collect();
            all.iter_mut().for_each(|child| assert!(child.wait().unwrap().success()));
        })));
        serial.push(per_second((0..count).map(|_| spawn_and_wait(&mut bare_true()).1).sum::<f64>() / 1e6));
        ours.push(per_second(submitted(&daemon, count, &plain)));
        without.push(per_second(submitted(&unsynced, count, &plain)));
        unqueued.push(QUEUED as f64 / submitted(&daemon, QUEUED, &plain));
        queued.push(QUEUED as f64 / submitted(&daemon, QUEUED, &in_queue));
        at_once.push(per_second(seconds(|| in_flight(&daemon, count))));
    }
    let report = &mut bench.report;
    report.add(Figure::new("floor.spawn_wait.rate", Unit::PerSecond, &serial).note("each awaited before the next"));
    report.add(
        Figure::new("jobs.rate", Unit::PerSecond, &ours)
            .floor("posix_spawn all, reap all", &floor)
            .target(PartOfFloor(0.6)),
    );
    let without = Figure::new("jobs.rate.unsynced", Unit::PerSecond, &without);
    report.add(without.floor("posix_spawn all, reap all", &floor).note("with survive_power_cut = false"));
    report.add(
        Figure::new("jobs.rate.queued", Unit::PerSecond, &queued)
            .floor("the same jobs without a queue", &unqueued)
            .target(PartOfFloor(0.8))
            .note(format!("{QUEUED} jobs in a queue with 4 slots")),
    );
    report.add(
        Figure::new("jobs.rate.in_flight", Unit::PerSecond, &at_once)
            .floor("posix_spawn all, reap all", &floor)
            .note(format!("{IN_FLIGHT} requests on their way at once, each answered at its exit")),
    );
}

/// Measures seconds until the last job has exited.
fn submitted(daemon: &Daemon, count: usize, params: &Value) -> f64 {
    let (mut client, mut events) = (Client::open(&daemon.socket()), daemon.conn());
    events.call("events.subscribe", json!({ "types": ["exited"] })).unwrap();
    let exec = call("exec", params.clone());
    seconds(|| {
        std::thread::scope(|scope| {
            // Events are not parsed while time is measured: lines are counted.
            let all = scope.spawn(|| (0..count).for_each(|_| drop(events.line().unwrap())));
            for _ in 0..count {
                client.ask(&exec);
            }
            all.join().unwrap();
        });
    })
}

fn in_flight(daemon: &Daemon, count: usize) {
    let mut conn = daemon.conn();
    let exec = call("exec", json!({ "argv": ["/bin/true"], "yield_ms": 60_000 }));
    let first = IN_FLIGHT.min(count);
    (0..first).for_each(|_| conn.send_raw(&exec));
    for n in 0..count {
        conn.line().unwrap();
        if n + first < count {
            conn.send_raw(&exec);
        }
    }
}
