//! Processes that wait for their turn: records, starts, ends and adopts them. `queue` decides whose turn it is.

use super::queue::{Gate, Job, Order, Queues};
use super::spawn::{Created, SpawnError, wait_started};
use super::{FindError, Registry, RunningSlot, SetAside};
use crate::backend::cgroup::{self, GroupOwner, RequestedLimits};
use crate::clock::{retention_ms, wall_ms};
use crate::disk::on_disk;
use crate::proc::handle::Command;
use crate::proc::pending::{PendingEnd, PendingLaunch};
use crate::proc::readers::Reader;
use crate::proc::state::{Phase, State, never_ran};
use crate::proc::{Proc, view};
use crate::spec::{self, AskError, SpawnRequest};
use crate::store::pending::PendingSpec;
use crate::store::record::Record;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;
use toold_format::slots::Cause;
use toold_format::step;
use toold_proto::ProcId;
use toold_proto::process::Reason;
use toold_shim::hooks;

impl Job for Arc<Proc> {
    fn order(&self) -> Order {
        (self.spec.seq, self.spec.id.bits())
    }
    fn queue(&self) -> Option<&str> {
        self.spec.pending.as_ref()?.queue.as_deref()
    }
    fn has_ended(&self) -> bool {
        self.published_state().has_ended()
    }
}

/// Processes that pending ones wait for, and by how many. They are not forgotten meanwhile.
pub type Awaited = HashMap<ProcId, usize>;

/// The state of a process that another one waits for.
enum Dependency {
    Unfinished,
    Ended { well: bool },
}

// ---- create ----

impl Registry {
    /// Records a process that waits for its turn, by `spec.pending`, and starts it at once if that has come. Returns when
    /// the program runs, or when it has to wait.
    pub async fn spawn_pending(self: &Arc<Self>, request: SpawnRequest) -> Result<Reader, SpawnError> {
        let reader = self.create_pending(request).await?.add_reader();
        self.schedule();
        wait_started(reader.clone()).await.map(|_| reader)
    }

    /// Records a process that waits for its turn, and does not look whether that has come: `schedule` does.
    pub async fn create_pending(self: &Arc<Self>, request: SpawnRequest) -> Result<Arc<Proc>, SpawnError> {
        let mut request = request;
        // For what can be enforced, and to refuse it now if that is too little. It is made again for its turn. A restart by its
        // policy has been accepted before, and fails when it starts.
        if request.spec.pending.as_ref().is_none_or(|pending| pending.restart_at_ms.is_none()) {
            drop(self.prepare(&mut request).await?);
        }
        let SpawnRequest { mut spec, env, wanted, patterns, after, ask, .. } = request;
        let mut pending = spec.pending.take().unwrap_or_else(|| {
            let (env_mode, limits) = (spec.env_mode, wanted.limits());
            Box::new(PendingSpec { env_mode, limits, ..PendingSpec::default() })
        });
        let limit = self.config.max_pending;
        // A restart follows a process that ran, so their number is bounded by `max_running`.
        let is_restart = pending.is_restart();
        if !is_restart && self.scheduler().waiting() as u64 >= limit {
            return Err(SpawnError::TooManyPending { limit });
        }
        for text in &after {
            let id = self.find(text).map_err(SpawnError::After)?.spec.id;
            if !pending.after.contains(&id) {
                pending.after.push(id);
            }
        }
        let (after, is_blocked) = (pending.after.clone(), !pending.after.is_empty() || is_restart);
        let is_env_kept = pending.restart_at_ms.is_some() || pending.kept_env;
        let (is_held, env) = (pending.replaces.is_some(), (!is_env_kept).then_some(env));
        self.begin_await(&after).map_err(SpawnError::After)?;
        if let Some(ask) = &ask {
            let asked = async {
                spec.id = ProcId::from_bits(getrandom::u64().map_err(AskError::Random)?);
                ask.record(spec.id).await
            };
            match asked.await {
                Ok(id) => {
                    pending.approval = Some(id);
                    spec.policy.get_or_insert_default().approval = Some(id);
                }
                Err(e) => {
                    self.end_await(&after);
                    return Err(SpawnError::Ask(e));
                }
            }
        }
        let asking = pending.approval;
        spec.pending = Some(pending);
        let prepared = self.dir_pool.take_or_prepare().await;
        let created = match self.create_record(spec, &wanted, patterns, prepared) {
            Ok(created) => created,
            Err(e) => {
                self.end_await(&after);
                if let Some((ask, id)) = ask.zip(asking) {
                    ask.discard(id).await;
                }
                return Err(e);
            }
        };
        self.dir_pool.refill_in_background();
        let Created { proc, record, nonce, .. } = created;
        if self.config.survive_power_cut {
            // Not waited for: the start waits for the disk, and its place in a queue is not worth a wait of its own.
            let _ = record.start_writeback();
        }
        hooks::at("queue.recorded");
        // A process that waits needs no open file and no inbox.
        proc.close_inbox();
        proc.offer_pending(PendingLaunch { env, nonce, locked: None, after, is_held });
        self.supervise(&proc);
        // One that waits for an approval has no turn yet.
        if asking.is_none() {
            self.scheduler().add(proc.clone(), is_blocked);
            self.pended.notify_one();
        }
        Ok(proc)
    }

