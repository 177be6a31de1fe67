//! Ends an approval, once: by a decision, by its deadline, or because it was withdrawn.

use super::caller::{self, caller};
use super::file::{self, Published, StoredApproval};
use super::{Approvals, Entry};
use crate::clock::wall_ms;
use crate::disk::{self, on_disk};
use crate::proc::Proc;
use crate::proc::event_sink::RETRY_DELAY;
use crate::proc::pending::PendingLaunch;
use crate::proc::state::{Phase, State};
use crate::registry::{FindError, SetAside};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::ProcId;
use toold_proto::approval::{
    Approval, ApprovalId, ApprovalState, Caller, Covers, Deadline, DecidedBy, Decision, Grant, GrantId, GrantTerms,
    Scope,
};
use toold_proto::time::rfc3339;
use toold_shim::hooks;

/// A decision of a person.
#[derive(Debug, Clone)]
pub struct Decided {
    pub decision: Decision,
    pub scope: Scope,
    /// The digest that the person saw.
    pub digest: String,
    pub terms: GrantTerms,
    pub message: Option<String>,
    pub by: Caller,
}

/// The end of an approval.
#[derive(Debug, Clone)]
pub(super) enum Ending {
    Decided(Decided),
    Timeout,
    Withdrawn { by: Caller, message: Option<String> },
}

/// The reason why a decision was not made.
#[derive(Debug)]
pub enum DecideError {
    NotFound(ApprovalId),
    /// The action is another one than the person saw.
    Stale(Box<Approval>),
    AlreadyDecided(Box<Approval>),
    /// The approval does not offer this scope.
    NotOffered(Scope),
    /// The terms of the grant do not fit the offer.
    Terms(&'static str),
    /// The record of the process that waits cannot be read now.
    Unread(String),
    Store {
        path: PathBuf,
        source: io::Error,
    },
    Random(getrandom::Error),
}

/// The process that waits for an approval.
enum Waiter {
    None,
    /// The owner of the launch starts the process, or ends it.
    Claimed(Arc<Proc>, Box<PendingLaunch>),
    /// It was killed, by this caller.
    Ended(Caller),
}

impl Approvals {
    /// Decides an approval. With `abort`, also withdraws every other one of the task. Returns the approval, and the ids of those.
    pub async fn decide(
        self: &Arc<Self>,
        id: ApprovalId,
        decided: Decided,
    ) -> Result<(Approval, Vec<ApprovalId>, Option<Grant>), DecideError> {
        let entry = self.entry(id).ok_or(DecideError::NotFound(id))?;
        let (decision, by) = (decided.decision, decided.by.clone());
        let stored = self.settle(&entry, Ending::Decided(decided)).await?;
        let mut withdrawn = Vec::new();
        if decision == Decision::Abort && stored.approval.task_id.is_some() {
            withdrawn = self
                .withdraw(&by, &format!("{id} was aborted"), |other| other.task_id == stored.approval.task_id)
                .await;
        }
        let grant = stored.approval.grant.and_then(|id| self.grant(id));
        Ok((stored.approval.clone(), withdrawn, grant))
    }

    /// Withdraws every pending approval that fits. Returns their ids.
    pub(super) async fn withdraw(
        self: &Arc<Self>,
        by: &Caller,
        why: &str,
        fits: impl Fn(&Approval) -> bool,
    ) -> Vec<ApprovalId> {
        let mut withdrawn = Vec::new();
        for entry in self.entries() {
            let stored = entry.get();
            if !stored.is_pending() || !fits(&stored.approval) {
                continue;
            }
            let ending = Ending::Withdrawn { by: by.clone(), message: Some(why.into()) };
            match self.settle(&entry, ending).await {
                Ok(stored) => withdrawn.push(stored.approval.id),
                // Another decision came first.
                Err(DecideError::AlreadyDecided(_)) => {}
                Err(e) => tracing::error!(id = %stored.approval.id, ?e, "failed to withdraw an approval"),
            }
        }
        withdrawn
    }

    /// Withdraws the approvals of a session and ends its grants.
    pub async fn end_session(self: &Arc<Self>, session_key: &str, by: &Caller) {
        let of_session = |approval: &Approval| approval.session_key.as_deref() == Some(session_key);
        self.withdraw(by, "the session ended", of_session).await;
        self.revoke_session(session_key, by).await;
    }

    /// Withdraws the questions of the calls of a script that has ended, and ends its grants.
    pub async fn end_script(self: &Arc<Self>, script: ProcId) {
        let (by, reason) = (caller::daemon(), "the script ended");
        self.withdraw(&by, reason, |approval| approval.script == Some(script)).await;
        self.revoke_script(script, &by, reason).await;
    }

    /// Withdraws the question of a call that waits for no answer any more.
    pub async fn withdraw_call(self: &Arc<Self>, request_id: &str) {
        let is_of_call = |entry: &Arc<Entry>| {
            let stored = entry.get();
            stored.is_pending() && stored.request_id.as_deref() == Some(request_id)
        };
        let waiting: Vec<ApprovalId> =
            self.entries().iter().filter(|entry| is_of_call(entry)).map(|entry| entry.get().approval.id).collect();
        if !waiting.is_empty() {
            self.withdraw(&caller::daemon(), "its call was ended", |approval| waiting.contains(&approval.id)).await;
        }
    }

