//! An idle daemon does not wake up.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};
use toold_test_support::procfs;
use toold_test_support::rig::Daemon;

const SLEEPERS: usize = 20;
/// The threads of an idle daemon: the main one, that of the log, and four that run tasks.
pub const THREADS: usize = 6;
/// The time without a switch before the idle time starts: a thread may wake up once more for the time limit of a start, which is
/// 10 seconds, although the start is done.
const SETTLED_TIME: Duration = Duration::from_secs(11);
/// The time in which no thread may wake up.
const IDLE_TIME: Duration = Duration::from_secs(3);

#[test]
fn daemon_zygote_spares_and_shims_do_not_wake_up_while_nothing_happens() {
    let daemon = Daemon::start();
    // The daemon checks its sandbox some time after its start, and keeps the namespaces for a moment.
    daemon.eventually("the sandbox was checked", || daemon.ok("daemon.info", json!({}))["sandbox"].is_object());
    daemon.eventually("no namespace is kept", || procfs::kept_namespaces(daemon.pid()).is_empty());
    // Nothing has ended yet, so that no record waits for a sync.
    let ids: Vec<String> = (0..SLEEPERS).map(|_| daemon.sh("exec sleep 1000")).collect();
    // A second after an event, a thread of the pool starts the writeback of the journal.
    daemon.eventually("the events are on their way to the disk", || threads(daemon.pid()).len() > THREADS);
    // The last exec is answered before its shim is idle, and the threads of the pool end only after a while.
    let (mut last, mut since) = (switches(&daemon), Instant::now());
    daemon.eventually("all have settled", || {
        let now = switches(&daemon);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        threads(daemon.pid()).len() == THREADS && since.elapsed() > SETTLED_TIME
    });
    let before = switches(&daemon);
    let shims = before.keys().filter(|(name, _)| name == "toold-shim").count();
    assert_eq!(shims, SLEEPERS, "{before:?}");
    // Not a wait for an event: the time in which nothing happens is the measurement.
    std::thread::sleep(IDLE_TIME); // measured: no switches in this time
    assert_eq!(switches(&daemon), before, "a thread woke up");
    daemon.ok("kill", json!({ "ids": ids }));
}

fn threads(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Context switches of each of our threads, by process name and thread.
fn switches(daemon: &Daemon) -> BTreeMap<(String, i32), u64> {
    let mut all = BTreeMap::new();
    let ours = daemon.marked().into_iter().map(|p| p.pid).chain([daemon.pid()]);
    for pid in ours.filter(|pid| procfs::name(*pid).starts_with("toold")) {
        for thread in threads(pid) {
            // A thread of the pool may end between listing and reading.
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")) else { continue };
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            let sum = counts.map(|line| line.split_ascii_whitespace().last().unwrap().parse::<u64>().unwrap()).sum();
            all.insert((procfs::name(pid), thread), sum);
        }
    }
    all
}
