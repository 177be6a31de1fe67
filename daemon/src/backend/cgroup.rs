//! Limits on a whole tree by control groups, if the system allows it. A limit that cannot be enforced is reported with
//! the reason, never ignored silently.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use toold_format::fnv1a;
use toold_proto::ProcId;
use toold_proto::params::Limits;
use toold_proto::process::LimitReport;

/// The period over which CPU time is divided, in microseconds: the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;

/// The smallest memory limit. The child enters its group while it still shares the memory of its shim, and the kernel
/// kills both if the arguments and the environment, at most 6 MiB, do not fit: the exit would be lost with the shim.
const MIN_MEMORY_BYTES: u64 = 8 * 1024 * 1024;
/// The smallest numbers that mean no limit. The kernel has at most 2^22 pids, and refuses more than 2^44 µs in a period.
const UNLIMITED_PIDS: u64 = 1 << 22;
const UNLIMITED_CPU_PERCENT: u64 = 1 << 30;

/// The leaf group that the unit puts toold into (`DelegateSubgroup=`), so that limited groups can be beside it: the
/// kernel forbids processes and controllers in the same group.
const LEAF: &str = "daemon";

/// The reason why a service's own group cannot have limited groups below it: the kernel lets no process into a group
/// with such groups, and systemd could not restart a killed daemon there.
const NO_LEAF_GROUP: &str =
    "systemd gave toold no leaf of its own below its service; version 254 or later does (DelegateSubgroup=)";

/// The daemon that a group belongs to, by its state directory. Several daemons have groups beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOwner(u64);

impl GroupOwner {
    pub fn new(procs_dir: &Path) -> GroupOwner {
        GroupOwner(fnv1a(procs_dir.as_os_str().as_encoded_bytes()))
    }

    fn group_name(self, id: ProcId) -> String {
        format!("{id}.{:016x}", self.0)
    }

    fn has(self, name: &str) -> bool {
        name.strip_suffix(&format!(".{:016x}", self.0)).is_some_and(|id| id.parse::<ProcId>().is_ok())
    }
}

/// The limits of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedLimits {
    limits: [Option<u64>; 5],
    /// The start is refused if one cannot be enforced.
    pub required: bool,
}

/// The enforced limits.
#[derive(Debug, Default)]
pub struct Enforced {
    pub reports: BTreeMap<String, LimitReport>,
    pub dirs: Vec<PathBuf>,
    /// File in which the kernel counts out-of-memory kills of the group.
    pub oom_file: Option<PathBuf>,
}

