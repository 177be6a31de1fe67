//! Restarts a process: the same spec again under the same name, when its old tree is proven to be gone. What can be checked is
//! checked before anything is killed.
//!
//! A crash forgets and doubles nothing: the new run is recorded as pending, with the run that it replaces, before that one is
//! killed; and the shim of that one stays, with the environment of the new run, until the new run has started. The next daemon
//! finds the new run pending, and goes on. Values that no shim could keep are lost with the daemon that had them: then the new
//! run ends with that reason, and the old one is left as it is.

use super::pending::has_launched;
use super::replacement::check_program;
use super::spawn::{SpawnError, wait_started};
use super::starter::started_by;
use super::{Registry, RunningSlot, SetAside};
use crate::clock::wall_ms;
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::event_sink::RETRY_DELAY;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::pending::PendingEnd;
use crate::proc::state::{Phase, never_ran};
use crate::spec::{self, SpawnRequest, Variables};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use toold_format::slots::Cause;
use toold_proto::process::Member;
use toold_proto::results::KillStatus;
use toold_shim::hooks;

/// Time for which an answer waits until the shim of the old run has let go.
const RELEASE_WAIT: Duration = Duration::from_secs(1);

/// A call of `restart`.
pub struct RestartCall {
    /// The whole environment. None: that of the old process.
    pub env: Option<Variables>,
    pub grace_ms: u64,
    pub uid: u32,
    pub pid: i32,
}

impl Registry {
    /// Kills a process, unless it has ended, and starts it again. Returns the new one when its program runs.
    pub async fn restart(self: &Arc<Self>, old: &Arc<Proc>, call: RestartCall) -> Result<Arc<Proc>, SpawnError> {
        let (id, name) = (old.spec.id, old.spec.name.clone());
        let _guard = self.names.lock(name.as_deref().unwrap_or(&id.to_string())).await;
        let is_given = call.env.is_some();
        let mut request = self.same_again(old, call.env).await?;
        request.spec.started_by = Some(started_by(&request.spec.labels, call.uid, call.pid));
        // Another process of that name is not the one to end.
        let holder = name.and_then(|name| self.table().named(&name)).filter(|holder| holder.spec.id != id);
        if let Some(holder) = holder.filter(|holder| !holder.published_state().has_ended()) {
            return Err(SpawnError::NameInUse(holder));
        }
        let is_running = !old.published_state().has_ended();
        let slot = match old.published_state().phase {
            // It replaces one that runs.
            Phase::Starting | Phase::Running => RunningSlot::take(self, usize::MAX),
            Phase::Pending | Phase::Exited { .. } | Phase::Failed { .. } | Phase::Lost { .. } => None,
        };
        let slot = slot.map_or_else(|| self.take_slot(), Ok)?;
        if is_running {
            check_program(&request)?;
            self.check_limits(&request)?;
        }
        hooks::at("restart.checked");
        let is_queued = request.spec.pending.is_some();
        let given = is_given.then(|| request.env.clone());
        let new = self.record_replacement(old, request, is_given).await?;
        let _reader = new.add_reader();
        hooks::at("restart.replacing");
        // A shim that cannot keep it is not a reason to refuse: only a crash from here on would need it.
        let _ = self.keep_env(old, &new, given.as_deref()).await;
        drop(given);
        hooks::at("restart.kept");
        let RestartCall { grace_ms, uid, pid, .. } = call;
        let kill = Kill { signal: libc::SIGTERM, grace_ms, cause: Cause::Client, uid, pid };
        if let Some(survivors) = end_tree(old, kill).await {
            self.drop_replacement(&new, PendingEnd::Canceled(never_ran(Cause::Dependency, wall_ms()))).await;
            self.release(old).await;
            return Err(SpawnError::Survivors { proc: old.clone(), survivors });
        }
        hooks::at("restart.killed");
        if is_queued {
            drop(slot);
            new.end_hold();
            self.schedule();
        } else if let Some(launch) = new.claim_pending() {
            self.scheduler().start(&new);
            let inbox = new.begin_launch();
            self.clone().launch_pending(new.clone(), launch, inbox, slot).await;
        }
        let started = wait_started(new.clone()).await;
        let released = tokio::spawn(on_disk(self.clone().release_replaced(old.clone(), new)));
        if started.as_ref().is_ok_and(|new| has_launched(&new.published_state())) {
            let _ = timeout(RELEASE_WAIT, released).await;
        }
        started
    }

