//! The footprint of a daemon: descriptors, threads, dead children, memory.

use super::idle::THREADS;
use serde_json::json;
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::Daemon;

/// Allowed growth of memory. An allocator keeps some of what it freed, and finished records stay.
const MAX_GROWTH_KIB: u64 = 48 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub struct Footprint {
    pub descriptors: usize,
    pub threads: usize,
    pub zombies: usize,
    /// Children of daemon and zygote: the zygote itself and two to four spares.
    pub only_spares: bool,
}

/// The footprint of an idle daemon before the load.
pub struct Baseline {
    weight: Footprint,
    rss_kib: u64,
}

impl Baseline {
    /// Measures after one process, so that lazy initialisation is done.
    pub fn measure(daemon: &Daemon) -> Baseline {
        daemon.run("exit 0");
        // The blocking pool ends its threads after a while, and the shim of the process exits or waits for the next.
        let quiet = |w: &Footprint| w.zombies == 0 && w.only_spares && w.threads == THREADS;
        daemon.eventually("a fresh daemon is at rest", || connections(daemon) == 0 && quiet(&measure(daemon)));
        Baseline { weight: measure(daemon), rss_kib: rss_kib(daemon.pid()) }
    }

    /// Waits until the footprint is as before.
    pub fn wait_restored(&self, daemon: &Daemon) {
        let mut last = String::new();
        daemon.eventually("the daemon weighs what it did before the load (see below)", || {
            let now = measure(daemon);
            if now != self.weight && last != format!("{now:?}") {
                last = format!("{now:?}");
                println!("not yet at rest: {now:?}, before the load {:?}", self.weight);
            }
            now == self.weight
        });
        let rss = rss_kib(daemon.pid());
        println!("memory: {} KiB before, {rss} KiB after", self.rss_kib);
        assert!(rss <= self.rss_kib + MAX_GROWTH_KIB, "memory grew from {} to {rss} KiB", self.rss_kib);
    }
}

pub fn measure(daemon: &Daemon) -> Footprint {
    let pid = daemon.pid();
    let mut children = procfs::children(pid);
    children.extend(children.clone().into_iter().flat_map(procfs::children));
    Footprint {
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter(|fd| !is_prepared(fd)).count(),
        threads: fs::read_dir(format!("/proc/{pid}/task")).unwrap().count(),
        zombies: children.iter().filter(|pid| is_zombie(**pid)).count(),
        only_spares: (3..=5).contains(&children.len()),
    }
}

/// Returns true for a descriptor of a prepared record: their number varies.
fn is_prepared(fd: &std::io::Result<fs::DirEntry>) -> bool {
    let target = fd.as_ref().ok().and_then(|fd| fs::read_link(fd.path()).ok());
    target.is_some_and(|target| target.components().any(|part| part.as_os_str() == "ready"))
}

/// Connections that the daemon has not closed yet, though the test may have.
pub fn connections(daemon: &Daemon) -> usize {
    let socket = daemon.socket().display().to_string();
    // One line is the listening socket itself.
    fs::read_to_string("/proc/net/unix").unwrap().lines().filter(|line| line.ends_with(&socket)).count() - 1
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after)| after.starts_with('Z'))
}

pub fn rss_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Checks that nothing runs, according to the daemon and to /proc.
pub fn nothing_runs(daemon: &Daemon) {
    let counts = daemon.ok("daemon.info", json!({}))["counts"].clone();
    assert_eq!((&counts["running"], &counts["starting"]), (&json!(0), &json!(0)), "{counts}");
    let left = || {
        let names = daemon.marked().into_iter().map(|p| procfs::name(p.pid));
        names.filter(|name| !["toold-zygote", "toold-spare", ""].contains(&name.as_str())).count()
    };
    daemon.eventually("no shim and no program is left", || left() == 0);
}
