//! Many processes of one daemon, running and finished, and their numbers in /proc.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// Config that allows and retains all processes started here.
const CONFIG: &str = "max_running = 20000\n[retention]\nmax_count = 100000\n";
/// Descriptors of the daemon for a running process: its record, its shim's connection, its pidfd.
const FDS_PER_PROCESS: usize = 3;
/// Descriptors for everything else.
const OTHER_FDS: usize = 1000;
/// Concurrent requests: below `max_requests_in_flight`.
pub const IN_FLIGHT: usize = 100;

/// Starts a daemon that retains all processes started here.
pub fn daemon() -> Daemon {
    Daemon::start_with(CONFIG, &[])
}

/// Returns how many of `count` can run at once: the daemon needs descriptors for each, and the system limits their number.
pub fn max_running(count: usize) -> usize {
    let text = fs::read_to_string("/proc/self/limits").unwrap();
    let files = text.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let hard = files.split_ascii_whitespace().nth(1).and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    count.min(hard.saturating_sub(OTHER_FDS) / FDS_PER_PROCESS)
}

/// Starts `count` processes that sleep, and returns their ids.
pub fn sleeping(daemon: &Daemon, count: usize) -> Vec<String> {
    started(daemon, count, json!({ "argv": ["sleep", "100000"] }))
}

/// Starts `count` processes and waits until they have exited.
pub fn finished(daemon: &Daemon, count: usize) {
    started(daemon, count, json!({ "argv": ["/bin/true"], "yield_ms": 60_000 }));
}

/// Starts `count` processes and returns their ids.
pub fn started(daemon: &Daemon, count: usize, exec: Value) -> Vec<String> {
    let mut conn = daemon.conn();
    let mut ids = Vec::new();
    while ids.len() < count {
        let some = IN_FLIGHT.min(count - ids.len());
        let calls: Vec<u64> = (0..some).map(|_| conn.request("exec", exec.clone())).collect();
        ids.extend(calls.into_iter().map(|call| id(&conn.answer(call).unwrap())));
    }
    ids
}

/// Returns names and pids of daemon, zygote, spares and shims, without the programs.
pub fn daemon_processes(daemon: &Daemon) -> Vec<(String, i32)> {
    let all = daemon.marked().into_iter().map(|p| p.pid).chain([daemon.pid()]);
    all.map(|pid| (name(pid), pid)).filter(|(name, _)| name.starts_with("toold")).collect()
}

pub fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_string()
}

/// Reads a number from a file of `name: value` lines. 0 if the process or line does not exist.
pub fn field(path: &str, name: &str) -> f64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}

pub fn rss_mib(pid: i32) -> f64 {
    field(&format!("/proc/{pid}/status"), "VmRSS") / 1024.0
}

pub fn pss_kib(pid: i32) -> f64 {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss")
}
