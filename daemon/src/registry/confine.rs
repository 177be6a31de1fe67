//! Confines a request: by the profile of its call, and before each start.

use super::spawn::SpawnError;
use super::{Registry, stage};
use crate::disk;
use crate::proc::Proc;
use crate::proc::state::Phase;
use crate::sandbox::plan::{Judged, Plan};
use crate::sandbox::profile::{self, Ceiling};
use crate::sandbox::resolve::{ResolveError, Wanted};
use crate::sandbox::wall::{Prepared, Unavailable};
use crate::sandbox::{SandboxError, session_tmp};
use crate::spec::SpawnRequest;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::step;
use toold_proto::sandbox::{ProfileMode, SandboxSetting};

impl Registry {
    /// Judges the profile that a call asks for, and adds it to the request. `session`: the ceiling of its session. Without a
    /// profile and with the default config it does nothing.
    pub fn confine(
        &self,
        request: &mut SpawnRequest,
        asked: Option<&SandboxSetting>,
        session: Option<&Ceiling>,
    ) -> Result<(), SandboxError> {
        let (cwd, key) = (&request.spec.cwd, request.spec.session_key.as_deref());
        if let Some(plan) = self.plan(asked, session, Some(cwd), key)? {
            request.spec.sandbox = Some(Box::new(plan.to_spec()));
            request.plan = Some(Arc::new(plan));
        }
        stage::choose_roots(request)
    }

    /// Keeps a directory of the daemon in reach of a request that is confined: read-only, and sockets in it can be connected to,
    /// also those that are made later. It does nothing for a request that is not confined.
    pub fn add_channel(&self, request: &mut SpawnRequest, dir: &Path) -> Result<(), SandboxError> {
        let Some(spec) = request.spec.sandbox.as_deref_mut() else { return Ok(()) };
        let swapped = |_| SandboxError::Resolve(ResolveError::Swapped { path: dir.display().to_string() });
        let channel = Judged::open(dir).map_err(swapped)?;
        spec.channel_dir = Some(channel.path.to_string_lossy().into_owned());
        match request.plan.as_mut().and_then(Arc::get_mut) {
            Some(plan) => plan.set_channel(channel).map_err(swapped),
            // It is opened again at the start.
            None => {
                request.plan = None;
                Ok(())
            }
        }
    }

    /// Judges the profile that a call asks for. None: it is not confined. Without `cwd` only the roots of the profile are roots.
    pub fn plan(
        &self,
        asked: Option<&SandboxSetting>,
        session: Option<&Ceiling>,
        cwd: Option<&str>,
        key: Option<&str>,
    ) -> Result<Option<Plan>, SandboxError> {
        if asked.is_none() && session.is_none() && profile::is_unconfined_by_default(&self.config) {
            return Ok(None);
        }
        let chosen = profile::choose(asked, &self.config, session)?;
        if chosen.profile.mode == ProfileMode::Full {
            return Ok(None);
        }
        let ceilings: Vec<Ceiling> =
            [profile::config_ceiling(&self.config)].into_iter().chain(session.cloned()).collect();
        let wanted = Wanted { chosen, cwd, session: key, ceilings: &ceilings };
        Ok(Some(self.resolver.resolve(wanted, &self.config.sandbox)?))
    }

    /// Makes what a confined request needs to start, and adds what is enforced to its spec. Nothing is recorded yet.
    pub(super) async fn prepare(&self, request: &mut SpawnRequest) -> Result<Option<Box<Prepared>>, SpawnError> {
        let session = request.spec.session_key.as_deref();
        let stage = request.spec.stage.clone();
        let Some(spec) = request.spec.sandbox.as_deref_mut() else {
            let staged = self.prepare_staged(None, stage.as_deref()).await;
            return staged.map_err(|e| SpawnError::Sandbox(e.into()));
        };
        let plan = match request.plan.take() {
            Some(plan) => plan,
            None => {
                let plan = self.resolver.resolve_again(spec, session, &self.config.sandbox);
                let plan = plan.map_err(|e| SpawnError::Sandbox(e.into()))?;
                // Protected paths may have come and gone since it was recorded.
                *spec = plan.to_spec();
                Arc::new(plan)
            }
        };
        let staged = self.prepare_staged(Some(&plan), stage.as_deref()).await;
        let prepared = match staged.map_err(|e| SpawnError::Sandbox(e.into()))? {
            Some(prepared) => *prepared,
            None => {
                let mut prepared = self.walls.prepare(&plan, || self.confined_pids(&plan)).await;
                if prepared.as_ref().is_err_and(has_lost_a_path) {
                    let again = self.resolver.resolve_again(spec, session, &self.config.sandbox);
                    let plan = again.map_err(|e| SpawnError::Sandbox(e.into()))?;
                    *spec = plan.to_spec();
                    prepared = self.walls.prepare(&plan, || self.confined_pids(&plan)).await;
                }
                prepared.map_err(|e| SpawnError::Sandbox(e.into()))?
            }
        };
        spec.enforced = prepared.enforced.clone();
        spec.not_enforced = prepared.not_enforced.clone();
        spec.by = prepared.by.clone();
        Ok(Some(Box::new(prepared)))
    }

