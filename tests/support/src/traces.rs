//! Traces of a daemon on its machine: processes, namespaces, mounts.

use crate::procfs;
use crate::rig::Daemon;
use std::collections::BTreeSet;
use std::fs;

/// Lists the mounts that a daemon sees, the namespaces that it keeps, and the processes that it started with their namespaces.
/// Spares come and go, and are left out.
pub fn traces(daemon: &Daemon) -> BTreeSet<String> {
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", daemon.pid())).unwrap();
    let mut found: BTreeSet<String> = mounts.lines().map(String::from).collect();
    found.extend(procfs::kept_namespaces(daemon.pid()));
    for pid in daemon.marked().into_iter().map(|process| process.pid) {
        if !["toold-zygote", "toold-spare"].contains(&procfs::name(pid).as_str()) {
            found.insert(format!("process {pid}"));
        }
        found.extend(procfs::namespaces(pid));
    }
    found
}
