//! A process that waits for its turn. It has a record and no shim, no task, no open file. One owner of its launch decides: who
//! claims it starts it, or ends it.

use super::handle::{Command, INBOX_LEN, NoReply, Proc};
use super::retry::RetryCell;
use super::state::{NO_WAIT_STATUS, Phase, State, Update, canceled_launch};
use crate::clock::wall_ms;
use crate::disk;
use crate::store::record::{LockOwner, Record, Spec};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};
use toold_format::slots::Exit;
use toold_format::step;
use toold_proto::ProcId;
use toold_proto::process::{PendingOn, RestartDue};
use toold_proto::time::rfc3339;
use toold_shim::hooks;

/// The part of a process that only one has which waited for its turn, or which may have a retry.
#[derive(Default)]
pub struct PendingCell {
    launch: Mutex<Option<Box<PendingLaunch>>>,
    /// The start in milliseconds since 1970. 0: none yet.
    started_ms: AtomicU64,
    /// Its retry after a failure in its sandbox. None: it never has one.
    pub(super) retry: Option<Box<RetryCell>>,
}

/// The parts of a start that are in memory only until its turn comes.
pub struct PendingLaunch {
    /// The environment as `NAME=value`. None: the shim of the run before has it.
    pub env: Option<Vec<Vec<u8>>>,
    pub nonce: [u8; 16],
    /// The record with its lock, if an earlier daemon may have handed it to a shim that has not come to it yet.
    pub locked: Option<Record>,
    /// Processes that have to end first and have not.
    pub after: Vec<ProcId>,
    /// A restart, and the tree that it replaces is not proven to be gone.
    pub is_held: bool,
}

/// The end of a process that never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingEnd {
    Canceled(Exit),
    EnvironmentLost,
}

/// Reports ends to the scheduler.
#[derive(Default)]
pub struct EndSignal {
    /// Notified when a program has ended, after that was published.
    pub ended: Notify,
    /// Processes that ended while they waited for their turn.
    canceled: Mutex<Vec<Arc<Proc>>>,
}

impl EndSignal {
    /// Takes the processes that ended while they waited for their turn.
    pub fn take_canceled(&self) -> Vec<Arc<Proc>> {
        self.canceled.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }
}

impl PendingCell {
    /// Returns the cell of a new process. None: it needs none.
    pub fn of(spec: &Spec) -> Option<Box<PendingCell>> {
        let retry = spec.policy.as_ref().is_some_and(|policy| policy.retry.is_some()).then(Box::default);
        (spec.pending.is_some() || retry.is_some()).then(|| Box::new(PendingCell { retry, ..PendingCell::default() }))
    }
}