    /// Follows a pending approval to its deadline, or to the end of its process.
    pub(super) fn follow_in_background(self: &Arc<Self>, entry: Arc<Entry>) {
        let approvals = self.clone();
        tokio::spawn(async move { approvals.follow(&entry).await });
    }

    async fn follow(self: &Arc<Self>, entry: &Arc<Entry>) {
        let (mut changes, stored) = (entry.stored.subscribe(), entry.get());
        let proc = stored.waiter().and_then(|id| self.registry.find(&id.to_string()).ok());
        let left = Duration::from_millis(stored.expires_ms.saturating_sub(wall_ms()));
        let ended = async {
            match &proc {
                Some(proc) => drop(proc.subscribe().wait_for(State::has_ended).await),
                None => std::future::pending().await,
            }
        };
        let ending = tokio::select! {
            _ = changes.wait_for(|stored| !stored.is_pending()) => return,
            // On the clock that does not jump; `decide` looks at the wall clock too.
            () = tokio::time::sleep(left) => Ending::Timeout,
            () = ended => Ending::Withdrawn { by: caller::daemon(), message: None },
        };
        while let Err(e) = self.settle(entry, ending.clone()).await {
            match e {
                DecideError::Store { source, .. } => {
                    tracing::error!(id = %stored.approval.id, e = %source, "failed to end an approval; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                DecideError::Unread(_) => tokio::time::sleep(RETRY_DELAY).await,
                DecideError::NotFound(_)
                | DecideError::Stale(_)
                | DecideError::AlreadyDecided(_)
                | DecideError::NotOffered(_)
                | DecideError::Terms(_)
                | DecideError::Random(_) => return,
            }
        }
    }

    /// Ends an approval: on disk, then in the journal, then for its process.
    async fn settle(self: &Arc<Self>, entry: &Arc<Entry>, ending: Ending) -> Result<Arc<StoredApproval>, DecideError> {
        let _changing = self.changing.lock().await;
        let stored = entry.get();
        if !stored.is_pending() {
            return Err(DecideError::AlreadyDecided(Box::new(stored.approval.clone())));
        }
        let wanted = match &ending {
            Ending::Decided(decided) => {
                check(&stored, decided)?;
                // A clock that has jumped must not let a decision come after its time.
                if wall_ms() >= stored.expires_ms { Ending::Timeout } else { ending.clone() }
            }
            Ending::Timeout | Ending::Withdrawn { .. } => ending.clone(),
        };
        let waiter = self.claim(&stored).await?;
        let wanted = match &waiter {
            Waiter::Ended(by) => Ending::Withdrawn { by: by.clone(), message: Some("its process was killed".into()) },
            Waiter::None | Waiter::Claimed(..) => wanted,
        };
        let is_as_asked = std::mem::discriminant(&wanted) == std::mem::discriminant(&ending);
        let next = match self.write(&stored, wanted).await {
            Ok(next) => next,
            Err(e) => {
                if let Waiter::Claimed(proc, launch) = waiter {
                    proc.offer_pending(*launch);
                }
                return Err(e);
            }
        };
        entry.set(next);
        hooks::at("approval.decided");
        self.make_grant(entry).await;
        self.add_rule(entry).await;
        self.publish_due(entry).await;
        self.apply(entry, waiter).await;
        self.retain().await;
        let stored = entry.get();
        if is_as_asked { Ok(stored) } else { Err(DecideError::AlreadyDecided(Box::new(stored.approval.clone()))) }
    }

    /// Takes the launch of the process that waits, so that no kill comes in between.
    async fn claim(&self, stored: &StoredApproval) -> Result<Waiter, DecideError> {
        let Some(id) = stored.waiter() else { return Ok(Waiter::None) };
        let proc = match self.registry.find(&id.to_string()) {
            Ok(proc) => proc,
            Err(FindError::SetAside { aside: SetAside::Unread(text), .. }) => return Err(DecideError::Unread(text)),
            // Its record is gone or damaged.
            Err(_) => return Ok(Waiter::Ended(caller::daemon())),
        };
        if let Some(launch) = proc.claim_pending() {
            return Ok(Waiter::Claimed(proc, launch));
        }
        // A kill has it.
        let _ = proc.subscribe().wait_for(State::has_ended).await;
        Ok(Waiter::Ended(match proc.published_state().phase {
            Phase::Exited { exit, .. } if exit.by_pid != 0 => caller(exit.by_uid, exit.by_pid),
            _ => caller::daemon(),
        }))
    }

    /// Writes the end of an approval to disk.
    async fn write(&self, stored: &StoredApproval, ending: Ending) -> Result<StoredApproval, DecideError> {
        let mut next = stored.clone();
        let approval = &mut next.approval;
        approval.decided_at = Some(rfc3339(wall_ms()));
        match ending {
            Ending::Decided(Decided { decision, scope, terms, message, by, .. }) => {
                approval.state = match decision {
                    Decision::Approve => ApprovalState::Approved,
                    Decision::Deny => ApprovalState::Denied,
                    Decision::Abort => ApprovalState::Aborted,
                };
                approval.decision = Some(decision);
                approval.message = message;
                approval.decided_by = Some(DecidedBy::Caller(by));
                if decision == Decision::Approve {
                    approval.scope = Some(scope);
                    if matches!(scope, Scope::Session | Scope::Script) {
                        approval.grant = Some(GrantId::from_bits(getrandom::u64().map_err(DecideError::Random)?));
                        next.grant_ms = terms.expires_ms;
                        next.grant_root = terms.root;
                        (next.grant_args_like, next.grant_uses) = (terms.args_like, terms.uses);
                    }
                }
            }
            Ending::Timeout => {
                approval.state = ApprovalState::Timeout;
                approval.decided_by = Some(DecidedBy::Deadline(Deadline::Timeout));
            }
            Ending::Withdrawn { by, message } => {
                approval.state = ApprovalState::Withdrawn;
                approval.message = message;
                approval.decided_by = Some(DecidedBy::Caller(by));
            }
        }
        next.published = Published { after: self.registry.sink.journal.last(), ..next.published };
        let (dir, written, name) = (self.dir.clone(), next.clone(), next.approval.id.to_string());
        let result = disk::blocking(move || file::write(&dir, &name, &written)).await.flatten();
        result.map_err(|source| DecideError::Store { path: self.dir.clone(), source })?;
        Ok(next)
    }

    /// Starts or ends the process that waited.
    async fn apply(self: &Arc<Self>, entry: &Entry, waiter: Waiter) {
        let Waiter::Claimed(proc, launch) = waiter else { return };
        if entry.get().approval.state == ApprovalState::Approved {
            on_disk(self.registry.start_approved(&proc, launch)).await;
        } else {
            self.registry.end_unapproved(&proc, launch).await;
        }
        hooks::at("approval.applied");
    }

    /// Does what an earlier daemon decided and did not come to: its grant, its events, and the start or end of its process.
    pub(super) async fn finish_decided(self: &Arc<Self>, entry: &Arc<Entry>) {
        let _changing = self.changing.lock().await;
        let stored = entry.get();
        if stored.published.last.is_none() {
            self.make_grant(entry).await;
            self.add_rule(entry).await;
        }
        self.publish_due(entry).await;
        let proc = stored.waiter().and_then(|id| self.registry.find(&id.to_string()).ok());
        if let Some(proc) = proc.filter(|proc| proc.published_state().asking)
            && let Some(launch) = proc.claim_pending()
        {
            self.apply(entry, Waiter::Claimed(proc, launch)).await;
        }
    }
}

/// Checks a decision against the question.
fn check(stored: &StoredApproval, decided: &Decided) -> Result<(), DecideError> {
    let approval = &stored.approval;
    if decided.digest != approval.digest {
        return Err(DecideError::Stale(Box::new(approval.clone())));
    }
    if decided.decision != Decision::Approve {
        return Ok(());
    }
    let offer = approval.offers.iter().find(|offer| offer.scope == decided.scope);
    let offer = offer.ok_or(DecideError::NotOffered(decided.scope))?;
    check_terms(decided, offer.grant.as_ref()).map_err(DecideError::Terms)
}

/// Checks the terms of a grant against its offer.
fn check_terms(decided: &Decided, offered: Option<&Covers>) -> Result<(), &'static str> {
    let GrantTerms { expires_ms, root, tool, args_like, uses } = &decided.terms;
    match decided.scope {
        Scope::Once | Scope::Always if decided.terms != GrantTerms::default() => {
            return Err("are for the scopes `session` and `script`");
        }
        Scope::Session if tool.is_some() || args_like.is_some() || uses.is_some() => {
            return Err("have tool, args_like or uses, which are for scope `script`");
        }
        Scope::Once | Scope::Always | Scope::Session | Scope::Script => {}
    }
    if *expires_ms == Some(0) {
        return Err("expires_ms must be at least 1");
    }
    if *uses == Some(0) {
        return Err("uses must be at least 1");
    }
    if tool.is_some() && tool.as_ref() != offered.and_then(|grant| grant.tool.as_ref()) {
        return Err("have a tool that is not the one that is offered");
    }
    match (root, offered.and_then(|grant| grant.root.as_deref())) {
        (Some(_), None) => Err("have a root, and none is offered"),
        (Some(root), Some(offered)) if !is_below(root, offered) => {
            Err("have a root that is not the one that is offered, nor below it")
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Returns true if a path is this directory or below it, by its text.
fn is_below(path: &str, dir: &str) -> bool {
    let path = std::path::Path::new(path);
    path.is_absolute()
        && path.starts_with(dir)
        && !path.components().any(|part| part == std::path::Component::ParentDir)
}