/// A kernel controller: the limit's name here, the controller's name, and the files of each version.
struct Controller {
    key: &'static str,
    name: &'static str,
    v1: fn(u64) -> Vec<(&'static str, String)>,
    v2: fn(u64) -> Vec<(&'static str, String)>,
    oom: Option<(&'static str, &'static str)>,
}

const CONTROLLERS: [Controller; 3] = [
    Controller {
        key: "memory_bytes",
        name: "memory",
        v1: |n| vec![("memory.limit_in_bytes", n.to_string())],
        v2: |n| vec![("memory.max", n.to_string())],
        oom: Some(("memory.oom_control", "memory.events")),
    },
    Controller {
        key: "cpu_percent",
        name: "cpu",
        v1: |n| {
            let quota = cpu_quota(n).map_or("-1".into(), |quota| quota.to_string());
            vec![("cpu.cfs_period_us", CPU_PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota)]
        },
        v2: |n| {
            let quota = cpu_quota(n).map_or("max".into(), |quota| quota.to_string());
            vec![("cpu.max", format!("{quota} {CPU_PERIOD_US}"))]
        },
        oom: None,
    },
    Controller { key: "pids", name: "pids", v1: pids_max, v2: pids_max, oom: None },
];

/// Returns the CPU time in a period. None: no limit.
fn cpu_quota(percent: u64) -> Option<u64> {
    (percent < UNLIMITED_CPU_PERCENT).then(|| percent * (CPU_PERIOD_US / 100))
}

fn pids_max(pids: u64) -> Vec<(&'static str, String)> {
    vec![("pids.max", if pids < UNLIMITED_PIDS { pids.to_string() } else { "max".into() })]
}

impl RequestedLimits {
    pub fn new(limits: &Limits, required: bool) -> RequestedLimits {
        let l = limits;
        RequestedLimits { limits: [l.memory_bytes, l.cpu_percent, l.pids, l.output_bytes, l.idle_ms], required }
    }

    /// Returns the limits as the request has them.
    pub fn limits(&self) -> Limits {
        let [memory_bytes, cpu_percent, pids, output_bytes, idle_ms] = self.limits;
        Limits { memory_bytes, cpu_percent, pids, output_bytes, idle_ms }
    }

    /// Creates the groups. The process enters them itself, before it executes its program.
    pub fn enforce(&self, id: ProcId, owner: GroupOwner, kept: u64) -> Enforced {
        let mut done = Enforced::default();
        let [.., output, idle] = self.limits;
        for (key, value) in [("output_bytes", output), ("idle_ms", idle)] {
            if let Some(requested) = value {
                let note = (key == "output_bytes" && kept != requested).then(|| format!("{kept} bytes are kept"));
                let report = LimitReport { requested, enforced_by: Some("shim".into()), note, oom_kills: None };
                done.reports.insert(key.into(), report);
            }
        }
        for (controller, value) in CONTROLLERS.iter().zip(self.limits) {
            let Some(requested) = value else { continue };
            let floor = if controller.key == "memory_bytes" { MIN_MEMORY_BYTES } else { 0 };
            let (enforced_by, note) = match apply(controller, requested.max(floor), &owner.group_name(id), &mut done) {
                Ok(by) => {
                    (Some(by.to_string()), (requested < floor).then(|| format!("raised to {floor}, the minimum")))
                }
                Err(why) => (None, Some(why)),
            };
            done.reports.insert(controller.key.into(), LimitReport { requested, enforced_by, note, oom_kills: None });
        }
        done
    }

    /// Removes the groups and returns the limits that are not enforced, if the caller requires them to be.
    pub fn refuse(&self, enforced: &Enforced) -> Option<BTreeMap<String, LimitReport>> {
        let lacking = || enforced.reports.iter().filter(|(_, report)| report.enforced_by.is_none());
        if !self.required || lacking().next().is_none() {
            return None;
        }
        remove(&enforced.dirs);
        Some(lacking().map(|(key, report)| (key.clone(), report.clone())).collect())
    }
}

/// Sets one limit in the group of one process.
fn apply(controller: &Controller, value: u64, name: &str, done: &mut Enforced) -> Result<&'static str, String> {
    let hierarchies = Hierarchies::read().map_err(|e| format!("read the control groups: {e}"))?;
    let (base, version) = hierarchies.find(controller.name).ok_or_else(|| {
        format!("this system has no `{}` control group controller that toold may use", controller.name)
    })?;
    if version == 2 && hierarchies.shares_with_systemd {
        return Err(NO_LEAF_GROUP.into());
    }
    let parent = base.join("toold");
    let dir = parent.join(name);
    let failed = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    if !dir.exists() {
        std::fs::create_dir_all(&parent).map_err(|e| failed(&parent, e))?;
        if version == 2 {
            enable(&base, &parent, controller.name)?;
        }
        std::fs::create_dir(&dir).map_err(|e| failed(&dir, e))?;
        done.dirs.push(dir.clone());
    }
    let settings = if version == 2 { (controller.v2)(value) } else { (controller.v1)(value) };
    for (file, text) in settings {
        let file = dir.join(file);
        std::fs::write(&file, text).map_err(|e| failed(&file, e))?;
    }
    if let Some((v1, v2)) = controller.oom {
        done.oom_file = Some(dir.join(if version == 2 { v2 } else { v1 }));
    }
    Ok(if version == 2 { "cgroup2" } else { "cgroup1" })
}

/// Enables a version 2 controller for the groups below ours.
fn enable(base: &Path, parent: &Path, name: &str) -> Result<(), String> {
    for dir in [base, parent] {
        let file = dir.join("cgroup.subtree_control");
        std::fs::write(&file, format!("+{name}"))
            .map_err(|e| format!("{}: {e}; run toold in a delegated control group of its own", file.display()))?;
    }
    Ok(())
}

/// The group of this process in each hierarchy.
struct Hierarchies {
    v1: Vec<(Vec<String>, PathBuf)>,
    v2: Option<PathBuf>,
    /// The group is a service's own, in which systemd starts the next main process.
    shares_with_systemd: bool,
}

impl Hierarchies {
    fn read() -> io::Result<Hierarchies> {
        let groups = std::fs::read_to_string("/proc/self/cgroup")?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Hierarchies::parse(&groups, &mounts))
    }