impl Proc {
    fn pending_launch(&self) -> Option<MutexGuard<'_, Option<Box<PendingLaunch>>>> {
        let pending = self.pending.as_ref()?;
        Some(pending.launch.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Lets the process be started or ended from now on: its record is durable.
    pub fn offer_pending(&self, launch: PendingLaunch) {
        if let Some(mut place) = self.pending_launch() {
            *place = Some(Box::new(launch));
        }
    }

    /// Returns the launch to one caller: that one starts the process, or ends it.
    pub fn claim_pending(&self) -> Option<Box<PendingLaunch>> {
        self.pending_launch()?.take()
    }

    /// Returns the launch of a process that an earlier daemon recorded, to one caller.
    pub fn claim_adopted(&self) -> Option<Box<PendingLaunch>> {
        self.pending_launch()?.take_if(|launch| launch.locked.is_some())
    }

    /// Changes the processes that it waits for. Returns None if it does not wait any more.
    pub fn update_after<T>(&self, change: impl FnOnce(&mut Vec<ProcId>) -> T) -> Option<T> {
        Some(change(&mut self.pending_launch()?.as_mut()?.after))
    }

    /// Lets a restart take its turn: the tree that it replaces is gone.
    pub fn end_hold(&self) {
        if let Some(launch) = self.pending_launch().as_mut().and_then(|place| place.as_mut()) {
            launch.is_held = false;
        }
    }

    /// Returns true if it waits for the end of the tree that it replaces.
    pub fn is_held(&self) -> bool {
        self.pending_launch().is_some_and(|place| place.as_ref().is_some_and(|launch| launch.is_held))
    }

    /// Returns the reason why it has no inbox.
    pub(super) fn no_inbox(&self) -> NoReply {
        if self.published_state().phase == Phase::Pending { NoReply::Pending } else { NoReply::Gone }
    }

    /// Opens the inbox for a task.
    pub(super) fn open_inbox(&self) -> mpsc::Receiver<Command> {
        let (send, receive) = mpsc::channel(INBOX_LEN);
        if let Ok(mut inbox) = self.inbox.lock() {
            *inbox = Some(send);
        }
        receive
    }

    /// Publishes that its approval was given: it waits for its turn from now on.
    pub fn approve_pending(&self, launch: PendingLaunch) {
        let mut state = self.published_state();
        state.step(&Update::Approved);
        self.publish_state(state);
        self.offer_pending(launch);
    }

    /// Waits until it does not wait for an approval any more.
    pub async fn answered(&self) {
        let _ = self.subscribe().wait_for(|state| !state.asking).await;
    }

    /// Publishes that its turn has come. Returns the inbox for the task: commands that come from now on wait there.
    pub fn begin_launch(&self) -> mpsc::Receiver<Command> {
        if let Some(pending) = &self.pending {
            pending.started_ms.store(wall_ms(), Ordering::Release);
        }
        let inbox = self.open_inbox();
        let mut state = self.published_state();
        state.step(&Update::Launching);
        self.publish_state(state);
        inbox
    }

    /// Ends a process that never ran: in the record, under its lock, then for all others. A shim that comes too late finds
    /// the launch over.
    pub async fn end_pending(self: &Arc<Self>, launch: Box<PendingLaunch>, end: PendingEnd) {
        let (at_ms, dir) = (wall_ms(), self.dir.clone());
        let (step, errno) = (step::ENVIRONMENT, libc::ENODATA);
        let recorded = disk::blocking(move || -> io::Result<()> {
            let record = match launch.locked {
                Some(record) => record,
                None => Record::open(&dir)?,
            };
            if record.try_lock()? == LockOwner::Shim {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            match end {
                PendingEnd::Canceled(exit) => record.set_launch(&canceled_launch(&exit))?,
                PendingEnd::EnvironmentLost => record.set_failed(step, errno, at_ms)?,
            }
            record.sync()
        });
        if let Err(e) = recorded.await.flatten() {
            // The end holds as long as this daemon lives. The next one finds the process pending, and it ends again or runs.
            tracing::error!(id = %self.spec.id, %e, "failed to record the end of a pending process");
        }
        hooks::at("queue.ended");
        let mut state = self.published_state();
        state.step(&match end {
            PendingEnd::Canceled(exit) => Update::Canceled(exit),
            PendingEnd::EnvironmentLost => Update::Failed { step, errno, at_ms },
        });
        disk::on_disk(async { self.publish_due(&state) }).await;
        self.publish_final(state);
        if let Ok(mut canceled) = self.sink.ends.canceled.lock() {
            canceled.push(self.clone());
        }
        self.sink.ends.ended.notify_one();
    }

    /// Describes what it waits for.
    pub(super) fn pending_on(&self, state: &State) -> Option<PendingOn> {
        if let Some(approval) = self.call_approval() {
            // It runs, and one of its calls waits.
            return Some(PendingOn { approval: Some(approval), ..PendingOn::default() });
        }
        let spec = self.spec.pending.as_ref().filter(|_| state.phase == Phase::Pending)?;
        let mut after = self.update_after(|after| after.clone()).unwrap_or_default();
        after.extend(spec.replaces.filter(|_| self.is_held()));
        let after = Some(after).filter(|after| !after.is_empty());
        let restart = spec.restart_at_ms.map(|at| RestartDue { at: rfc3339(at) });
        let approval = spec.approval.filter(|_| state.asking);
        Some(PendingOn { queue: spec.queue.clone(), after, restart, approval })
    }

    /// Returns the time of the start, or of the call as long as there is none, in milliseconds since 1970.
    pub fn started_ms(&self) -> u64 {
        let started = self.pending.as_ref().map(|pending| pending.started_ms.load(Ordering::Acquire));
        started.filter(|ms| *ms > 0).unwrap_or(self.spec.created_ms)
    }

    /// Returns for how long the program has run, or had run at its end. One that never started did not run.
    pub fn uptime_ms(&self, state: &State, now_ms: u64) -> u64 {
        let never = state.phase == Phase::Pending
            || matches!(state.phase, Phase::Exited { exit, .. } if exit.wait_status == NO_WAIT_STATUS);
        if never { 0 } else { state.ended_ms().unwrap_or(now_ms).saturating_sub(self.started_ms()) }
    }

    /// Sets the time of the start as a record has it.
    pub fn set_started_ms(&self, ms: u64) {
        if let Some(pending) = &self.pending {
            pending.started_ms.store(ms, Ordering::Release);
        }
    }
}
