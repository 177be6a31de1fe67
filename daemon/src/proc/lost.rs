//! A process whose shim is gone, or may not have made the end durable: resolves it from the record and the kernel.

use super::checkpoint::Checkpoint;
use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::state::{LOST_TREE_UNKNOWN, LOST_WITH_STATUS, LostCause, Update};
use super::task::Task;
use super::tree;
use crate::backend::Launcher;
use crate::clock::wall_ms;
use crate::disk;
use crate::log::Log;
use crate::store::record::{Facts, Record};
use crate::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toold_format::log::release_reserved;
use toold_format::slots::{Launch, Progress, Stage};

/// Time that the kernel may take to report the exit of a program that is dead but not reaped yet.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_secs(3);

/// Resolves the end of a process whose record lock this daemon holds.
pub async fn resolve_lost(
    proc: &Proc,
    record: &Arc<Record>,
    pidfd: Option<OwnedFd>,
    reaper: &Reaper,
    launcher: &Arc<Launcher>,
) -> Vec<Update> {
    let facts = Some(read_facts(proc, record).await);
    kill_orphans(facts.as_ref(), if pidfd.is_some() { PidIdentity::Pinned } else { PidIdentity::Unverified });
    let tree_unknown = match facts.as_ref().filter(|facts| may_have_orphans(facts)) {
        Some(facts) => !reaper.end_orphans(facts.launch.map_or(0, |launch| launch.shim_pid), launcher).await,
        None => false,
    };
    let wait_status = match facts {
        Some(facts) if facts.exit.is_none() => pidfd_exit_status(pidfd).await,
        Some(_) | None => None,
    };
    loop {
        let (dir, record) = (proc.dir.clone(), record.clone());
        // It waits for the disk, and reads the whole index of the log.
        let updates = disk::blocking(move || final_updates(&dir, &record, wait_status, tree_unknown)).await;
        match updates.flatten() {
            Ok(updates) => return updates,
            Err(e) => warn_and_wait(proc, &e).await,
        }
    }
}

/// Reads the record until that is possible: an end is not made up because a read failed.
async fn read_facts(proc: &Proc, record: &Record) -> Facts {
    loop {
        match record.facts() {
            Ok(facts) => return facts,
            Err(e) => warn_and_wait(proc, &e).await,
        }
    }
}

async fn warn_and_wait(proc: &Proc, e: &io::Error) {
    tracing::warn!(id = %proc.spec.id, %e, "failed to read the record of a lost process; trying again");
    tokio::time::sleep(RETRY_DELAY).await;
}

/// The process that gets the orphans of a shim.
pub enum Reaper {
    /// This daemon or its zygote.
    Own,
    /// The zygote of an earlier daemon.
    Zygote {
        pid: i32,
        ticks: u64,
        pidfd: Arc<OwnedFd>,
    },
    Unknown,
}

impl Reaper {
    /// Finds that of a shim which an earlier daemon started.
    pub fn above(shim: i32, launcher: &Launcher) -> Reaper {
        let Some((pid, ticks)) = tree::zygote_above(shim) else { return Reaper::Unknown };
        let pidfd = launcher.children.old_zygote(pid, ticks, || tree::pin(pid, ticks).ok().flatten());
        pidfd.map_or(Reaper::Unknown, |pidfd| Reaper::Zygote { pid, ticks, pidfd })
    }

    /// Kills the orphans of a dead shim. Returns true if none is left.
    async fn end_orphans(&self, shim: i32, launcher: &Arc<Launcher>) -> bool {
        let zygote = match self {
            Reaper::Own => launcher.zygote_pid(),
            Reaper::Zygote { pid, ticks, .. } => Some(*pid).filter(|pid| tree::is_running(*pid, *ticks)),
            Reaper::Unknown => None,
        };
        let children = launcher.children.clone();
        let ended = tokio::task::spawn_blocking(move || children.end_orphans(shim, zygote.as_slice())).await;
        let is_reaped = match self {
            Reaper::Own => zygote.is_some() || launcher.children.is_subreaper(),
            Reaper::Zygote { pid, ticks, .. } if tree::is_running(*pid, *ticks) => true,
            // Without a daemon a zygote exits when it has no child left.
            Reaper::Zygote { pidfd, .. } => pidfd_exit_status(pidfd.try_clone().ok()).await == Some(0),
            Reaper::Unknown => false,
        };
        is_reaped && ended.unwrap_or(false)
    }
}