    /// Lets a process wait for its turn whose approval was given, by the owner of its launch. One whose environment values were in
    /// the memory of a daemon that died does not start.
    pub async fn start_approved(self: &Arc<Self>, proc: &Arc<Proc>, launch: Box<PendingLaunch>) {
        if launch.locked.is_some() && needs_lost_environment(proc) {
            proc.end_pending(launch, PendingEnd::EnvironmentLost).await;
            return;
        }
        proc.approve_pending(*launch);
        self.scheduler().add(proc.clone(), true);
        self.schedule();
        self.pended.notify_one();
    }

    /// Ends a process whose approval was not given, by the owner of its launch.
    pub async fn end_unapproved(&self, proc: &Arc<Proc>, launch: Box<PendingLaunch>) {
        proc.end_pending(launch, PendingEnd::Canceled(never_ran(Cause::Denied, wall_ms()))).await;
    }

    /// Keeps these processes from being forgotten. Fails, and changes nothing, if one is forgotten already.
    fn begin_await(&self, ids: &[ProcId]) -> Result<(), FindError> {
        let table = self.table();
        if let Some(gone) = ids.iter().find(|id| !table.contains(**id)) {
            return Err(FindError::NotFound(gone.to_string()));
        }
        let mut awaited = self.awaited();
        ids.iter().for_each(|id| *awaited.entry(*id).or_default() += 1);
        Ok(())
    }

    /// Lets these processes be forgotten, as far as no other waits for them.
    fn end_await(&self, ids: &[ProcId]) {
        for id in ids {
            let mut awaited = self.awaited();
            let left = awaited.get_mut(id).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left > 0 {
                continue;
            }
            awaited.remove(id);
            drop(awaited);
            // Retention may have passed it over.
            if let Some(proc) = self.table().get(*id) {
                self.queue_retention(&proc, 0, retention_ms());
            }
        }
    }

