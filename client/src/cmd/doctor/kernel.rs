//! The kernel's features: what each is for, and what its absence costs. Pure.

use super::Check;
use super::checks::{ok, warning};
use serde_json::Value;
use std::collections::BTreeMap;

/// Each feature with the cost of its absence, and what enables it.
const SWITCHES: [(&str, &str, &str); 5] = [
    ("proc", "`kill` reaches only the group of a program, and no usage is known", "mount -t proc proc /proc"),
    (
        "pidfd",
        "in old kernels `kill` reaches a descendant only when its parents have ended",
        "uname -r   # Linux 5.3 or later has it",
    ),
    (
        "pidfd_exit",
        "the exit of a process whose shim was killed is `lost` and not known",
        "uname -r   # Linux 6.15 or later has it",
    ),
    ("proc_children", "finding a process's descendants reads all of /proc", "zgrep PROC_CHILDREN /proc/config.gz"),
    ("zygote", "every start costs an exec more", "grep shim ~/.config/toold/config.toml   # it is \"exec\""),
];
const CONTROLLERS: [(&str, &str); 3] = [("memory", "--memory"), ("cpu", "--cpu"), ("pids", "--pids")];

pub fn checks(features: &BTreeMap<String, Value>) -> Vec<Check> {
    let is = |name: &str| features.get(name) == Some(&Value::Bool(true));
    let missing = SWITCHES.iter().filter(|(name, ..)| features.contains_key(*name) && !is(name));
    let mut checks: Vec<Check> =
        missing.map(|(name, cost, fix)| warning("kernel", format!("no {name}: {cost}"), *fix)).collect();
    if features.get("landlock_abi").is_some_and(|abi| abi.as_u64().unwrap_or(0) == 0) {
        checks.push(warning("kernel", "no landlock: jobs cannot be confined to files", "cat /sys/kernel/security/lsm"));
    }
    let groups = features.get("cgroup");
    let lacks = |name: &str| groups.is_some_and(|groups| groups.get(name).is_none());
    let lacking: Vec<&str> = CONTROLLERS.iter().filter(|(name, _)| lacks(name)).map(|(_, limit)| *limit).collect();
    if !lacking.is_empty() {
        let text = format!(
            "control groups lack what {} need: they are not enforced, and `exec` reports that",
            lacking.join(", ")
        );
        checks.push(warning("kernel", text, "cat /sys/fs/cgroup/cgroup.controllers"));
    }
    if checks.is_empty() {
        checks.push(ok("kernel", "all required features are present"));
    }
    checks
}
