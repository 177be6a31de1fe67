//! The part of a session's settings that its calls take over: a profile and its ceiling, a directory, names of variables.

use super::{DamagedSession, Judge, SessionSettings};
use crate::config::Config;
use crate::sandbox::SandboxError;
use crate::sandbox::profile::{Ceiling, ChosenProfile, choose};
use toold_proto::params::ExecParams;
use toold_proto::sandbox::{ProfileMode, SandboxOptions, SandboxSetting};

/// The defaults and the ceiling of one session.
#[derive(Debug, Clone, Default)]
pub struct SessionDefaults {
    /// None: the session has no profile of its own.
    pub ceiling: Option<Ceiling>,
    pub env_pass: Vec<String>,
}

impl SessionDefaults {
    /// Checks the profile of a session: it must exist, and not be wider than `policy.max`.
    pub fn of(settings: &SessionSettings, config: &Config) -> Result<SessionDefaults, SandboxError> {
        let mut defaults = SessionDefaults { ceiling: None, env_pass: settings.env_pass.clone() };
        if let Some(sandbox) = &settings.sandbox {
            let with_roots = add_roots(sandbox.clone(), &settings.roots, config)?;
            let ChosenProfile { name, mut profile } = choose(Some(&with_roots), config, None)?;
            // Without roots of its own, a session works in any directory that the config allows.
            if settings.roots.is_empty() {
                profile.roots.clear();
            } else {
                profile.roots.extend(settings.cwd.clone());
            }
            let of = format!("that of session {:?}, {name}", settings.session_key);
            defaults.ceiling = Some(Ceiling { of, profile });
        }
        Ok(defaults)
    }
}

impl Judge {
    /// Fills in what a call leaves to its session, and returns what else the session decides.
    pub fn apply_session(&self, call: &mut ExecParams, config: &Config) -> Result<SessionDefaults, SandboxError> {
        let found = self.sessions.find(call.session_key.as_deref());
        let Some(session) = found.map_err(|DamagedSession(key)| SandboxError::SessionDamaged(key))? else {
            return Ok(SessionDefaults::default());
        };
        if call.cwd.is_none() {
            call.cwd.clone_from(&session.cwd);
        }
        if call.sandbox.is_none() {
            call.sandbox.clone_from(&session.sandbox);
        }
        if !session.roots.is_empty() {
            let default = || SandboxSetting::Name(config.policy.default.clone());
            let asked = call.sandbox.take().unwrap_or_else(default);
            call.sandbox = Some(add_roots(asked, &session.roots, config)?);
        }
        SessionDefaults::of(&session, config)
    }
}

/// Adds the roots of a session to a profile that has roots.
fn add_roots(asked: SandboxSetting, roots: &[String], config: &Config) -> Result<SandboxSetting, SandboxError> {
    if roots.is_empty() || choose(Some(&asked), config, None)?.profile.mode != ProfileMode::WorkspaceWrite {
        return Ok(asked);
    }
    let mut options = match asked {
        SandboxSetting::Name(name) => SandboxOptions { profile: Some(name), ..SandboxOptions::default() },
        SandboxSetting::Options(options) => *options,
    };
    options.roots.extend(roots.iter().cloned());
    Ok(SandboxSetting::Options(Box::new(options)))
}
