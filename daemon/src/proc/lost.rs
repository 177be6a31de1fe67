//! A process whose shim is gone: what the record and the kernel still tell, and nothing else.

use super::handle::Proc;
use super::state::{News, Phase, TOLD};
use super::task::now_ms;
use super::tree;
use crate::log::Log;
use crate::store::record::Record;
use crate::store::slots::{Launch, Progress, Stage};
use crate::sys;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// How long the kernel has to tell the exit of a program that is dead but not reaped yet.
const TELL: Duration = Duration::from_secs(3);

/// Decides the end of a process whose record's lock we hold.
pub async fn settle(proc: &Proc, record: &Record, pidfd: Option<OwnedFd>, publish: impl Fn(&News) -> bool) {
    let facts = record.facts().ok();
    let launch = facts.and_then(|f| f.launch);
    let progress = recount(proc, facts.and_then(|f| f.progress));
    let at_ms = now_ms();
    let leftovers = match launch {
        Some(launch) if launch.pid > 0 && facts.is_some_and(|f| f.head.boot == tree::boot_id()) => Some(launch.pid),
        Some(_) | None => None,
    };
    if let Some(Launch { stage: Stage::Failed, step, errno, at_ms, .. }) = launch {
        publish(&News::Failed { step, errno, at_ms });
        return;
    }
    if let Some(exit) = facts.and_then(|f| f.exit) {
        if facts.is_some_and(|f| f.closed_ms.is_none())
            && let Some(pid) = leftovers
        {
            tree::end_session(pid, launch.map_or(0, |l| l.ticks));
        }
        // The end of the output is known from here on, and no later daemon has to look for leftovers.
        if facts.is_some_and(|f| f.closed_ms.is_none())
            && (record.set_progress(&progress).is_err() || record.set_closed(at_ms).is_err())
        {
            tracing::warn!(id = %proc.spec.id, "the disk refused to record the end of its output");
        }
        publish(&News::Exited { exit, progress });
        publish(&News::Closed(progress));
        publish(&News::Gone);
        return;
    }
    if let Some(pid) = leftovers {
        tree::end_session(pid, launch.map_or(0, |l| l.ticks));
    }
    let told = kernel_tells(pidfd).await;
    let lost = Launch {
        stage: Stage::Lost,
        shim_pid: launch.map_or(0, |l| l.shim_pid),
        pid: launch.map_or(0, |l| l.pid),
        ticks: launch.map_or(0, |l| l.ticks),
        step: if told.is_some() { TOLD } else { 0 },
        errno: told.unwrap_or(0),
        at_ms,
    };
    if record.set_launch(&lost).is_err() || record.set_progress(&progress).is_err() {
        tracing::warn!(id = %proc.spec.id, "the disk refused to record that it is lost");
    }
    publish(&News::Lost { at_ms, told, progress });
    debug_assert!(!matches!(proc.peek().phase, Phase::Running), "lost is an end");
}

/// The counts from the files: the shim may have died between the bytes and their count.
fn recount(proc: &Proc, told: Option<Progress>) -> Progress {
    let mut progress = told.unwrap_or_default();
    if let Ok(counts) = Log::open_all(&proc.dir).and_then(|log| log.recount())
        && counts.end > progress.counts.end
    {
        let (dropped, unstored) = (progress.counts.dropped, progress.counts.unstored);
        progress.counts = counts;
        progress.counts.dropped = progress.counts.dropped.max(dropped);
        progress.counts.unstored = unstored;
    }
    progress
}

/// The wait status from a pidfd that was opened while the program ran.
async fn kernel_tells(pidfd: Option<OwnedFd>) -> Option<i32> {
    let pidfd = sys::pollable(pidfd?)?;
    tokio::time::timeout(TELL, async {
        loop {
            if let Some(status) = sys::pidfd_exit(pidfd.get_ref().as_fd()) {
                return Some(status);
            }
            // Readable is dead; the status comes with the reaping, which hangs the pidfd up.
            let mut ready = pidfd.readable().await.ok()?;
            if ready.ready().is_read_closed() {
                return sys::pidfd_exit(pidfd.get_ref().as_fd());
            }
            ready.clear_ready();
        }
    })
    .await
    .ok()
    .flatten()
}