    /// Adds to a confined request what would be enforced if it started now. Nothing starts; the walls that it would use are made.
    pub async fn measure(&self, request: &mut SpawnRequest) -> Result<(), SandboxError> {
        let (Some(plan), Some(spec)) = (&request.plan, request.spec.sandbox.as_deref_mut()) else { return Ok(()) };
        let measured = self.walls.measure(plan, || self.confined_pids(plan)).await?;
        (spec.enforced, spec.not_enforced, spec.by) = (measured.enforced, measured.not_enforced, measured.by);
        Ok(())
    }

    /// Returns the paths that no confined job may reach, as far as they exist.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        self.resolver.hidden_paths(&self.config.sandbox)
    }

    /// Makes what a recorded process needs to start, or returns the step that failed: its paths may be others by now.
    pub(super) async fn prepare_again(&self, proc: &Proc) -> Result<Option<Box<Prepared>>, (u32, i32)> {
        let stage = proc.spec.stage.as_deref();
        let no_stage = |why: Unavailable| match why {
            Unavailable::Failed(e) => (e.step, e.errno),
            Unavailable::NotEnforced(_) | Unavailable::NoStage(_) => (step::OVERLAY, libc::ENOTSUP),
        };
        let Some(spec) = proc.spec.sandbox.as_deref() else {
            return self.prepare_staged(None, stage).await.map_err(no_stage);
        };
        let session = proc.spec.session_key.as_deref();
        let plan = self.resolver.resolve_again(spec, session, &self.config.sandbox);
        let plan = plan.map_err(|_| (step::PATH_IDENTITY, libc::ESTALE))?;
        let prepared = match self.prepare_staged(Some(&plan), stage).await.map_err(no_stage)? {
            Some(prepared) => Ok(*prepared),
            None => self.walls.prepare(&plan, || self.confined_pids(&plan)).await,
        };
        match prepared {
            Ok(prepared) if spec.enforced.iter().all(|what| prepared.enforced.contains(what)) => {
                Ok(Some(Box::new(prepared)))
            }
            // Less than its record promises.
            Ok(_) | Err(Unavailable::NotEnforced(_) | Unavailable::NoStage(_)) => Err((step::SANDBOX, libc::ENOTSUP)),
            Err(Unavailable::Failed(e)) => Err((e.step, e.errno)),
        }
    }

    /// Removes the private `/tmp` of a session that has ended.
    pub(super) async fn remove_session_tmp(&self, session: &str) {
        let (state_dir, session) = (self.resolver.own_paths().state_dir.clone(), session.to_string());
        let removed = disk::blocking(move || session_tmp::remove(&state_dir, Some(&session))).await.flatten();
        if let Err(e) = removed {
            tracing::warn!(%e, "failed to remove the /tmp of a session");
        }
    }

    /// Removes the private `/tmp` of jobs without a session if none of them lives, and the rest of removed ones.
    pub(super) fn remove_unused_tmp(&self) {
        let state_dir = &self.resolver.own_paths().state_dir;
        session_tmp::remove_rest(state_dir);
        let uses = |proc: &Arc<Proc>| {
            proc.spec.sandbox.is_some() && proc.spec.session_key.is_none() && !proc.published_state().is_final()
        };
        if !self.newest_first().iter().any(uses)
            && let Err(e) = session_tmp::remove(state_dir, None)
        {
            tracing::warn!(%e, "failed to remove the /tmp of jobs without a session");
        }
    }

    /// Returns the pids of programs that run in the network namespace that a plan is to share.
    pub(super) fn confined_pids(&self, plan: &Plan) -> Vec<i32> {
        let is_same = |proc: &Arc<Proc>| {
            let spec = proc.spec.sandbox.as_deref();
            let has_net = spec.is_some_and(|spec| {
                spec.network == plan.network && spec.by.namespaces.iter().any(|name| name == "net")
            });
            has_net && proc.spec.session_key == plan.session
        };
        let states = self.newest_first().into_iter().filter(is_same).map(|proc| proc.published_state());
        states.filter(|state| state.phase == Phase::Running).map(|state| state.pid).collect()
    }
}

/// Returns true if a path was removed between the look at it and the mount on it: git and editors replace protected files.
fn has_lost_a_path(why: &Unavailable) -> bool {
    matches!(why, Unavailable::Failed(failed) if failed.step == step::MOUNTS && failed.errno == libc::ENOENT)
}
