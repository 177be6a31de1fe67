//! Nothing wakes when nothing happens.

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use toold_test_support::procfs;
use toold_test_support::rig::Daemon;

const SLEEPERS: usize = 20;
/// Looks that must see the same before the measurement begins.
const SETTLED: usize = 20;
/// How long nobody may wake.
const IDLE: Duration = Duration::from_secs(3);

#[test]
fn daemon_zygote_spares_and_shims_do_not_wake_while_nothing_happens() {
    let daemon = Daemon::start();
    // Nothing has ended yet, so that no record waits to be forced to the disk.
    let ids: Vec<String> = (0..SLEEPERS).map(|_| daemon.sh("exec sleep 1000")).collect();
    // A second after an event the writing of the journal is begun, by a thread of the pool.
    daemon.eventually("the events are on their way to the disk", || threads(daemon.pid()).len() > 3);
    // The last exec is answered before its shim rests, and the pool's threads go only after a while.
    let mut looks = vec![switches(&daemon)];
    daemon.eventually("all have settled", || {
        looks.push(switches(&daemon));
        let last = &looks[looks.len().saturating_sub(SETTLED)..];
        threads(daemon.pid()).len() == 3 && last.len() == SETTLED && last.iter().all(|look| *look == last[0])
    });
    let before = switches(&daemon);
    let shims = before.keys().filter(|(name, _)| name == "toold-shim").count();
    assert_eq!(shims, SLEEPERS, "{before:?}");
    // Not to wait for something: the time in which nothing comes is the measurement.
    std::thread::sleep(IDLE); // measured: no switches in this time
    assert_eq!(switches(&daemon), before, "somebody woke");
    daemon.ok("kill", json!({ "ids": ids }));
}

fn threads(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// How often each thread of ours was switched to, by process name and thread.
fn switches(daemon: &Daemon) -> BTreeMap<(String, i32), u64> {
    let mut all = BTreeMap::new();
    let ours = daemon.marked().into_iter().map(|p| p.pid).chain([daemon.pid()]);
    for pid in ours.filter(|pid| procfs::name(*pid).starts_with("toold")) {
        for thread in threads(pid) {
            // A thread of the pool may go between the list and the look.
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")) else { continue };
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            let sum = counts.map(|line| line.split_ascii_whitespace().last().unwrap().parse::<u64>().unwrap()).sum();
            all.insert((procfs::name(pid), thread), sum);
        }
    }
    all
}
