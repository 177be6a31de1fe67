//! Restarts a process: the same spec again under the same name, when its old tree is proven to be gone. What can be checked is
//! checked before anything is killed.

use super::replacement::check_program;
use super::spawn::SpawnError;
use super::{Registry, RunningSlot};
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::kill_all;
use crate::proc::state::Phase;
use crate::spec::{self, SpawnRequest, Variables};
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::results::KillStatus;
use toold_shim::hooks;

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
        let request = self.same_again(old, call.env).await?;
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
        if !old.published_state().is_final() {
            let RestartCall { grace_ms, uid, pid, .. } = call;
            let kill = Kill { signal: libc::SIGTERM, grace_ms, cause: Cause::Client, uid, pid };
            let killed = kill_all(vec![old.clone()], kill).await;
            if let Some(killed) = killed.into_iter().find(|killed| killed.status == KillStatus::Survivors) {
                return Err(SpawnError::Survivors { proc: old.clone(), survivors: killed.survivors });
            }
        }
        hooks::at("restart.killed");
        if request.spec.pending.is_some() {
            drop(slot);
            return self.spawn_pending(request).await.map(|new| new.clone());
        }
        self.spawn_in(request, slot).await.map(|new| new.clone())
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
