//! `policy.check`, `policy.reload` and `policy.suggest`.

use super::context::Daemon;
use super::wire::Peer;
use crate::admission;
use crate::call_error::rule_error;
use crate::clock::wall_ms;
use crate::disk;
use crate::policy::{self, RefusedProcess, Suggestion};
use crate::store::sandbox::SandboxSpec;
use std::path::Path;
use std::sync::Arc;
use toold_policy::{Judgement, Match, Part, Reason, ReasonKind};
use toold_proto::policy::{
    CheckedSandbox, DangerReport, PolicyCheckResult, PolicyReloadResult, PolicySuggestParams, PolicySuggestResult,
    PrefixPart, RuleMatch, Verdict, VerdictReason,
};
use toold_proto::{ErrorKind, RpcError, params};

pub async fn check(
    mut call: params::ExecParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PolicyCheckResult, RpcError> {
    let config = &daemon.registry.config;
    let built = admission::build(&daemon.registry, &daemon.judge, &mut call)?;
    let judgement = daemon.judge.judge(&call, &built.request, config);
    built.check_ceiling(&judgement, config)?;
    let Judgement { verdict, plain, commands, matches, danger, granted: _, reasons } = judgement;
    let mut request = built.request;
    daemon.registry.measure(&mut request).await?;
    let (sandbox, not_enforced) = match request.spec.sandbox {
        None => (CheckedSandbox::full(), Vec::new()),
        Some(spec) => {
            let SandboxSpec { profile, mode, network, roots, protect, unprotected, enforced, not_enforced, .. } = *spec;
            let roots = roots.into_iter().map(|root| root.path).collect();
            let (require, by) = (spec.require, Some(spec.by));
            let sandbox = CheckedSandbox { profile, mode, network, roots, protect, unprotected, enforced, require, by };
            (sandbox, not_enforced)
        }
    };
    Ok(PolicyCheckResult {
        verdict: self::verdict(verdict),
        plain,
        commands,
        matches: matches.into_iter().map(rule_match).collect(),
        danger: danger.map(|danger| DangerReport { kind: danger.kind.into(), command: danger.command }),
        sandbox,
        not_enforced,
        reasons: reasons.into_iter().map(reason).collect(),
    })
}

pub async fn reload(_: params::Empty, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<PolicyReloadResult, RpcError> {
    let judge = daemon.judge.clone();
    let loaded = disk::blocking(move || judge.reload()).await;
    let loaded = loaded.map_err(|e| RpcError::new(ErrorKind::Internal, format!("read the rule files: {e}")))?;
    loaded.map_err(rule_error)
}

pub async fn suggest(
    call: PolicySuggestParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PolicySuggestResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    let process = proc.view_of(&proc.state(), wall_ms());
    let found = disk::blocking(move || {
        let hide = daemon.registry.hidden_paths();
        let spec = &proc.spec;
        let (sandbox, is_dir) = (&process.sandbox, &|dir: &Path| dir.is_dir());
        let refused = RefusedProcess { sandbox, argv: &spec.argv, cwd: &spec.cwd, hide: &hide, is_dir };
        (spec.id, policy::suggest(&refused))
    });
    let found = found.await.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("look at the disk: {e}")))?;
    let (id, Suggestion { denials, roots, network, unix_sockets, profile, rules }) = found;
    Ok(PolicySuggestResult { id, denials, roots, network, unix_sockets, profile, rules })
}

fn verdict(verdict: toold_policy::Verdict) -> Verdict {
    match verdict {
        toold_policy::Verdict::Allow => Verdict::Allow,
        toold_policy::Verdict::Ask => Verdict::Ask,
        toold_policy::Verdict::Deny => Verdict::Deny,
    }
}

fn rule_match(found: Match) -> RuleMatch {
    let part = |part| match part {
        Part::One(text) => PrefixPart::One(text),
        Part::Any(texts) => PrefixPart::Any(texts),
    };
    RuleMatch {
        file: found.file,
        index: found.index as u64,
        prefix: found.prefix.into_iter().map(part).collect(),
        verdict: verdict(found.verdict),
        reason: found.reason,
    }
}

fn reason(reason: Reason) -> VerdictReason {
    let label = match reason.kind {
        ReasonKind::Rule => "rule",
        ReasonKind::Danger => "danger",
        ReasonKind::Unmatched => "unmatched",
        ReasonKind::Void => "void",
        ReasonKind::Nested => "nested",
        ReasonKind::BadFile => "bad_file",
        ReasonKind::Never => "never",
    };
    VerdictReason { label: label.into(), text: reason.text }
}
