//! Starts the process of an `exec` call: builds it, judges it, and asks a person if one must decide. Every caller that starts
//! something uses it, and `policy.check` uses its first half.

use crate::approvals::{Approvals, ExecError, NeedsApproval, retry_spec};
use crate::config::Config;
use crate::patch::{self, ApplyError, Patches};
use crate::policy::{self, Admitted, Judge, JudgedCaller, PolicyRefusal};
use crate::registry::{NamePolicy, Registry, SpawnError, Spawned};
use crate::sandbox::SandboxError;
use crate::sandbox::profile::{ProfileError, choose, config_ceiling};
use crate::spec::{self, SpawnRequest, SpecError};
use crate::store::policy::RetrySpec;
use crate::store::record::RequestDigest;
use crate::store::script::ScriptSpec;
use std::sync::Arc;
use toold_policy::{ApprovalMode, Judgement, ReasonKind, Verdict};
use toold_proto::ProcId;
use toold_proto::approval::{ApprovalKind, Caller, Why};
use toold_proto::params::ExecParams;
use toold_proto::policy::RuleRef;
use toold_proto::sandbox::SandboxSetting;

/// The reason why a call started nothing.
pub enum AdmitError {
    Spec(SpecError),
    Sandbox(SandboxError),
    /// The policy refused it. The event of the refusal is published.
    Refused(PolicyRefusal),
    Exec(ExecError),
    /// The patch of the call was not applied, and no process has the reason.
    Patch(ApplyError),
}

impl From<SpecError> for AdmitError {
    fn from(error: SpecError) -> AdmitError {
        AdmitError::Spec(error)
    }
}

impl From<SandboxError> for AdmitError {
    fn from(error: SandboxError) -> AdmitError {
        AdmitError::Sandbox(error)
    }
}

impl From<PolicyRefusal> for AdmitError {
    fn from(refusal: PolicyRefusal) -> AdmitError {
        AdmitError::Refused(refusal)
    }
}

/// A call that can be started, if the policy allows it.
pub struct Built {
    pub request: SpawnRequest,
    /// The profile that it asks for.
    asked: Option<SandboxSetting>,
    /// It asks for more than its session has: only a rule can grant that without a question.
    wider: Option<ProfileError>,
    /// It asks a person for a wider profile.
    escalation: Option<NeedsApproval>,
}

impl Built {
    /// Returns true if rules grant every command of the call the profile that it asks for.
    fn is_granted(&self, judgement: &Judgement, config: &Config) -> bool {
        let chosen = choose(self.asked.as_ref(), config, None);
        chosen.is_ok_and(|chosen| policy::is_granted(judgement, &chosen.profile, config))
    }

    /// Fails if the call asks for more than its session has, and no rule grants it.
    pub fn check_ceiling(&self, judgement: &Judgement, config: &Config) -> Result<(), SandboxError> {
        match &self.wider {
            Some(error) if !self.is_granted(judgement, config) => Err(SandboxError::Profile(error.clone())),
            Some(_) | None => Ok(()),
        }
    }
}

/// The parts of a start that no client names.
#[derive(Default)]
pub struct StartExtras {
    /// The script that the process will be, with its id and the digest of what it runs.
    pub as_script: Option<(ProcId, Box<ScriptSpec>, Option<RequestDigest>)>,
}