/// Returns true unless a record proves that its shim left no process behind: nothing was launched, or it was before the
/// last boot.
pub fn may_have_orphans(facts: &Facts) -> bool {
    let is_launched = facts.launch.is_some_and(|launch| launch.stage != Stage::Failed);
    is_launched && facts.head.as_ref().is_some_and(|head| head.boot == crate::clock::boot_id())
}

/// Evidence that a pid belongs to the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PidIdentity {
    Pinned,
    /// This daemon never held the program: it may have died long ago, and the pid may belong to another process.
    Unverified,
}

/// Kills what may be left of a tree whose shim died before the output was closed.
pub fn kill_orphans(facts: Option<&Facts>, identity: PidIdentity) {
    let Some(Facts { launch: Some(launch), closed_ms, exit, head: Some(head), .. }) = facts else { return };
    if closed_ms.is_some() && exit.is_some() {
        return;
    }
    let known =
        identity == PidIdentity::Pinned || tree::pin(launch.pid, launch.ticks).is_ok_and(|pinned| pinned.is_some());
    if launch.pid > 0 && head.boot == crate::clock::boot_id() && known {
        tree::end_session(launch.pid, launch.ticks);
    }
}

/// Resolves a record whose shim is gone, and writes the result into it. `wait_status` is the kernel's, if it still knew
/// one; with `tree_unknown` processes of the tree may be left. Fails if the record or the log cannot be read now.
pub fn final_updates(
    dir: &Path,
    record: &Record,
    wait_status: Option<i32>,
    tree_unknown: bool,
) -> io::Result<Vec<Update>> {
    let facts = record.facts()?;
    let (launch, exit) = (facts.launch, facts.exit);
    if exit.is_some() || launch.is_some_and(|l| l.stage == Stage::Failed) {
        // The shim may have died before the record was durable, so wait for that before the end is published.
        to_disk(dir, record);
    }
    if let Some(Launch { stage: Stage::Failed, step, errno, at_ms, .. }) = launch {
        return Ok(vec![Update::Failed { step, errno, at_ms }]);
    }
    let progress = recount(dir, facts.progress)?;
    let at_ms = wall_ms();
    let refused = |what: &str| tracing::warn!(dir = %dir.display(), "failed to record {what}");
    let unknown = if tree_unknown { LOST_TREE_UNKNOWN } else { 0 };
    let update = tree_unknown.then_some(Update::TreeUnknown);
    if let Some(exit) = exit {
        if let Some(launch) = launch.filter(|_| tree_unknown)
            && record.set_launch(&Launch { stage: Stage::Lost, step: unknown, ..launch }).is_err()
        {
            refused("that processes of the tree may be left");
        }
        // Record the end of the output, so that no later daemon looks for orphaned descendants.
        if facts.closed_ms.is_none() && (record.set_progress(&progress).is_err() || record.set_closed(at_ms).is_err()) {
            refused("the end of its output");
        }
        let ended = [Update::Exited { exit, progress }, Update::Closed(progress), Update::Gone];
        return Ok(update.into_iter().chain(ended).collect());
    }
    let cause = lost_cause(&facts);
    let lost = Launch {
        stage: Stage::Lost,
        shim_pid: launch.map_or(0, |l| l.shim_pid),
        pid: launch.map_or(0, |l| l.pid),
        ticks: launch.map_or(0, |l| l.ticks),
        step: unknown | cause.bits() | if wait_status.is_some() { LOST_WITH_STATUS } else { 0 },
        errno: wait_status.unwrap_or(0),
        at_ms,
        stdin_inode: 0,
    };
    if record.set_launch(&lost).is_err() || record.set_progress(&progress).is_err() {
        refused("that the process is lost");
    }
    if wait_status.is_some() {
        // Without a wait status the next daemon comes to the same result.
        to_disk(dir, record);
    }
    Ok(update.into_iter().chain([Update::Lost { at_ms, wait_status, cause, progress }]).collect())
}

