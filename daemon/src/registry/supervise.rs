//! Restarts processes by their policy. A task for each process with one waits for its end, decides, and records the next run,
//! which waits for its time as any pending process does.
//!
//! Nothing is doubled or forgotten by a crash: the decision depends only on the record of the run that ended; the next run is
//! recorded once, with the id of that run; and the shim of the ended run, which has the environment, stays until the next one
//! runs or there is none. So the next daemon finds the ended run unfinished, and decides the same.

use super::pending::has_launched;
use super::retry::is_waiting_retry;
use super::{Registry, SetAside};
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::control::Control;
use crate::proc::event_sink::RETRY_DELAY;
use crate::proc::handle::{Kill, NoReply};
use crate::proc::kill::{GRACE_MS, kill_trees};
use crate::proc::state::{Phase, State};
use crate::proc::view;
use crate::registry::SpawnError;
use crate::spec;
use crate::store::pending::PendingSpec;
use crate::store::restart::RestartDecision;
use std::sync::Arc;
use tokio::time::sleep;
use toold_format::slots::Cause;
use toold_proto::ProcId;
use toold_proto::event::RestartGaveUp;
use toold_proto::results::KillStatus;
use toold_shim::hooks;

impl Registry {
    /// Follows a process with a restart policy to its end, and restarts it then.
    pub(super) fn supervise(self: &Arc<Self>, proc: &Arc<Proc>) {
        if proc.has_policy() && proc.begin_supervision() {
            tokio::spawn(on_disk(self.clone().follow(proc.clone())));
        }
    }

    /// Follows the processes of earlier daemons: those of which something is left, and those that ended without it and were
    /// not decided on.
    pub(super) fn supervise_adopted(self: &Arc<Self>) {
        for proc in self.newest_first().iter().filter(|proc| proc.has_policy()) {
            let state = proc.published_state();
            let is_undecided = || match state.phase {
                Phase::Lost { .. } => !proc.checkpoint().gave_up,
                Phase::Failed { .. } => proc.restarts() > 0 && !proc.checkpoint().gave_up,
                Phase::Pending | Phase::Starting | Phase::Running | Phase::Exited { .. } => false,
            };
            if !state.is_final() || is_undecided() {
                self.supervise(proc);
            }
        }
    }

    async fn follow(self: Arc<Self>, proc: Arc<Proc>) {
        let _ = proc.subscribe().wait_for(State::has_ended).await;
        // The next run may be among records that could not be read yet.
        while self.set_asides().values().any(|aside| matches!(aside, SetAside::Unread(_))) {
            sleep(RETRY_DELAY).await;
        }
        let next = match self.next_run(proc.spec.id) {
            Some(next) => Some(next),
            None => self.restart_by_policy(&proc).await,
        };
        if let Some(next) = next {
            // A client that wanted the end may not have seen the next run.
            if proc.is_policy_ended() {
                self.cancel(&next).await;
            }
            let state = next.subscribe().wait_for(has_launched).await.map(|state| *state);
            if state.is_ok_and(|state| matches!(state.phase, Phase::Failed { .. })) && next.has_policy() {
                // It did not start, so it does not have the environment. Its own task continues with ours.
                return;
            }
            hooks::at("restart.started");
        }
        self.release(&proc).await;
    }