    fn parse(groups: &str, mounts: &str) -> Hierarchies {
        let mut found = Hierarchies { v1: Vec::new(), v2: None, shares_with_systemd: false };
        for mount in mounts.lines() {
            let Some((left, right)) = mount.split_once(" - ") else { continue };
            let Some(point) = left.split(' ').nth(4) else { continue };
            let mut right = right.split(' ');
            let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
            for group in groups.lines() {
                let mut parts = group.splitn(3, ':').skip(1);
                let (names, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                let dir = PathBuf::from(format!("{point}{}", path.trim_end_matches('/')));
                match kind {
                    "cgroup2" if names.is_empty() => {
                        found.shares_with_systemd = is_service(&dir);
                        found.v2 = Some(above_leaf(dir));
                    }
                    "cgroup" if !names.is_empty() => {
                        let names: Vec<String> = names.split(',').map(String::from).collect();
                        if names.iter().all(|n| options.split(',').any(|o| o == n)) {
                            found.v1.push((names, dir));
                        }
                    }
                    // Other file systems.
                    _ => {}
                }
            }
        }
        found
    }

    fn find(&self, controller: &str) -> Option<(PathBuf, u8)> {
        let two = self.v2.as_ref().filter(|dir| {
            let list = std::fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
            list.split_ascii_whitespace().any(|c| c == controller)
        });
        let one = self.v1.iter().find(|(names, dir)| names.iter().any(|n| n == controller) && dir.is_dir());
        two.map(|dir| (dir.clone(), 2)).or_else(|| one.map(|(_, dir)| (dir.clone(), 1)))
    }
}

/// Returns the group that was delegated to us: our own, or the service's if systemd gave us a leaf in it.
fn above_leaf(dir: PathBuf) -> PathBuf {
    match dir.parent() {
        Some(parent) if dir.ends_with(LEAF) && is_service(parent) => parent.into(),
        // Our own: without a leaf, or a leaf of unknown origin.
        Some(_) | None => dir,
    }
}

fn is_service(dir: &Path) -> bool {
    dir.extension().is_some_and(|kind| kind == "service")
}

/// Removes the groups of starts that never were: an earlier daemon died after it created them and before the record.
/// Only this daemon creates groups of `owner`, and it has started none yet. A group with a process in it stays.
pub fn sweep(owner: GroupOwner, used: &HashSet<PathBuf>) {
    let Ok(hierarchies) = Hierarchies::read() else { return };
    let bases: BTreeSet<PathBuf> =
        CONTROLLERS.iter().filter_map(|controller| Some(hierarchies.find(controller.name)?.0)).collect();
    for entry in bases.iter().filter_map(|base| std::fs::read_dir(base.join("toold")).ok()).flatten().flatten() {
        let is_left = entry.file_name().to_str().is_some_and(|name| owner.has(name)) && !used.contains(&entry.path());
        if is_left && let Err(e) = std::fs::remove_dir(entry.path()) {
            tracing::warn!(dir = %entry.path().display(), %e, "failed to remove a control group of an earlier daemon");
        }
    }
}

/// Removes the groups of a finished process.
pub fn remove(dirs: &[PathBuf]) {
    for dir in dirs {
        match std::fs::remove_dir(dir) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => tracing::warn!(dir = %dir.display(), %e, "failed to remove a control group"),
        }
    }
}

/// Returns the groups of this process that may limit the number of processes, in either version.
pub fn pids_dirs() -> Vec<PathBuf> {
    let Ok(found) = Hierarchies::read() else { return Vec::new() };
    let of_v1 = found.v1.into_iter().filter(|(names, _)| names.iter().any(|name| name == "pids"));
    of_v1.map(|(_, dir)| dir).chain(found.v2).collect()
}

/// Lists the available controllers with the version of their hierarchy. Returns None if they cannot be read.
pub fn available_controllers() -> Option<Vec<(&'static str, u8)>> {
    let hierarchies = Hierarchies::read().ok()?;
    Some(CONTROLLERS.iter().filter_map(|c| Some((c.name, hierarchies.find(c.name)?.1))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_service_only_a_leaf_leaves_room_for_limited_groups() {
        let seen = |group: &str| {
            let mounts = "32 1 0:28 / /c rw - cgroup2 cgroup2 rw\n";
            let found = Hierarchies::parse(&format!("0::{group}\n"), mounts);
            (found.v2, found.shares_with_systemd)
        };
        assert_eq!(seen("/u/toold.service/daemon"), (Some("/c/u/toold.service".into()), false));
        assert_eq!(seen("/u/toold.service"), (Some("/c/u/toold.service".into()), true));
        assert_eq!(seen("/u/daemon"), (Some("/c/u/daemon".into()), false), "a group of that name outside a service");
    }

    #[test]
    fn both_versions_are_found_in_a_hybrid_system() {
        let groups = "4:memory:/a\n3:cpu,cpuacct:/\n0::/b/c\n";
        let mounts = "30 1 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 1 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = Hierarchies::parse(groups, mounts);
        assert_eq!(found.v2, Some(PathBuf::from("/sys/fs/cgroup/unified/b/c")));
        let dirs: Vec<&Path> = found.v1.iter().map(|(_, d)| d.as_path()).collect();
        assert_eq!(dirs, [Path::new("/sys/fs/cgroup/memory/a"), Path::new("/sys/fs/cgroup/cpu")]);
    }
}
