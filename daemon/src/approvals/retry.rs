//! The policy `on-failure`: a command runs in its sandbox, and if that made it fail, a person is asked to run it once more
//! without, up to `policy.max`.
//!
//! A task follows each such process to its end. Nothing is doubled, forgotten or run unasked by a crash: the shim of the failed
//! run stays until its retry has started or will never start, so the next daemon finds the run unfinished and goes on; the
//! question is recorded before the retry, and the retry, which waits for the answer, before anything is visible.

use super::Approvals;
use super::exec::{action, set_names};
use super::question::{Asked, Question, covers, offers};
use crate::config::Config;
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::event_sink::RETRY_DELAY;
use crate::proc::state::State;
use crate::registry::{SetAside, SpawnError};
use crate::spec::{Ask, AskError, SpawnRequest};
use crate::store::policy::RetrySpec;
use std::io;
use std::sync::Arc;
use tokio::time::sleep;
use toold_policy::ApprovalMode;
use toold_proto::approval::{Action, Approval, ApprovalKind, Caller, ProfileChange, Why};
use toold_proto::params::ExecParams;
use toold_proto::process::ProcessRetry;
use toold_proto::sandbox::Denials;
use toold_shim::hooks;

/// The most refused calls that a question lists. The process has all.
const MAX_LISTED: usize = 8;

impl Approvals {
    /// Follows a process whose failure in its sandbox is asked about.
    pub fn follow_retry(self: &Arc<Self>, proc: &Arc<Proc>) {
        if proc.retry_spec().is_some() && proc.begin_supervision() {
            tokio::spawn(on_disk(self.clone().retry_after(proc.clone())));
        }
    }

    /// Follows the processes of earlier daemons: those of which something is left, and later those whose records cannot be read yet.
    pub(super) fn resume_retries(self: &Arc<Self>) {
        self.follow_found();
        if self.has_unread() {
            let approvals = self.clone();
            tokio::spawn(on_disk(async move {
                approvals.all_read().await;
                approvals.follow_found();
            }));
        }
    }

    fn has_unread(&self) -> bool {
        self.registry.set_asides().values().any(|aside| matches!(aside, SetAside::Unread(_)))
    }

    /// Waits until every record was read, or is known to be damaged.
    async fn all_read(&self) {
        while self.has_unread() {
            sleep(RETRY_DELAY).await;
        }
    }

    fn follow_found(self: &Arc<Self>) {
        for proc in self.registry.newest_first().iter().filter(|proc| proc.retry_spec().is_some()) {
            if proc.published_state().is_final() {
                proc.set_retry(self.registry.retry_run(proc.spec.id).as_deref().map(retry));
            } else {
                self.follow_retry(proc);
            }
        }
    }

    async fn retry_after(self: Arc<Self>, proc: Arc<Proc>) {
        let _ = proc.subscribe().wait_for(State::has_ended).await;
        // The retry may be among records that could not be read yet.
        self.all_read().await;
        hooks::at("retry.ended");
        let next = match self.registry.retry_run(proc.spec.id) {
            Some(next) => Some(next),
            None => self.begin_retry(&proc).await,
        };
        proc.set_retry(next.as_deref().map(retry));
        if let Some(next) = next {
            hooks::at("retry.asked");
            self.registry.finish_retry(&proc, &next).await;
            hooks::at("retry.started");
        }
        self.registry.release(&proc).await;
    }

