//! The limit on processes and threads that this daemon lives under, with all of its jobs: what it takes for itself, they
//! do not have.

use super::cgroup;
use crate::disk;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::path::{Path, PathBuf};

/// A limit below which the daemon takes as few threads and processes for itself as it can.
const SMALL_LIMIT: u64 = 64;

/// The smallest limit, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLimit {
    pub max: u64,
    source: LimitSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LimitSource {
    /// `pids.max` of a control group.
    Group(PathBuf),
    /// RLIMIT_NPROC: all processes of the user count.
    User,
}

impl fmt::Display for ProcessLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            LimitSource::Group(dir) => write!(f, "pids.max = {} in {}", self.max, dir.display()),
            LimitSource::User => write!(f, "RLIMIT_NPROC = {} (ulimit -u)", self.max),
        }
    }
}

impl ProcessLimit {
    /// Reads the limits of this process. None: there is none, or it cannot be read.
    pub fn read() -> Option<ProcessLimit> {
        let groups = cgroup::pids_dirs();
        let of_groups = groups.iter().filter_map(|dir| group_limit(dir));
        // The kernel does not apply it to root.
        let of_user = getrlimit(Resource::Nproc).current.filter(|_| !rustix::process::geteuid().is_root());
        let of_user = of_user.map(|max| ProcessLimit { max, source: LimitSource::User });
        of_groups.chain(of_user).min_by_key(|limit| limit.max)
    }
}

/// Finds the smallest limit on the way from a group to the root of its hierarchy. A limit of a group above counts too.
fn group_limit(dir: &Path) -> Option<ProcessLimit> {
    let limit = |dir: &Path| {
        let max = std::fs::read_to_string(dir.join("pids.max")).ok()?.trim().parse().ok()?;
        Some(ProcessLimit { max, source: LimitSource::Group(dir.into()) })
    };
    dir.ancestors().filter_map(limit).min_by_key(|limit| limit.max)
}

/// Workers that no disk can stop.
const FREE_WORKERS: usize = 2;
/// Blocking threads for work that needs no disk.
const FREE_BLOCKING_THREADS: usize = 4;

/// The threads and spare shims of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnProcesses {
    pub workers: usize,
    pub blocking_threads: usize,
    /// Blocking threads stay: a new one may not be possible when it is needed.
    pub keeps_threads: bool,
    pub max_spares: usize,
}

impl OwnProcesses {
    /// Chooses their numbers for a limit. Below a small one, a disk that hangs stops the only worker.
    pub fn for_limit(limit: Option<&ProcessLimit>) -> OwnProcesses {
        match limit.is_some_and(|limit| limit.max < SMALL_LIMIT) {
            true => OwnProcesses { workers: 1, blocking_threads: 2, keeps_threads: true, max_spares: 1 },
            false => OwnProcesses {
                workers: FREE_WORKERS + disk::PLACES,
                blocking_threads: FREE_BLOCKING_THREADS + disk::BLOCKING_PLACES,
                keeps_threads: false,
                max_spares: toold_shim::spare::MAX_SPARES,
            },
        }
    }
}

/// Explains an EAGAIN of a fork.
pub fn explain() -> String {
    match ProcessLimit::read() {
        Some(limit) => format!("; the limit on processes and threads is reached: {limit}"),
        None => "; the kernel has no process left: kernel.pid_max, kernel.threads-max or memory".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let leaf = root.path().join("a/b");
        std::fs::create_dir_all(&leaf).expect("directories");
        assert_eq!(group_limit(&leaf), None);
        let set = |dir: &Path, text: &str| std::fs::write(dir.join("pids.max"), text).expect("a file");
        set(&leaf, "max\n");
        set(&root.path().join("a"), "16\n");
        set(root.path(), "32\n");
        let limit = group_limit(&leaf).expect("a limit");
        assert_eq!(limit.to_string(), format!("pids.max = 16 in {}/a", root.path().display()));
        assert_eq!(OwnProcesses::for_limit(Some(&limit)).workers, 1);
        assert_eq!(OwnProcesses::for_limit(None).workers, 2 + crate::disk::PLACES);
    }
}
