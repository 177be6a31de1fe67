//! Builds the request that runs a recorded process again.

use super::build::find_program;
use super::env::Variables;
use super::{SpawnRequest, login_env};
use crate::backend::cgroup::RequestedLimits;
use crate::store::pending::PendingSpec;
use crate::store::policy::PolicySpec;
use crate::store::record::Spec;
use crate::store::restart::RestartSpec;
use crate::store::{namespaces, shim_level};
use crate::watch::Patterns;
use std::collections::BTreeMap;
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::env::DEFAULT_TERM;
use toold_proto::params::Limits;

/// The environment of the next run.
pub enum AgainEnv {
    /// Values of the caller.
    Given(Variables),
    /// The strings of the run before, or those that the daemon builds for a process without values of its own.
    Kept(Vec<Vec<u8>>),
}

/// Builds the request that runs a process again, as the same program in the same directory under the same name.
pub fn again(old: &Spec, env: AgainEnv) -> SpawnRequest {
    let mut spec = Spec {
        id: ProcId::from_bits(0),
        request_id: None,
        request_digest: None,
        // Its reader followed the first run.
        hold: false,
        // The patch was applied by the first run; this one only prints its result.
        patch: None,
        journaled: true,
        shim_level: shim_level::OWN,
        namespaces: namespaces::own(),
        limits: BTreeMap::new(),
        cgroups: Vec::new(),
        // The retry of another process was that run, not this one.
        policy: old.policy.clone().map(|policy| Box::new(PolicySpec { retry_of: None, ..*policy })),
        restart: Some(Box::new(RestartSpec {
            of: Some(old.id),
            count: 0,
            ..old.restart.as_deref().copied().unwrap_or_default()
        })),
        ..old.clone()
    };
    let env = match env {
        AgainEnv::Kept(strings) => strings,
        AgainEnv::Given(mut variables) => {
            if spec.pty.is_some() {
                variables.entry("TERM".into()).or_insert_with(|| DEFAULT_TERM.into());
            }
            spec.env_mode = None;
            strings(&mut spec, variables)
        }
    };
    let (program, unresolved) = find_program(&spec.program, &env);
    spec.program = program;
    let wanted = RequestedLimits::new(&requested_limits(old), old.require_limits);
    // The patterns were compiled before, by the same rules.
    let patterns = if spec.watch.is_empty() { None } else { Patterns::new(&spec.watch).ok().map(Arc::new) };
    // It waits for its turn in the same queue, and for no other process: those had ended before its first run.
    spec.pending = spec.pending.filter(|pending| pending.queue.is_some()).map(|pending| {
        let (env_mode, after) = (spec.env_mode, Vec::new());
        Box::new(PendingSpec {
            env_mode,
            after,
            restart_at_ms: None,
            replaces: None,
            given_env: false,
            kept_env: false,
            approval: None,
            ..*pending
        })
    });
    SpawnRequest { spec, env, wanted, patterns, unresolved, after: Vec::new(), plan: None, ask: None }
}

/// Returns the strings of variables. For a login shell also the text that sets them after its files.
fn strings(spec: &mut Spec, mut variables: Variables) -> Vec<Vec<u8>> {
    spec.env_names = variables.keys().cloned().collect();
    if let [_, _, text] = &spec.argv[..]
        && login_env::has_eval(text)
        && let Some((_, script)) = login_env::preserve_env(&spec.program, "", &variables)
    {
        variables.insert(login_env::ENV_VAR.into(), script);
    }
    variables.into_iter().map(|(name, value)| [name.as_bytes(), b"=", &value].concat()).collect()
}

/// Returns the limits that were requested.
pub fn requested_limits(old: &Spec) -> Limits {
    let requested = |key: &str| old.limits.get(key).map(|report| report.requested);
    Limits {
        memory_bytes: requested("memory_bytes"),
        cpu_percent: requested("cpu_percent"),
        pids: requested("pids"),
        output_bytes: requested("output_bytes"),
        idle_ms: requested("idle_ms"),
    }
}