    /// Records the retry of a process that failed because of its sandbox, and the question about it. None: there is none.
    async fn begin_retry(self: &Arc<Self>, proc: &Arc<Proc>) -> Option<Arc<Proc>> {
        let spec = proc.retry_spec()?;
        let denials = proc.refused_before_failure(&proc.published_state())?;
        let key = proc.spec.session_key.as_deref();
        // The session may have other settings by now.
        if self.judge.approval_mode(key, &self.registry.config) != ApprovalMode::OnFailure {
            return None;
        }
        let action = Action { retry_of: Some(proc.spec.id), ..spec.action.clone() };
        let grant = self.use_grant(key, &covers(&action)).await;
        let ask = (grant.is_none() && !spec.is_allowed).then(|| self.retry_question(proc, spec, action, &denials));
        loop {
            if proc.is_policy_ended() {
                return None;
            }
            match self.registry.record_retry(proc, grant, ask.clone()).await {
                Ok(next) => {
                    hooks::at("retry.recorded");
                    if let Some(id) = next.spec.pending.as_ref().and_then(|pending| pending.approval) {
                        self.publish_question(id).await;
                    }
                    return Some(next);
                }
                Err(SpawnError::Ask(AskError::TooMany { limit })) => {
                    tracing::warn!(id = %proc.spec.id, limit, "no retry: too many questions of its session wait");
                    return None;
                }
                Err(SpawnError::Sandbox(error)) => {
                    tracing::warn!(id = %proc.spec.id, ?error, "no retry: its profile cannot be used");
                    return None;
                }
                // A disk that is full now may have room later.
                Err(_) => {
                    tracing::warn!(id = %proc.spec.id, "failed to record a retry; trying again");
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    fn retry_question(
        self: &Arc<Self>,
        proc: &Proc,
        spec: &RetrySpec,
        action: Action,
        denials: &Denials,
    ) -> Arc<dyn Ask> {
        let key = proc.spec.session_key.clone();
        let question = Question {
            kind: ApprovalKind::Retry,
            why: reasons(denials),
            offers: offers(&action, key.as_deref(), None),
            action,
            session_key: key,
            task_id: proc.spec.task_id.clone(),
            requested_by: spec.requested_by.clone(),
            timeout_ms: spec.timeout_ms,
            request_id: None,
            script: None,
        };
        Arc::new(Asked { approvals: self.clone(), question })
    }

    /// Withdraws the questions about the retries of these processes, which are to be forgotten.
    pub async fn withdraw_retries(self: &Arc<Self>, procs: &[Arc<Proc>], by: &Caller) {
        let failed: Vec<_> = procs.iter().filter(|proc| proc.retry_spec().is_some()).collect();
        let ended = failed.iter().filter(|proc| proc.published_state().has_ended());
        ended.for_each(|proc| proc.end_policy());
        let is_of_one = |approval: &Approval| {
            approval.retry.is_some() && failed.iter().any(|proc| approval.process == Some(proc.spec.id))
        };
        if !failed.is_empty() {
            self.withdraw(by, "the process that failed was forgotten", is_of_one).await;
        }
    }
}

/// Returns the question about a confined call, if it fails. `is_allowed`: rules allow it the widest profile. None: it asks nothing.
pub fn retry_spec(
    call: &ExecParams,
    request: &SpawnRequest,
    config: &Config,
    is_allowed: bool,
    requested_by: Caller,
) -> Option<RetrySpec> {
    let from = request.spec.sandbox.as_ref()?.profile.clone();
    let timeout_ms = call.approval_timeout_ms.unwrap_or(config.policy.approval_timeout_ms);
    let profile = Some(ProfileChange { from, to: config.policy.max.clone() });
    let action = Action { env_names: set_names(call), profile, ..action(call, &request.spec) };
    (timeout_ms > 0 || is_allowed).then_some(RetrySpec { action, requested_by, timeout_ms, is_allowed })
}

/// Describes a retry, as the process that failed shows it.
fn retry(next: &Proc) -> ProcessRetry {
    ProcessRetry { process: next.spec.id, approval: next.spec.policy.as_ref().and_then(|policy| policy.approval) }
}

/// The refused calls as reasons that a person reads.
fn reasons(denials: &Denials) -> Vec<Why> {
    let why = |text| Why { label: "denials".into(), text };
    let listed = denials.list.iter().take(MAX_LISTED).map(|call| {
        let target =
            call.path.as_ref().or(call.address.as_ref()).map(|target| format!(" {target}")).unwrap_or_default();
        let error = io::Error::from_raw_os_error(call.errno);
        let count = if call.count > 1 { format!(", {} times", call.count) } else { String::new() };
        why(format!("the sandbox refused {}{target}{count}: {error}", call.op))
    });
    let mut all: Vec<Why> = listed.collect();
    let left = denials.list.len().saturating_sub(MAX_LISTED);
    if all.is_empty() {
        all.push(why(format!("the sandbox refused {} calls", denials.count)));
    } else if left > 0 {
        all.push(why(format!("and {left} more")));
    }
    all
}
