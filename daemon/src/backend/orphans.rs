//! Kills what a dead shim left behind. The daemon is a subreaper as the zygote is: an orphan that no zygote gets
//! becomes a child of the daemon, and so does an executed shim, or one whose zygote died.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use toold_shim::pids::Pids;
use toold_shim::sys::{own_pid, pidfd_open};
use toold_shim::tree;

/// Time that a dying shim, or an orphan that got SIGKILL, may take to be dead, and how often it is looked at again.
const DEATH_WAIT: Duration = Duration::from_millis(100);
const DEATH_LOOKS: u32 = 30;

/// Makes this process the parent of orphans below it. Called before any child is started. Returns false where it is
/// not known whose orphan a child is: another program started children before it became this one, or all orphans of the
/// system come here.
pub fn become_subreaper() -> bool {
    let own = own_pid();
    let mut children = Pids::new();
    tree::children(own, &mut children);
    own != 1
        && tree::has_children_files()
        && children.list().is_empty()
        && rustix::process::set_child_subreaper(Pid::from_raw(own)).is_ok()
}

/// The children of the daemon.
pub struct Children {
    is_subreaper: bool,
    /// Those that another part of the daemon waits for: they are neither killed nor reaped here.
    waited_for: Mutex<Vec<i32>>,
    /// Zygotes of earlier daemons, each opened once and closed with the last process of it.
    old_zygotes: Mutex<Vec<OldZygote>>,
}

/// The pid of a zygote, its start time and its pidfd.
type OldZygote = (i32, u64, Weak<OwnedFd>);

impl Children {
    pub fn new(is_subreaper: bool, zygote: Option<i32>) -> Arc<Children> {
        let waited_for = Mutex::new(zygote.into_iter().collect());
        Arc::new(Children { is_subreaper, waited_for, old_zygotes: Mutex::default() })
    }

    pub fn is_subreaper(&self) -> bool {
        self.is_subreaper
    }

    /// Runs a command to its end.
    pub fn run(&self, mut command: Command) -> io::Result<ExitStatus> {
        let mut child = {
            // A child is known before anything here looks at children.
            let mut waited_for = self.waited_for();
            let child = command.spawn()?;
            waited_for.push(child.id() as i32);
            child
        };
        let status = child.wait();
        self.forget(child.id() as i32);
        status
    }

    /// Notes that nothing waits for a child any more.
    pub fn forget(&self, pid: i32) {
        self.waited_for().retain(|waited_for| *waited_for != pid);
    }

    fn waited_for(&self) -> MutexGuard<'_, Vec<i32>> {
        self.waited_for.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns true for the zygote of an earlier daemon that has shims.
    pub fn has_old_zygote(&self, pid: i32) -> bool {
        self.old_zygotes.lock().is_ok_and(|known| known.iter().any(|(zygote, ..)| *zygote == pid))
    }

    /// Returns the pidfd of an earlier daemon's zygote, which all of its shims share.
    pub fn old_zygote(&self, pid: i32, ticks: u64, pin: impl FnOnce() -> Option<OwnedFd>) -> Option<Arc<OwnedFd>> {
        let mut known = self.old_zygotes.lock().ok()?;
        known.retain(|(.., pidfd)| pidfd.strong_count() > 0);
        let found = known.iter().find(|(p, t, _)| (*p, *t) == (pid, ticks));
        if let Some(pidfd) = found.and_then(|(.., pidfd)| pidfd.upgrade()) {
            return Some(pidfd);
        }
        let pidfd = Arc::new(pin()?);
        known.push((pid, ticks, Arc::downgrade(&pidfd)));
        Some(pidfd)
    }

    /// Reaps children, and kills orphans, whenever a child ends.
    pub async fn run_reaper(self: Arc<Self>) {
        let Ok(mut ended) = signal(SignalKind::child()) else {
            tracing::error!("failed to install a handler for SIGCHLD; dead shims are not reaped");
            return;
        };
        loop {
            let children = self.clone();
            let _ = tokio::task::spawn_blocking(move || children.end_orphans_of(&[])).await;
            if ended.recv().await.is_none() {
                return;
            }
        }
    }

    /// Waits for the end of a shim, then kills the orphans of this daemon and of these zygotes until there are none.
    /// Returns true if none is left. It blocks.
    pub fn end_orphans(&self, shim: i32, zygotes: &[i32]) -> bool {
        // The shim closes its connection and its lock before its children get another parent.
        if shim > 0
            && tree::is_shim(shim)
            && let Ok(pidfd) = pidfd_open(shim)
        {
            let _ = (0..DEATH_LOOKS).any(|_| is_dead_soon(&pidfd));
        }
        self.end_orphans_of(zygotes)
    }

    fn end_orphans_of(&self, zygotes: &[i32]) -> bool {
        for _ in 0..DEATH_LOOKS {
            let killed = self.kill_orphans(zygotes);
            let Some(first) = killed.first() else { return true };
            if let Ok(pidfd) = pidfd_open(*first) {
                is_dead_soon(&pidfd);
            }
        }
        tracing::warn!("processes of a dead shim do not die");
        false
    }

    /// Kills every orphan and reaps the dead ones. Returns those that are not dead yet.
    fn kill_orphans(&self, zygotes: &[i32]) -> Vec<i32> {
        let waited_for = self.waited_for();
        let own = own_pid();
        let mut left = Vec::new();
        for parent in zygotes.iter().copied().chain(self.is_subreaper.then_some(own)) {
            if parent != own && !tree::is_shim(parent) {
                // The zygote has ended meanwhile.
                continue;
            }
            let mut children = Pids::new();
            tree::children(parent, &mut children);
            for child in children.list().iter().copied().filter(|child| !waited_for.contains(child)) {
                if tree::stat(child).is_none_or(|stat| stat.is_dead()) {
                    if parent == own {
                        let _ = waitpid(Pid::from_raw(child), WaitOptions::NOHANG);
                    }
                } else if !tree::is_shim(child) {
                    kill_below(child, parent);
                    left.push(child);
                }
            }
        }
        left
    }
}

/// Kills an orphan and all below it.
fn kill_below(orphan: i32, parent: i32) {
    let below = tree::descendants(orphan);
    tree::signal(orphan, libc::SIGKILL, |found| found == parent);
    for member in below.list() {
        tree::signal(*member, libc::SIGKILL, |found| found == orphan || below.contains(found));
    }
}

fn is_dead_soon(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: DEATH_WAIT.subsec_nanos().into() };
    poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}
