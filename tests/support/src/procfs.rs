//! Facts about processes that the test reads from `/proc` itself, without the daemon.

use std::fs;

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