    /// Records the run that replaces another one. It waits until that one is gone.
    async fn record_replacement(
        self: &Arc<Self>,
        old: &Arc<Proc>,
        mut request: SpawnRequest,
        given_env: bool,
    ) -> Result<Arc<Proc>, SpawnError> {
        let mut pending = request.spec.pending.take().unwrap_or_default();
        (pending.replaces, pending.given_env) = (Some(old.spec.id), given_env);
        (pending.env_mode, pending.limits) = (request.spec.env_mode, spec::requested_limits(&old.spec));
        request.spec.pending = Some(pending);
        self.create_pending(request).await
    }

    /// Makes the shim of the old run stay with the environment of the new one, unless the daemon can build that again.
    async fn keep_env(&self, old: &Proc, new: &Proc, given: Option<&[Vec<u8>]>) -> bool {
        let needs_shim = new.spec.env_mode.is_none() && !old.published_state().is_final();
        needs_shim && old.keep_env(given).await.is_ok_and(|is_kept| is_kept)
    }

    /// Ends a run that does not replace another one after all.
    async fn drop_replacement(&self, new: &Arc<Proc>, end: PendingEnd) {
        if let Some(launch) = new.claim_pending() {
            new.end_pending(launch, end).await;
        }
    }

    /// Lets the shim of the old run go when the new one has started or has ended. A policy of the old one does that by itself.
    async fn release_replaced(self: Arc<Self>, old: Arc<Proc>, new: Arc<Proc>) {
        let _ = new.subscribe().wait_for(has_launched).await;
        if !old.has_policy() {
            self.release(&old).await;
        }
    }

    /// Completes the restarts that earlier daemons began.
    pub(super) fn finish_restarts(self: &Arc<Self>) {
        for new in self.newest_first() {
            let Some(replaces) = new.spec.pending.as_ref().and_then(|pending| pending.replaces) else { continue };
            let is_kept = || self.table().get(replaces).is_some_and(|old| !old.published_state().is_final());
            if new.published_state().phase == Phase::Pending || is_kept() {
                tokio::spawn(on_disk(self.clone().finish_restart(new)));
            }
        }
    }

    async fn finish_restart(self: Arc<Self>, new: Arc<Proc>) {
        let Some(pending) = new.spec.pending.clone() else { return };
        let Some(id) = pending.replaces else { return };
        // The old run may be among records that could not be read yet.
        while self.set_asides().values().any(|aside| matches!(aside, SetAside::Unread(_))) {
            sleep(RETRY_DELAY).await;
        }
        let guard = self.names.lock(new.spec.name.as_deref().unwrap_or(&id.to_string())).await;
        let old = self.table().get(id);
        if new.is_held() {
            if !pending.given_env
                && let Some(old) = &old
            {
                self.keep_env(old, &new, None).await;
            }
            let end = match (self.restart_env(&new).await, &old) {
                (Ok(None) | Err(_), _) => Some(PendingEnd::EnvironmentLost),
                (_, Some(old)) => {
                    let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid: 0, pid: 0 };
                    end_tree(old, kill).await.map(|_| PendingEnd::Canceled(never_ran(Cause::Dependency, wall_ms())))
                }
                // Its record is damaged, and its tree may live.
                (_, None) if self.set_asides().contains_key(&id) => {
                    Some(PendingEnd::Canceled(never_ran(Cause::Dependency, wall_ms())))
                }
                (_, None) => None,
            };
            match end {
                Some(end) => self.drop_replacement(&new, end).await,
                None => {
                    hooks::at("restart.killed");
                    new.end_hold();
                    self.schedule();
                }
            }
        }
        drop(guard);
        if let Some(old) = old {
            self.release_replaced(old, new).await;
        }
    }

    /// Builds the request to run a process again, with the given environment, else that of the run before.
    async fn same_again(&self, old: &Arc<Proc>, given: Option<Variables>) -> Result<SpawnRequest, SpawnError> {
        if let Some(given) = given {
            return Ok(spec::again(&old.spec, spec::AgainEnv::Given(given)));
        }
        let kept = self.restart_env(old).await.map_err(|why| SpawnError::NoReply { proc: old.clone(), why })?;
        let kept = kept.ok_or_else(|| SpawnError::NoEnvironment(old.clone()))?;
        Ok(spec::again(&old.spec, spec::AgainEnv::Kept(kept)))
    }
}

/// Kills a tree whose end a client wants, unless nothing of it is left. Returns what survived.
async fn end_tree(old: &Arc<Proc>, kill: Kill) -> Option<Vec<Member>> {
    if old.published_state().is_final() {
        return None;
    }
    let killed = kill_all(vec![old.clone()], kill).await;
    killed.into_iter().find(|killed| killed.status == KillStatus::Survivors).map(|killed| killed.survivors)
}
