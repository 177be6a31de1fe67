//! Asks: records a question before the process that waits for it, and publishes it after.

use super::file::{self, Published, StoredApproval};
use super::{Approvals, Entry, always};
use crate::call_clock::ScriptCall;
use crate::clock::wall_ms;
use crate::disk;
use crate::registry::{NamePolicy, SpawnError, Spawned};
use crate::spec::{Ask, AskError, SpawnRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::approval::{
    Action, Approval, ApprovalId, ApprovalKind, ApprovalState, Caller, Covers, Offer, Scope, Why,
};
use toold_proto::time::rfc3339;
use toold_shim::hooks;

/// The longest time that a person has: a client's number may be any.
const MAX_TIMEOUT_MS: u64 = 1000 * 3600 * 24 * 365;

/// A question that is not recorded yet.
#[derive(Debug, Clone)]
pub struct Question {
    pub kind: ApprovalKind,
    pub why: Vec<Why>,
    pub action: Action,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub requested_by: Caller,
    pub timeout_ms: u64,
    /// The scopes that a decision may choose.
    pub offers: Vec<Offer>,
    /// The `request_id` of a call that waits for the answer without a process.
    pub request_id: Option<String>,
    /// The script whose call asks.
    pub script: Option<ProcId>,
}

/// Returns the digest of an action: SHA-256 of its JSON, whose fields have one order.
pub(super) fn digest(action: &Action) -> String {
    let json = serde_json::to_vec(action).unwrap_or_default();
    Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the scopes for a command: once, in a session the same argv, directory and profile, for a call of a script its tool,
/// and a rule, if one is possible.
pub(super) fn offers(action: &Action, session_key: Option<&str>, call: Option<&ScriptCall>) -> Vec<Offer> {
    let mut offers = vec![Offer { scope: Scope::Once, grant: None }];
    if session_key.is_some() {
        offers.push(Offer { scope: Scope::Session, grant: Some(covers(action)) });
    }
    offers.extend(call.map(script_offer));
    offers.extend(always::offer(action));
    offers
}

/// Returns the offer of a tool for the rest of a script.
pub(super) fn script_offer(call: &ScriptCall) -> Offer {
    let covers = Covers { script: Some(call.script), tool: Some(call.tool.clone()), ..Covers::default() };
    Offer { scope: Scope::Script, grant: Some(covers) }
}

/// Returns the commands that a grant for this action covers.
pub(super) fn covers(action: &Action) -> Covers {
    Covers {
        argv: action.argv.clone(),
        cwd: action.cwd.clone(),
        profile: action.profile.as_ref().map(|profile| profile.to.clone()),
        ..Covers::default()
    }
}

/// A question on the way into a pending process.
pub(super) struct Asked {
    pub approvals: Arc<Approvals>,
    pub question: Question,
}

impl Ask for Asked {
    fn record(&self, process: ProcId) -> BoxFuture<'_, Result<ApprovalId, AskError>> {
        self.approvals.record(&self.question, Some(process)).boxed()
    }

    fn discard(&self, id: ApprovalId) -> BoxFuture<'_, ()> {
        self.approvals.discard(id).boxed()
    }
}

impl Approvals {
    /// Starts a process, or, with a question, records it as one that waits for the answer.
    pub async fn spawn(
        self: &Arc<Self>,
        mut request: SpawnRequest,
        policy: NamePolicy,
        question: Option<Question>,
    ) -> Result<Spawned, SpawnError> {
        let Some(question) = question else { return self.registry.spawn(request, policy).await };
        request.ask = Some(Arc::new(Asked { approvals: self.clone(), question }));
        let spawned = self.registry.spawn(request, policy).await?;
        if let (false, Some(id)) = (spawned.existing, spawned.proc.spec.pending.as_ref().and_then(|p| p.approval)) {
            hooks::at("approval.asked");
            self.publish_question(id).await;
        }
        Ok(spawned)
    }

