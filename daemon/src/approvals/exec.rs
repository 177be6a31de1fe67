//! The question about a command that an `exec` wants to start.

use super::Approvals;
use super::question::{Question, covers, offers};
use crate::call_clock;
use crate::config::Config;
use crate::config::policy::find_profile;
use crate::policy::{Admitted, JudgedCaller, PolicyRefusal};
use crate::proc::Proc;
use crate::registry::{NamePolicy, SpawnError, Spawned};
use crate::spec::{self, InvalidParam, SpawnRequest};
use crate::store::record::Spec;
use std::sync::Arc;
use toold_proto::approval::{Action, ApprovalKind, Caller, ProfileChange, Why};
use toold_proto::params::ExecParams;
use toold_proto::sandbox::SandboxSetting;

/// A command that needs the answer of a person, and the reasons.
#[derive(Debug, Clone)]
pub struct NeedsApproval {
    pub kind: ApprovalKind,
    pub why: Vec<Why>,
    pub profile: Option<ProfileChange>,
    /// Names of the variables that the call sets.
    pub env_names: Vec<String>,
}

/// The reason why a command was not started.
pub enum ExecError {
    Spawn(SpawnError),
    /// A person would have to be asked, and this call or the policy asks none.
    NotAsked {
        reason: &'static str,
        message: String,
    },
}

impl NeedsApproval {
    /// Returns a question about a call, without reasons.
    pub fn new(kind: ApprovalKind, call: &ExecParams) -> NeedsApproval {
        NeedsApproval { kind, why: Vec::new(), profile: None, env_names: set_names(call) }
    }

    /// Returns the wish of a call for a wider profile.
    pub fn escalation(call: &ExecParams, config: &Config) -> Result<Option<NeedsApproval>, InvalidParam> {
        let Some(escalate) = &call.escalate else { return Ok(None) };
        if escalate.reason.trim().is_empty() {
            return Err(InvalidParam::new("escalate.reason", "must not be empty: the person who decides reads it"));
        }
        let Some(to) = find_profile(&escalate.to, &config.profile) else {
            return Err(InvalidParam::new("escalate.to", format!("there is no profile {:?}", escalate.to)));
        };
        let max = find_profile(&config.policy.max, &config.profile);
        if let Some(key) = max.and_then(|max| to.wider_than(&max, config.sandbox.caches)) {
            let problem = format!("{} is wider than policy.max, {}, in {key}", escalate.to, config.policy.max);
            return Err(InvalidParam::new("escalate.to", problem));
        }
        Ok(Some(NeedsApproval {
            env_names: set_names(call),
            kind: ApprovalKind::Escalate,
            why: vec![Why { label: "caller".into(), text: escalate.reason.clone() }],
            profile: Some(ProfileChange { from: profile_name(call, config).into(), to: escalate.to.clone() }),
        }))
    }
}

impl Approvals {
    /// Starts the process of a call. With `needs`, it waits for a person, unless a grant of its session or script covers it.
    pub async fn exec(
        self: &Arc<Self>,
        call: &ExecParams,
        mut request: SpawnRequest,
        policy: NamePolicy,
        needs: Option<NeedsApproval>,
        by: impl FnOnce() -> Caller,
    ) -> Result<Spawned, ExecError> {
        let Some(NeedsApproval { kind, why, profile, env_names }) = needs else {
            return self.registry.spawn(request, policy).await.map_err(ExecError::Spawn);
        };
        let config = &self.registry.config;
        let action = Action { env_names, profile, ..action(call, &request.spec) };
        let session_key = call.session_key.as_deref();
        let script_call = call_clock::script_call();
        let granted = match self.use_grant(session_key, &covers(&action)).await {
            Some(grant) => Some(grant),
            None => self.use_script_grant(script_call.as_ref()).await,
        };
        if let Some(grant) = granted {
            request.spec.policy.get_or_insert_default().grant = Some(grant);
            return self.registry.spawn(request, policy).await.map_err(ExecError::Spawn);
        }
        let timeout_ms = call.approval_timeout_ms.unwrap_or(config.policy.approval_timeout_ms);
        let because = why.iter().map(|why| why.text.as_str()).collect::<Vec<_>>().join("; ");
        if timeout_ms == 0 {
            let message = format!("it needs an approval ({because}), and approval_timeout_ms is 0");
            return Err(ExecError::NotAsked { reason: "approval_timeout", message });
        }
        let question = Question {
            kind,
            why,
            offers: offers(&action, session_key, script_call.as_ref()),
            action,
            session_key: call.session_key.clone(),
            task_id: call.task_id.clone(),
            requested_by: by(),
            timeout_ms,
            request_id: None,
            script: script_call.map(|call| call.script),
        };
        self.spawn(request, policy, Some(question)).await.map_err(ExecError::Spawn)
    }
}

