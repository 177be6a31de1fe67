//! Confines a request: by the profile of its call, and before each start.

use super::Registry;
use super::spawn::SpawnError;
use crate::sandbox::SandboxError;
use crate::sandbox::plan::Plan;
use crate::sandbox::profile::{self, Ceiling};
use crate::sandbox::resolve::Wanted;
use crate::spec::SpawnRequest;
use std::sync::Arc;
use toold_proto::sandbox::{Measure, NotEnforced, ProfileMode, SandboxSetting};

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
        let Some(plan) = self.plan(asked, session, || Ok(cwd.clone()), key)? else { return Ok(()) };
        request.spec.sandbox = Some(Box::new(plan.to_spec()));
        request.plan = Some(Arc::new(plan));
        Ok(())
    }

    /// Judges the profile that a call asks for. None: it is not confined, and `cwd` is not asked for.
    pub fn plan(
        &self,
        asked: Option<&SandboxSetting>,
        session: Option<&Ceiling>,
        cwd: impl FnOnce() -> Result<String, SandboxError>,
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
        let wanted = Wanted { chosen, cwd: &cwd()?, session: key, ceilings: &ceilings };
        Ok(Some(self.resolver.resolve(wanted, &self.config.sandbox)?))
    }

    /// Makes what a confined request needs to start. Nothing is recorded yet.
    pub(super) async fn prepare(&self, request: &mut SpawnRequest) -> Result<(), SpawnError> {
        let Some(spec) = request.spec.sandbox.as_deref() else { return Ok(()) };
        let _plan: Arc<Plan> = match request.plan.take() {
            Some(plan) => plan,
            None => {
                let session = request.spec.session_key.as_deref();
                let plan = self.resolver.resolve_again(spec, session, &self.config.sandbox);
                Arc::new(plan.map_err(|e| SpawnError::Sandbox(e.into()))?)
            }
        };
        let why = "this version cannot enforce it";
        let missing = Measure::ALL.iter().map(|what| NotEnforced { what: *what, why: why.into() });
        Err(SpawnError::Sandbox(SandboxError::Unavailable(missing.collect())))
    }
}