    /// Returns true if a pending process waits for this one.
    pub(super) fn is_awaited(&self, id: ProcId) -> bool {
        self.awaited().contains_key(&id)
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Locks the scheduler, never across an await. The table's lock is taken after it, that of `awaited` after both.
    pub(super) fn scheduler(&self) -> MutexGuard<'_, Queues<Arc<Proc>>> {
        self.scheduler.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

// ---- schedule ----

impl Registry {
    /// Starts every process whose turn has come, and ends those whose dependency failed. Returns the time at which another
    /// look is due by itself.
    pub fn schedule(self: &Arc<Self>) -> Option<u64> {
        self.sink.ends.take_canceled().iter().for_each(|proc| self.finish_canceled(proc));
        let now_ms = wall_ms();
        let mut scheduler = self.scheduler();
        let opened = scheduler.open(|proc| self.gate(proc, now_ms));
        while let Some(proc) = scheduler.next() {
            let Some(slot) = RunningSlot::take(self, self.config.max_running as usize) else { break };
            match proc.claim_pending() {
                Some(launch) => {
                    scheduler.start(&proc);
                    let inbox = proc.begin_launch();
                    tokio::spawn(on_disk(self.clone().launch_pending(proc, launch, inbox, slot)));
                }
                // Another owner ends it.
                None => _ = scheduler.remove(&proc),
            }
        }
        drop(scheduler);
        for proc in opened.failed {
            if let Some(launch) = proc.claim_pending() {
                let end = PendingEnd::Canceled(never_ran(Cause::Dependency, now_ms));
                tokio::spawn(async move { proc.end_pending(launch, end).await });
            }
        }
        opened.next_ms
    }

    /// Schedules whenever a process has ended, a restart is due or a process was added. Never returns. While nothing waits, an
    /// end does not wake it.
    pub async fn run_scheduler(self: Arc<Self>) {
        loop {
            let next_ms = self.schedule();
            if self.scheduler().waiting() == 0 {
                self.pended.notified().await;
                continue;
            }
            let due = async {
                match next_ms {
                    Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(wall_ms()).max(1))).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.sink.ends.ended.notified() => {}
                () = self.pended.notified() => {}
                () = due => {}
            }
        }
    }

    /// Looks at the processes that this one waits for, and at the time.
    fn gate(&self, proc: &Proc, now_ms: u64) -> Gate {
        let Some(spec) = &proc.spec.pending else { return Gate::Gone };
        let mut is_failed = false;
        let is_free = proc.update_after(|after| {
            after.retain(|id| match self.dependency(*id) {
                Dependency::Unfinished => true,
                Dependency::Ended { well } => {
                    is_failed |= spec.after_ok && !well;
                    false
                }
            });
            after.is_empty()
        });
        let later = spec.restart_at_ms.filter(|at| *at > now_ms);
        match is_free {
            None => Gate::Gone,
            Some(_) if proc.is_held() => Gate::Closed { until_ms: None },
            Some(_) if is_failed => Gate::Failed,
            Some(true) if later.is_none() => Gate::Open,
            Some(_) => Gate::Closed { until_ms: later },
        }
    }

    fn dependency(&self, id: ProcId) -> Dependency {
        let Some(proc) = self.table().get(id) else {
            // A record that cannot be read now is tried again. One that is gone or damaged proves no good end.
            let is_unread = matches!(self.set_asides().get(&id), Some(SetAside::Unread(_)));
            return if is_unread { Dependency::Unfinished } else { Dependency::Ended { well: false } };
        };
        let state = proc.published_state();
        if !state.has_ended() {
            return Dependency::Unfinished;
        }
        let outcome = view::outcome(&proc.spec, &state);
        Dependency::Ended { well: outcome.reason == Some(Reason::Exited) && outcome.exit_code == Some(0) }
    }

    /// Launches a process whose turn has come. From here on it is started as any other.
    pub(super) async fn launch_pending(
        self: Arc<Self>,
        proc: Arc<Proc>,
        launch: Box<PendingLaunch>,
        inbox: mpsc::Receiver<Command>,
        slot: RunningSlot,
    ) {
        hooks::at("queue.before_start");
        let PendingLaunch { env, nonce, locked, .. } = *launch;
        let spec = proc.spec.pending.clone().unwrap_or_default();
        self.end_await(&spec.after);
        let record = match locked.map_or_else(|| Record::open(&proc.dir), Ok) {
            Ok(record) => Arc::new(record),
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                let _ = self.fail(&proc, None, step::RECORD, errno).await;
                return;
            }
        };
        record.unlock();
        proc.set_record(record.clone());
        // The groups may be gone: the machine was started again, or the daemon is in another group now.
        let limits = RequestedLimits::new(&spec.limits, proc.spec.require_limits);
        let enforced = limits.enforce(proc.spec.id, GroupOwner::new(&self.procs_dir), proc.spec.log_max_bytes);
        if limits.refuse(&enforced).is_some() {
            let _ = self.fail(&proc, Some(&record), step::CGROUP, libc::EOPNOTSUPP).await;
            return;
        }
        let confinement = match self.prepare_again(&proc).await {
            Ok(confinement) => confinement,
            Err((step, errno)) => {
                let _ = self.fail(&proc, Some(&record), step, errno).await;
                return;
            }
        };
        let created = Created { proc: proc.clone(), record, nonce, inbox, oom_file: enforced.oom_file, confinement };
        let env = match env {
            Some(env) => Ok(Some(env)),
            None => self.restart_env(&proc).await,
        };
        let Ok(Some(env)) = env else {
            let _ = self.fail(&proc, Some(&created.record), step::ENVIRONMENT, libc::ENODATA).await;
            return;
        };
        // Looked for now: a process that it waited for may have installed it.
        let _ = match spec::find_program(&proc.spec.program, &env) {
            (_, Some(errno)) => self.fail(&proc, Some(&created.record), step::EXEC, errno).await,
            (program, None) => self.launch(created, Some(&program), env, slot).await,
        };
        hooks::at("queue.started");
    }

