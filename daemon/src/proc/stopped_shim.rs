//! Notices a stopped shim that has no zygote to continue it: its program has ended, and it does not report that.

use super::handle::{Proc, REPLY_SLACK};
use super::state::{Phase, State};
use super::tree;
use crate::store::record::Record;
use crate::sys;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time that a shim has to report the end of its program: it waits for the disk.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// Number of times that a shim which does not report the start is looked at.
const START_LOOKS: u32 = 10;

/// The part that continues a shim if it is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ShimGuard {
    /// The zygote of this daemon: it is the parent of the shims that it forked.
    Zygote,
    /// None yet: no zygote forked the shim, or that of an earlier daemon.
    Missing,
    /// A task of this daemon.
    Task,
}

impl ShimGuard {
    /// Watches the start of a program by a shim without a zygote.
    pub fn watch_start(&mut self, proc: &Arc<Proc>, record: &Arc<Record>) {
        *self = ShimGuard::Missing;
        tokio::spawn(watch_start(proc.clone(), record.clone()));
    }

    /// Watches for the end of a running program, unless that is done already.
    pub fn watch(&mut self, proc: &Arc<Proc>, program: Option<&OwnedFd>) {
        if *self == ShimGuard::Missing
            && let Some(program) = program.and_then(|pidfd| pidfd.try_clone().ok())
        {
            *self = ShimGuard::Task;
            tokio::spawn(watch_end(proc.clone(), program));
        }
    }
}

/// Waits for the start of the program. Continues the shim if it is stopped meanwhile: a job runs before its shim has
/// reported it.
async fn watch_start(proc: Arc<Proc>, record: Arc<Record>) {
    let mut state_changes = proc.subscribe();
    for _ in 0..START_LOOKS {
        if timeout(REPORT_DELAY, state_changes.wait_for(|state| state.phase != Phase::Starting)).await.is_ok() {
            return;
        }
        if let Some(launch) = record.facts().ok().and_then(|facts| facts.launch) {
            tree::wake_shim(launch.shim_pid);
        }
    }
    proc.set_unresponsive();
}

/// Waits for the end of the program. If the shim does not report it, continues the shim; if that does not help either,
/// publishes that the shim is unreachable.
async fn watch_end(proc: Arc<Proc>, program: OwnedFd) {
    let Some(program) = sys::pollable(program) else { return };
    let mut state_changes = proc.subscribe();
    tokio::select! {
        biased;
        _ = state_changes.wait_for(State::has_ended) => return,
        _ = program.readable() => {}
    }
    if timeout(REPORT_DELAY, state_changes.wait_for(State::has_ended)).await.is_ok() {
        return;
    }
    tree::wake_shim(proc.published_state().shim_pid);
    if timeout(REPLY_SLACK, state_changes.wait_for(State::has_ended)).await.is_err() {
        tracing::warn!(id = %proc.spec.id, "the program has ended, and its shim does not report it");
        proc.set_unresponsive();
    }
}