impl Approvals {
    /// Refuses to start a process again that a person approved once, or denied: `exec` asks again.
    pub fn check_restart(&self, proc: &Proc) -> Result<(), ExecError> {
        let Some(policy) = &proc.spec.policy else { return Ok(()) };
        let is_granted = policy.grant.is_some_and(|id| self.is_in_force(id));
        if policy.approval.is_none() && policy.grant.is_none() || is_granted {
            return Ok(());
        }
        let why = if policy.grant.is_some() { "its grant has ended" } else { "it needs an approval for each start" };
        let message = format!("{} is not started again: {why}; `exec` asks for it", proc.spec.id);
        Err(ExecError::NotAsked { reason: "approval", message })
    }
}

impl Approvals {
    /// Judges the environment that a call gives to a process that starts again: a rule that allowed it may not hold with that, and
    /// no person is asked about a restart.
    pub fn judge_restart(&self, proc: &Proc, call: &ExecParams, caller: JudgedCaller) -> Result<(), PolicyRefusal> {
        let given = spec::given(&call.env, &call.env_base64).unwrap_or_default();
        let request = spec::again(&proc.spec, spec::AgainEnv::Given(given));
        let call = ExecParams {
            argv: Some(proc.spec.argv.clone()),
            session_key: proc.spec.session_key.clone(),
            ..call.clone()
        };
        let Admitted::Ask(judgement) = self.judge.admit(&call, &request, &self.registry.config, caller)? else {
            return Ok(());
        };
        if proc.spec.policy.as_ref().and_then(|policy| policy.grant).is_some_and(|id| self.is_in_force(id)) {
            return Ok(());
        }
        let reason = format!("{}; `exec` asks for it", judgement.reason());
        Err(self.judge.refuse(&request, Some(&judgement), reason, caller))
    }
}

/// Describes the command of a call, as a person decides on it.
pub(super) fn action(call: &ExecParams, spec: &Spec) -> Action {
    let mut argv = spec.argv.clone();
    // The text of the call: a login shell may get more before it.
    if let (Some(text), Some(last)) = (&call.command, argv.last_mut()) {
        last.clone_from(text);
    }
    Action {
        argv,
        command: Some(spec.command.clone()),
        program: Some(spec.program.clone()),
        cwd: Some(spec.cwd.clone()),
        ..Action::default()
    }
}

/// Returns the name of the profile that a call has without an escalation.
fn profile_name<'a>(call: &'a ExecParams, config: &'a Config) -> &'a str {
    let named = match &call.sandbox {
        Some(SandboxSetting::Name(name)) => Some(name),
        Some(SandboxSetting::Options(options)) => options.profile.as_ref(),
        None => None,
    };
    named.unwrap_or(&config.policy.default)
}

/// Returns the names of the variables that a call sets, in order.
pub(super) fn set_names(call: &ExecParams) -> Vec<String> {
    let mut names: Vec<String> = call.env.keys().chain(call.env_base64.keys()).cloned().collect();
    names.sort_unstable();
    names
}