    /// Cleans up after a process that ended while it waited.
    fn finish_canceled(&self, proc: &Arc<Proc>) {
        self.scheduler().remove(proc);
        if let Some(pending) = &proc.spec.pending {
            self.end_await(&pending.after);
        }
        cgroup::remove(&proc.spec.cgroups);
        self.queue_flush(&proc.dir);
        self.queue_retention(proc, 0, retention_ms());
    }
}

// ---- adopt ----

impl Registry {
    /// Takes over a process that waits, with the lock of its record: a shim that an earlier daemon gave it to, and that has not
    /// come to it yet, must not start it now.
    pub(super) fn adopt_pending(&self, proc: &Arc<Proc>, locked: Record, nonce: [u8; 16]) {
        let Some(spec) = &proc.spec.pending else { return };
        // Calls of this daemon come after those of earlier ones, whatever the clock shows.
        self.seq.fetch_max(proc.spec.seq.saturating_add(1), std::sync::atomic::Ordering::AcqRel);
        let mut awaited = self.awaited();
        spec.after.iter().for_each(|id| *awaited.entry(*id).or_default() += 1);
        drop(awaited);
        let env = spec.env_mode.map(|mode| spec::daemon_env(&proc.spec, mode, &self.config));
        // The values of a restart are in the shim of the run before.
        let is_restart = spec.is_restart();
        let has_env = env.is_some() || is_restart;
        let (env, after) = (env.filter(|_| !is_restart), spec.after.clone());
        let is_held = spec.replaces.is_some();
        proc.offer_pending(PendingLaunch { env, nonce, locked: Some(locked), after, is_held });
        if has_env && spec.approval.is_none() {
            self.scheduler().add(proc.clone(), true);
        }
        self.pended.notify_one();
    }

    /// Ends adopted processes whose environment values were in the memory of the daemon that died.
    pub(super) async fn end_without_environment(&self) {
        let mut lost = self.newest_first();
        lost.retain(|proc| {
            let state = proc.published_state();
            // One that waits for an approval waits on: a person may still deny it.
            state.phase == Phase::Pending && !state.asking && needs_lost_environment(proc)
        });
        let ends = lost.into_iter().filter_map(|proc| {
            // One that this daemon recorded has its values: only an adopted one has the lock.
            let launch = proc.claim_adopted()?;
            Some(async move { proc.end_pending(launch, PendingEnd::EnvironmentLost).await })
        });
        join_all(ends).await;
    }
}

/// Returns true if a program runs or has ended, or its start has failed.
pub fn has_launched(state: &State) -> bool {
    !matches!(state.phase, Phase::Pending | Phase::Starting)
}

/// Returns true if the environment of a pending process is only in the memory of the daemon that recorded it.
fn needs_lost_environment(proc: &Proc) -> bool {
    let pending = proc.spec.pending.as_ref();
    pending.is_some_and(|pending| pending.env_mode.is_none() && !pending.is_restart())
}
