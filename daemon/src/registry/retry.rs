//! The retry of a process that failed because of its sandbox: the same program once more, under the widest profile that the
//! config allows. The shim of the run that failed has its environment.

use super::Registry;
use super::pending::has_launched;
use super::spawn::SpawnError;
use crate::proc::Proc;
use crate::proc::state::Phase;
use crate::spec::{self, Ask};
use crate::store::pending::PendingSpec;
use crate::store::policy::PolicySpec;
use std::path::Path;
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::approval::GrantId;
use toold_proto::sandbox::SandboxSetting;

impl Registry {
    /// Returns the retry of a process.
    pub fn retry_run(&self, id: ProcId) -> Option<Arc<Proc>> {
        let is_it = |proc: &&Arc<Proc>| proc.spec.policy.as_ref().is_some_and(|policy| policy.retry_of == Some(id));
        self.table().newest_first().find(is_it).cloned()
    }

    /// Returns the retry of a process, if it has not started.
    pub(super) fn waiting_retry(&self, proc: &Proc) -> Option<Arc<Proc>> {
        proc.retry_spec()?;
        self.retry_run(proc.spec.id).filter(|next| is_waiting_retry(next))
    }

    /// Records the retry of a process. It waits for the answer to `ask`, if there is one, and then for its turn.
    pub async fn record_retry(
        self: &Arc<Self>,
        failed: &Proc,
        grant: Option<GrantId>,
        ask: Option<Arc<dyn Ask>>,
    ) -> Result<Arc<Proc>, SpawnError> {
        let (old, to) = (&failed.spec, SandboxSetting::Name(self.config.policy.max.clone()));
        // The environment is read when it starts, and the program may be there again by then.
        let mut request = spec::again(old, spec::AgainEnv::Kept(Vec::new()));
        (request.spec.program, request.unresolved) = (old.program.clone(), None);
        let limits = spec::requested_limits(old);
        let queue = old.pending.as_ref().and_then(|pending| pending.queue.clone());
        let env_mode = old.env_mode;
        request.spec.pending =
            Some(Box::new(PendingSpec { queue, kept_env: true, env_mode, limits, ..PendingSpec::default() }));
        let env_pass = old.policy.as_ref().map(|policy| policy.env_pass.clone()).unwrap_or_default();
        let policy = PolicySpec { retry_of: Some(old.id), grant, env_pass, ..PolicySpec::default() };
        (request.spec.policy, request.spec.restart, request.spec.sandbox) = (Some(Box::new(policy)), None, None);
        self.confine(&mut request, Some(&to), None).map_err(SpawnError::Sandbox)?;
        if let Some(dir) = old.sandbox.as_ref().and_then(|sandbox| sandbox.channel_dir.as_deref()) {
            self.add_channel(&mut request, Path::new(dir)).map_err(SpawnError::Sandbox)?;
        }
        request.ask = ask;
        let holder = request.spec.name.as_deref().and_then(|name| self.table().named(name));
        if holder.is_some_and(|holder| holder.spec.id != old.id && !holder.published_state().has_ended()) {
            // Another one has the name by now.
            request.spec.name = None;
        }
        self.create_pending(request).await
    }

    /// Waits until the retry runs, has failed to start, or will never run; then the shim of the failed run may go. A client that
    /// wanted its end may not have seen the retry.
    pub async fn finish_retry(&self, failed: &Arc<Proc>, next: &Arc<Proc>) {
        if failed.is_policy_ended() {
            self.cancel(next).await;
        }
        let _ = next.subscribe().wait_for(has_launched).await;
    }
}

/// Returns true for a retry that has not started.
pub(super) fn is_waiting_retry(proc: &Proc) -> bool {
    let is_retry = proc.spec.policy.as_ref().is_some_and(|policy| policy.retry_of.is_some());
    is_retry && proc.published_state().phase == Phase::Pending
}