    /// Decides what follows the end of a run, and records the next one. None: there is none.
    async fn restart_by_policy(self: &Arc<Self>, proc: &Arc<Proc>) -> Option<Arc<Proc>> {
        let policy = proc.spec.restart.as_deref().copied()?;
        let decision = match proc.run_end(&proc.published_state()) {
            _ if proc.checkpoint().gave_up || proc.is_policy_ended() => RestartDecision::Stay,
            Some(end) => policy.decide(end),
            None => {
                self.give_up(proc, "its environment or its shim is lost".into()).await;
                return None;
            }
        };
        let (at_ms, count) = match decision {
            RestartDecision::Stay => return None,
            RestartDecision::GiveUp => {
                self.give_up(proc, format!("it ended after {} restarts in a row", policy.count)).await;
                return None;
            }
            RestartDecision::Restart { at_ms, count } => (at_ms, count),
        };
        // The rest of the tree would hold what the next run needs: ports, locks.
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Shutdown, uid: 0, pid: 0 };
        let killed = kill_trees(vec![proc.clone()], kill).await;
        if killed.iter().any(|killed| killed.status == KillStatus::Survivors) {
            self.give_up(proc, "processes of its tree survived SIGKILL".into()).await;
            return None;
        }
        hooks::at("restart.due");
        loop {
            match self.record_next(proc, at_ms, count).await {
                Ok(next) => {
                    hooks::at("restart.recorded");
                    return Some(next);
                }
                Err(SpawnError::NameInUse(holder)) => {
                    self.give_up(proc, format!("its name is in use by {}", holder.spec.id)).await;
                    return None;
                }
                // A disk that is full now may have room later.
                Err(_) if !proc.is_policy_ended() => {
                    tracing::warn!(id = %proc.spec.id, "failed to record a restart; trying again");
                    sleep(RETRY_DELAY).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Records the next run, which waits for its time.
    async fn record_next(self: &Arc<Self>, proc: &Arc<Proc>, at_ms: u64, count: u32) -> Result<Arc<Proc>, SpawnError> {
        // The environment is read when it starts.
        let mut request = spec::again(&proc.spec, spec::AgainEnv::Kept(Vec::new()));
        // The program may be there again by then.
        (request.spec.program, request.unresolved) = (proc.spec.program.clone(), None);
        let limits = spec::requested_limits(&proc.spec);
        let queue = proc.spec.pending.as_ref().and_then(|pending| pending.queue.clone());
        let env_mode = proc.spec.env_mode;
        let pending = PendingSpec { queue, restart_at_ms: Some(at_ms), env_mode, limits, ..PendingSpec::default() };
        request.spec.pending = Some(Box::new(pending));
        if let Some(restart) = &mut request.spec.restart {
            restart.count = count;
        }
        self.create_pending(request).await
    }

    /// Returns the run that follows this one.
    fn next_run(&self, id: ProcId) -> Option<Arc<Proc>> {
        let follows = |proc: &&Arc<Proc>| proc.spec.restart.as_ref().is_some_and(|restart| restart.of == Some(id));
        self.table().newest_first().find(follows).cloned()
    }

    fn previous_run(&self, proc: &Proc) -> Option<Arc<Proc>> {
        let restarted = proc.spec.restart.as_ref().and_then(|restart| restart.of);
        let retried = || proc.spec.policy.as_ref().and_then(|policy| policy.retry_of);
        self.table().get(restarted.or_else(retried)?)
    }

    /// Adds the next runs that wait for their time, or for an approval: who ends a process does not want it to start again.
    pub fn with_pending_runs(&self, mut procs: Vec<Arc<Proc>>) -> Vec<Arc<Proc>> {
        for at in 0..procs.len() {
            let next = if procs[at].has_policy() { self.next_run(procs[at].spec.id) } else { None };
            let next = next.filter(|next| is_waiting_restart(next)).or_else(|| self.waiting_retry(&procs[at]));
            procs.extend(next.filter(|next| procs.iter().all(|proc| proc.spec.id != next.spec.id)));
        }
        procs
    }

    pub(super) async fn cancel(&self, next: &Arc<Proc>) {
        if is_waiting_restart(next) || is_waiting_retry(next) {
            let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid: 0, pid: 0 };
            kill_trees(vec![next.clone()], kill).await;
        }
    }

    /// Returns the environment for the next run of a process: that of the last run whose shim lives, or, if it had no values
    /// of its own, the one that the daemon builds.
    pub(super) async fn restart_env(&self, proc: &Arc<Proc>) -> Result<Option<Vec<Vec<u8>>>, NoReply> {
        let mut run = Some(proc.clone());
        while let Some(at) = run {
            let state = at.published_state();
            let is_new = matches!(state.phase, Phase::Pending | Phase::Starting | Phase::Failed { .. });
            if is_new && at.spec.pending.as_ref().is_some_and(|pending| pending.given_env) {
                // The values of the run before are not those of the call.
                let before = self.previous_run(&at).filter(|before| !before.published_state().is_final());
                let Some(before) = before else { return Ok(None) };
                match before.read_given_env().await {
                    Err(NoReply::Gone) => sleep(RETRY_DELAY).await,
                    answer => return answer,
                }
                run = Some(at);
                continue;
            }
            if !state.is_final() && state.phase != Phase::Pending && state.phase != Phase::Starting {
                match at.read_env().await {
                    Ok(Some(env)) => return Ok(Some(env)),
                    Ok(None) => {}
                    // The connection to its shim broke: try again on the next one.
                    Err(NoReply::Gone) => {
                        sleep(RETRY_DELAY).await;
                        run = Some(at);
                        continue;
                    }
                    Err(e) => return Err(e),
                }
            }
            run = self.previous_run(&at);
        }
        let built = |mode| spec::daemon_env(&proc.spec, mode, &self.config);
        Ok(proc.spec.env_mode.map(built))
    }

    /// Publishes that a policy does not restart a process any more, once.
    async fn give_up(&self, proc: &Arc<Proc>, why: String) {
        let outcome = view::outcome(&proc.spec, &proc.published_state());
        let event = RestartGaveUp {
            name: proc.spec.name.clone(),
            restarts: proc.restarts(),
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            message: why,
        };
        while !proc.checkpoint().gave_up {
            match proc.publish_event(&event, |checkpoint| checkpoint.gave_up = true) {
                Ok(_) => {}
                Err(e) => {
                    tracing::error!(id = %proc.spec.id, %e, "failed to store an event; trying again");
                    sleep(RETRY_DELAY).await;
                }
            }
        }
        tracing::info!(id = %proc.spec.id, message = event.message, "gave up restarting");
        hooks::at("restart.gave_up");
    }

    /// Lets the shim go that kept the environment: that of this run, or, if it did not start, of the last one before that did.
    pub async fn release(&self, proc: &Arc<Proc>) {
        let mut run = Some(proc.clone());
        while let Some(at) = run {
            while !at.published_state().is_final() {
                match at.control(Control::Release).await {
                    Ok(_) => break,
                    // The connection to its shim broke: try again on the next one.
                    Err(_) => sleep(RETRY_DELAY).await,
                }
            }
            let did_start = !matches!(at.published_state().phase, Phase::Failed { .. });
            run = if did_start { None } else { self.previous_run(&at) };
        }
    }
}

/// Returns true for a run that a policy recorded and that waits for its time.
fn is_waiting_restart(proc: &Proc) -> bool {
    let is_restart = proc.spec.pending.as_ref().is_some_and(|pending| pending.restart_at_ms.is_some());
    is_restart && proc.published_state().phase == Phase::Pending
}