/// Checks a call with the defaults of its session. Nothing has happened yet.
pub fn build(registry: &Registry, judge: &Judge, call: &mut ExecParams) -> Result<Built, AdmitError> {
    let config = &registry.config;
    let session = judge.apply_session(call, config)?;
    let mut request = spec::build(call, config, &session.env_pass)?;
    if !session.env_pass.is_empty() {
        // The daemon that starts it may be another one.
        request.spec.policy.get_or_insert_default().env_pass = session.env_pass;
    }
    let escalation = NeedsApproval::escalation(call, config).map_err(SpecError::from)?;
    // A person may grant what the session does not have, up to the ceiling of the config.
    let ceiling = session.ceiling.as_ref().filter(|_| escalation.is_none());
    let escalated = call.escalate.as_ref().map(|escalate| SandboxSetting::Name(escalate.to.clone()));
    let asked = escalated.or_else(|| call.sandbox.clone());
    let wider = match registry.confine(&mut request, asked.as_ref(), ceiling) {
        Ok(()) => None,
        Err(SandboxError::Profile(error @ ProfileError::Wider { .. })) if ceiling.is_some() => {
            registry.confine(&mut request, asked.as_ref(), None)?;
            Some(error)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Built { request, asked, wider, escalation })
}

/// Starts the process of a call, or the question whether it may start.
pub async fn exec(
    approvals: &Arc<Approvals>,
    judge: &Judge,
    patches: &Arc<Patches>,
    call: &mut ExecParams,
    policy: NamePolicy,
    extras: StartExtras,
    by: impl Fn() -> Caller,
) -> Result<Spawned, AdmitError> {
    let registry = &approvals.registry;
    let mut built = build(registry, judge, call)?;
    if let Some((id, script, digest)) = extras.as_script {
        registry.add_channel(&mut built.request, &script.run_dir)?;
        let spec = &mut built.request.spec;
        (spec.id, spec.script, spec.request_digest) = (id, Some(script), digest);
    }
    let patch = patch::recognise(call).map_err(SpecError::from)?;
    if let Some(command) = patch {
        // The roots of its profile judge it; the process that is left only prints the result.
        if let Some(error) = built.wider {
            return Err(SandboxError::Profile(error).into());
        }
        let _turn = patches.command_turn(call.request_id.as_deref()).await;
        let timeout_ms = call.approval_timeout_ms;
        let applied = patches.run_command(command, approvals, timeout_ms, by(), &mut built.request).await;
        let applied = applied.map_err(AdmitError::Patch)?;
        (call.env, call.env_base64) = Default::default();
        let started = approvals.exec(call, built.request, policy, None, by).await;
        if let Some(patch_id) = applied
            && !has_process(&started, &patch_id)
        {
            // The name is in use, or too many processes run: the answer is an error, so nothing may have changed.
            patches.undo(&patch_id).await.map_err(AdmitError::Patch)?;
        }
        return started.map_err(AdmitError::Exec);
    }
    let caller = JudgedCaller { uid: policy.uid, pid: policy.pid };
    // A request that has its process is judged already.
    let is_known = call.request_id.as_deref().is_some_and(|id| registry.knows_request(id));
    let needs = if is_known { None } else { question(judge, call, &mut built, &registry.config, caller)? };
    if !is_known && let Some(retry) = retry(judge, call, &built, &registry.config, &by) {
        built.request.spec.policy.get_or_insert_default().retry = Some(Box::new(retry));
    }
    // The launch has the values now; this call may wait for long.
    (call.env, call.env_base64) = Default::default();
    let denied = needs.is_some().then(|| built.request.clone());
    let started = approvals.exec(call, built.request, policy, needs, by).await;
    if let Ok(started) = &started {
        approvals.follow_retry(&started.proc);
    }
    started.map_err(|error| match (error, denied) {
        (ExecError::NotAsked { reason: _, message }, Some(request)) => {
            judge.refuse(&request, None, message, caller).into()
        }
        (error, _) => AdmitError::Exec(error),
    })
}

/// Returns true if a process has the result of this patch.
fn has_process(started: &Result<Spawned, ExecError>, patch_id: &str) -> bool {
    let spec = match started {
        Ok(spawned) => &spawned.proc.spec,
        Err(ExecError::Spawn(SpawnError::Failed(proc))) => &proc.spec,
        Err(_) => return false,
    };
    spec.patch.as_ref().is_some_and(|patch| patch.patch_id.as_deref() == Some(patch_id))
}

/// Notes the rules that allow a call in its record.
fn note_rules(judgement: &Judgement, request: &mut SpawnRequest) {
    // A rule that is void allowed nothing.
    if judgement.reasons.iter().any(|reason| matches!(reason.kind, ReasonKind::Void | ReasonKind::Unmatched)) {
        return;
    }
    let allowing = judgement.matches.iter().filter(|found| found.verdict == Verdict::Allow);
    let mut rules: Vec<RuleRef> =
        allowing.map(|found| RuleRef { file: found.file.clone(), index: found.index as u64 }).collect();
    rules.dedup();
    if !rules.is_empty() {
        request.spec.policy.get_or_insert_default().rules = rules;
    }
}

/// Judges a call. Returns the question that a person must answer, if there is one.
fn question(
    judge: &Judge,
    call: &ExecParams,
    built: &mut Built,
    config: &Config,
    caller: JudgedCaller,
) -> Result<Option<NeedsApproval>, AdmitError> {
    let judgement = match judge.admit(call, &built.request, config, caller)? {
        Admitted::Allow(None) if built.wider.is_none() && built.escalation.is_none() => return Ok(None),
        Admitted::Allow(judgement) => judgement.unwrap_or_else(|| Box::new(judge.judge(call, &built.request, config))),
        Admitted::Ask(judgement) => judgement,
    };
    built.check_ceiling(&judgement, config)?;
    let escalation = built.escalation.clone().filter(|_| !built.is_granted(&judgement, config));
    if escalation.is_none() && judgement.verdict == Verdict::Allow {
        note_rules(&judgement, &mut built.request);
        return Ok(None);
    }
    let mut needs = escalation.unwrap_or_else(|| NeedsApproval::new(ApprovalKind::Exec, call));
    needs.why.extend(reasons(&judgement));
    if judge.session_policy(call, config).approval == ApprovalMode::Never {
        let because = needs.why.iter().map(|why| why.text.as_str()).collect::<Vec<_>>().join("; ");
        let reason = format!("{because}; approval is never, so a question is a refusal");
        return Err(judge.refuse(&built.request, Some(&judgement), reason, caller).into());
    }
    Ok(Some(needs))
}

/// Returns the question to ask if a call fails in its sandbox, by the policy `on-failure`. None: nothing is asked, because the
/// call has the widest profile already, or a restart policy that decides what follows its end.
fn retry(
    judge: &Judge,
    call: &ExecParams,
    built: &Built,
    config: &Config,
    by: impl FnOnce() -> Caller,
) -> Option<RetrySpec> {
    let request = &built.request;
    let is_asked = request.spec.sandbox.is_some() && request.spec.restart.is_none() && built.escalation.is_none();
    if !is_asked || judge.approval_mode(call.session_key.as_deref(), config) != ApprovalMode::OnFailure {
        return None;
    }
    let (chosen, max) = (choose(built.asked.as_ref(), config, None).ok()?, config_ceiling(config));
    max.profile.wider_than(&chosen.profile, config.sandbox.caches)?;
    let judgement = judge.judge(call, request, config);
    let is_allowed = judgement.verdict == Verdict::Allow && policy::is_granted(&judgement, &max.profile, config);
    retry_spec(call, request, config, is_allowed, by())
}

/// The reasons of a judgement that a person reads.
fn reasons(judgement: &Judgement) -> impl Iterator<Item = Why> {
    let label = |kind| match kind {
        ReasonKind::Rule => "rule",
        ReasonKind::Danger => "danger",
        ReasonKind::Unmatched | ReasonKind::Void | ReasonKind::Nested | ReasonKind::BadFile | ReasonKind::Never => {
            "policy"
        }
    };
    judgement.reasons.iter().map(move |reason| Why { label: label(reason.kind).into(), text: reason.text.clone() })
}