    /// Records a question. It is durable when this returns, and becomes visible with `publish_question`.
    pub(super) async fn record(&self, question: &Question, process: Option<ProcId>) -> Result<ApprovalId, AskError> {
        let _changing = self.changing.lock().await;
        let limit = self.registry.config.policy.max_pending;
        if self.pending_of(question.session_key.as_deref()) as u64 >= limit {
            return Err(AskError::TooMany { limit });
        }
        let id = ApprovalId::from_bits(getrandom::u64().map_err(AskError::Random)?);
        let stored = self.stored(id, question, process);
        let (dir, written) = (self.dir.clone(), stored.clone());
        let written = disk::blocking(move || file::write(&dir, &id.to_string(), &written)).await.flatten();
        written.map_err(|source| AskError::Store { path: self.dir.clone(), source })?;
        self.table().recording.insert(id, stored);
        Ok(id)
    }

    fn stored(&self, id: ApprovalId, question: &Question, process: Option<ProcId>) -> StoredApproval {
        let at_ms = wall_ms();
        let expires_ms = at_ms.saturating_add(question.timeout_ms.min(MAX_TIMEOUT_MS));
        let approval = Approval {
            id,
            state: ApprovalState::Pending,
            kind: question.kind,
            process: question.action.retry_of.or(process),
            retry: process.filter(|_| question.action.retry_of.is_some()),
            script: question.script,
            session_key: question.session_key.clone(),
            task_id: question.task_id.clone(),
            requested_by: question.requested_by.clone(),
            at: rfc3339(at_ms),
            expires_at: rfc3339(expires_ms),
            why: question.why.clone(),
            digest: digest(&question.action),
            action: question.action.clone(),
            offers: question.offers.clone(),
            decided_by: None,
            decided_at: None,
            decision: None,
            scope: None,
            grant: None,
            message: None,
            rule_error: None,
        };
        let published = Published { after: self.registry.sink.journal.last(), ..Published::default() };
        let request_id = question.request_id.clone();
        StoredApproval {
            approval,
            at_ms,
            expires_ms,
            request_id,
            grant_ms: None,
            grant_root: None,
            grant_args_like: None,
            grant_uses: None,
            published,
        }
    }

    /// Returns the number of questions of a session that wait.
    fn pending_of(&self, session_key: Option<&str>) -> usize {
        let table = self.table();
        let of_session = |approval: &Approval| approval.session_key.as_deref() == session_key;
        let recording = table.recording.values().filter(|stored| of_session(&stored.approval)).count();
        let waiting = table.approvals.values().map(|entry| entry.get());
        recording + waiting.filter(|stored| stored.is_pending() && of_session(&stored.approval)).count()
    }

    /// Removes a question whose process could not be recorded.
    pub(super) async fn discard(&self, id: ApprovalId) {
        let _changing = self.changing.lock().await;
        self.table().recording.remove(&id);
        let path = self.dir.join(id.to_string());
        if let Err(e) = disk::blocking(move || std::fs::remove_file(path)).await.flatten() {
            // The next daemon finds no process for it, and removes it.
            tracing::warn!(%id, %e, "failed to remove a question");
        }
    }

    /// Makes a recorded question visible, and follows it to its end.
    pub(super) async fn publish_question(self: &Arc<Self>, id: ApprovalId) {
        let Some(stored) = self.table().recording.get(&id).cloned() else { return };
        let changing = self.changing.lock().await;
        let entry = Entry::new(stored);
        {
            let mut table = self.table();
            table.recording.remove(&id);
            table.approvals.insert(id, entry.clone());
        }
        self.publish_due(&entry).await;
        drop(changing);
        self.follow_in_background(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_the_whole_action() {
        let action = Action { argv: vec!["a".into(), "b".into()], cwd: Some("/".into()), ..Action::default() };
        // It is on disk and in the hands of clients: the same action keeps its digest.
        assert_eq!(digest(&action), "7980e3b74249528be49ff0aec9a002c71cc548da2eecbcbf8187317b43545624");
        for other in [
            Action { argv: vec!["a b".into()], ..action.clone() },
            Action { cwd: Some("/tmp".into()), ..action.clone() },
            Action { env_names: vec!["PATH".into()], ..action.clone() },
            Action { diff: Some(String::new()), ..action.clone() },
        ] {
            assert_ne!(digest(&other), digest(&action));
        }
    }
}