/// Returns the reason why a record without an end has none.
fn lost_cause(facts: &Facts) -> LostCause {
    // An exit that was published was in the record.
    let was_published = Checkpoint::read(&facts.checkpoint).is_some_and(|checkpoint| checkpoint.exited);
    match &facts.head {
        _ if facts.damaged.exit || facts.damaged.launch || was_published => LostCause::RecordDamaged,
        Some(head) if head.boot != crate::clock::boot_id() => LostCause::Rebooted,
        // A head that cannot be read is that of a process which this daemon started.
        Some(_) | None => LostCause::ShimDied,
    }
}

impl Task {
    /// Makes an end durable before it is published, if the shim could not record it or was not asked to wait for the
    /// disk.
    pub(super) async fn ensure_durable(&self, update: &Update) {
        let unsure = match update {
            Update::Failed { step, errno, at_ms } if self.record.is_unlaunched() => {
                disk::on_disk(async { self.record.set_failed(*step, *errno, *at_ms).is_ok() }).await
            }
            Update::Exited { .. } | Update::Adopted { exit: Some(_), .. } => self.adopted,
            // No other update is the end of a program.
            _ => false,
        };
        if unsure && let Err(e) = self.record.sync_async().await {
            tracing::warn!(id = %self.proc.spec.id, %e, "fdatasync of the exit record failed");
        }
    }
}

/// Waits until a record is durable before its end is published. The end is published even if this fails: it is true.
pub fn to_disk(dir: &Path, record: &Record) {
    if let Err(e) = record.sync() {
        tracing::warn!(dir = %dir.display(), %e, "fdatasync of the exit record failed");
    }
}

/// Counts the log files: the shim may have died between writing bytes and their count. Fails only if that can be done
/// later; a log that cannot be read counts as far as the record counted it.
pub fn recount(dir: &Path, recorded: Option<Progress>) -> io::Result<Progress> {
    let mut progress = recorded.unwrap_or_default();
    // If this fails, blocks stay allocated until the process is forgotten; no byte is lost.
    let _ = release_reserved(dir);
    let counts = match Log::open_all(dir).and_then(|log| log.recount()) {
        Ok(counts) => counts,
        Err(e) if sys::is_transient(&e) => return Err(e),
        // `check` reports a log that cannot be read.
        Err(_) => return Ok(progress),
    };
    if counts.end > progress.counts.end {
        let (dropped, unstored) = (progress.counts.dropped, progress.counts.unstored);
        progress.counts = counts;
        progress.counts.dropped = progress.counts.dropped.max(dropped);
        progress.counts.unstored = unstored.max(progress.counts.unstored);
    }
    Ok(progress)
}

/// Returns the wait status from a pidfd that was opened while the program ran.
async fn pidfd_exit_status(pidfd: Option<OwnedFd>) -> Option<i32> {
    let pidfd = sys::pollable(pidfd?)?;
    tokio::time::timeout(EXIT_STATUS_TIMEOUT, async {
        loop {
            if let Some(status) = sys::pidfd_exit_status(pidfd.get_ref().as_fd()) {
                return Some(status);
            }
            // Readable means dead. The status comes with the reaping, which hangs up the pidfd.
            let mut ready = pidfd.readable().await.ok()?;
            if ready.ready().is_read_closed() {
                return sys::pidfd_exit_status(pidfd.get_ref().as_fd());
            }
            ready.clear_ready();
        }
    })
    .await
    .ok()
    .flatten()
}
