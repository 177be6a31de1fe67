//! Facts about processes that the test reads from `/proc` itself, without the daemon.

use std::fs;

/// The namespaces of a sandbox.
const NAMESPACES: [&str; 4] = ["user", "ipc", "net", "mnt"];

/// The name that a process gave itself.
pub fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_string()
}

/// The children of all threads of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()).collect()
}

/// The kernel's letter for the state of a process: `T` is stopped.
pub fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

/// The processor time of a process, of its user's code and the kernel's, in ticks of the clock.
pub fn cpu_ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The fields after the name, which is in parentheses; user and kernel time are the 14th and 15th of all.
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    rest.split_ascii_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The number of threads of a process that compute, or would if there were a free CPU.
pub fn running_threads(pid: i32) -> usize {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let stats = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    // The state follows the name, which is in parentheses.
    stats.filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))).count()
}

/// The namespaces that a process is in and in which a sandbox may put it: `mnt:[4026531841]` and others.
pub fn namespaces(pid: i32) -> Vec<String> {
    let links = NAMESPACES.iter().filter_map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// The namespaces, and rules of Landlock, that a process keeps by a descriptor.
pub fn kept_namespaces(pid: i32) -> Vec<String> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = fds.filter_map(|fd| Some(fs::read_link(fd.ok()?.path()).ok()?.display().to_string()));
    let is_namespace = |link: &str| NAMESPACES.iter().any(|kind| link.starts_with(&format!("{kind}:[")));
    links.filter(|link| is_namespace(link) || link.starts_with("anon_inode:[landlock")).collect()
}
