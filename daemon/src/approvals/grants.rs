//! Grants: what a person allowed for the rest of a session, or of a script.

use super::file::{self, Published, StoredGrant};
use super::{Approvals, Entry, MAX_KEPT};
use crate::call_clock::ScriptCall;
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::Proc;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::approval::{Caller, Covers, DecidedBy, Grant, GrantId, GrantsListParams, Scope};
use toold_proto::time::rfc3339;

/// The calls that a grant remembers: more than a script has on their way at a time.
const MAX_USED_BY: usize = 256;

/// The reason why a grant was not revoked.
#[derive(Debug)]
pub enum RevokeError {
    NotFound(GrantId),
    Store { path: PathBuf, source: io::Error },
}

impl StoredGrant {
    fn is_over(&self) -> bool {
        let is_used_up = self.grant.covers.uses.is_some_and(|max| self.grant.uses >= max);
        self.grant.revoked_at.is_some() || is_used_up || self.expires_ms.is_some_and(|at| wall_ms() >= at)
    }
}

impl Approvals {
    pub(super) fn grant(&self, id: GrantId) -> Option<Grant> {
        self.table().grants.get(&id).map(|stored| stored.grant.clone())
    }

    /// Returns true if a grant is neither revoked nor over.
    pub(super) fn is_in_force(&self, id: GrantId) -> bool {
        self.table().grants.get(&id).is_some_and(|stored| !stored.is_over())
    }

    /// Returns the grants, oldest first.
    pub fn list_grants(&self, call: &GrantsListParams) -> Vec<Grant> {
        let mut all: Vec<StoredGrant> = self.table().grants.values().cloned().collect();
        all.retain(|stored| {
            (call.all || !stored.is_over())
                && (call.session_key.is_none() || call.session_key == stored.grant.session_key)
        });
        all.sort_by_key(|stored| (stored.at_ms, stored.grant.id));
        all.into_iter().map(|stored| stored.grant).collect()
    }

    /// Makes the grant that an approval decided on, unless it is there. The caller holds `changing`.
    pub(super) async fn make_grant(self: &Arc<Self>, entry: &Entry) {
        let stored = entry.get();
        let approval = &stored.approval;
        let (Some(id), Some(scope), Some(DecidedBy::Caller(owner))) =
            (approval.grant, approval.scope, &approval.decided_by)
        else {
            return;
        };
        if self.grant(id).is_some() {
            return;
        }
        let offer = approval.offers.iter().find(|offer| offer.scope == scope);
        let Some(mut covers) = offer.and_then(|offer| offer.grant.clone()) else { return };
        if let Some(root) = &stored.grant_root {
            covers.root = Some(root.clone());
        }
        (covers.args_like, covers.uses) = (stored.grant_args_like.clone(), stored.grant_uses);
        let at_ms = wall_ms();
        let expires_ms = stored.grant_ms.map(|ms| at_ms.saturating_add(ms));
        let grant = Grant {
            id,
            session_key: approval.session_key.clone(),
            scope,
            approval: approval.id,
            owner: owner.clone(),
            covers,
            at: rfc3339(at_ms),
            expires_at: expires_ms.map(rfc3339),
            uses: 0,
            last_used_at: None,
            revoked_at: None,
            revoked_by: None,
            revoke_reason: None,
        };
        let published = Published { after: self.registry.sink.journal.last(), ..Published::default() };
        let stored = StoredGrant { grant, at_ms, expires_ms, used_by: Vec::new(), published };
        match self.write_grant(&stored).await {
            Ok(()) => {
                self.table().grants.insert(id, stored);
                self.publish_grant(id).await;
            }
            // The action is approved all the same, and the next one of its kind asks again.
            Err(e) => tracing::error!(%id, %e, "failed to record a grant"),
        }
    }

    async fn write_grant(&self, stored: &StoredGrant) -> io::Result<()> {
        let (dir, stored) = (self.grants_dir.clone(), stored.clone());
        disk::blocking(move || file::write(&dir, &stored.grant.id.to_string(), &stored)).await.flatten()
    }

    /// Returns the grant that allows a command in a session, and counts its use. None: a person must be asked.
    pub async fn use_grant(self: &Arc<Self>, session_key: Option<&str>, wanted: &Covers) -> Option<GrantId> {
        self.use_session_grant(session_key, |covers| covers.root.is_none() && covers == wanted).await
    }

    /// Returns the grant of a session that fits, and counts its use.
    pub(super) async fn use_session_grant(
        self: &Arc<Self>,
        session_key: Option<&str>,
        fits: impl Fn(&Covers) -> bool,
    ) -> Option<GrantId> {
        let session_key = session_key?;
        let is_of_session = |grant: &Grant| {
            grant.scope == Scope::Session && grant.session_key.as_deref() == Some(session_key) && fits(&grant.covers)
        };
        self.use_grant_where(is_of_session, None).await
    }

    /// Returns the grant that allows a call of a script, and counts its use, once however often the call is made.
    pub(super) async fn use_script_grant(self: &Arc<Self>, call: Option<&ScriptCall>) -> Option<GrantId> {
        let call = call?;
        let is_used = |stored: &StoredGrant| {
            stored.grant.revoked_at.is_none() && stored.used_by.iter().any(|used| **used == *call.call)
        };
        let used = self.table().grants.values().find(|stored| is_used(stored)).map(|stored| stored.grant.id);
        if used.is_some() {
            return used;
        }
        let fits = |grant: &Grant| grant.scope == Scope::Script && covers_call(&grant.covers, call);
        self.use_grant_where(fits, Some(&call.call)).await
    }

    async fn use_grant_where(self: &Arc<Self>, fits: impl Fn(&Grant) -> bool, call: Option<&str>) -> Option<GrantId> {
        let find = || {
            let table = self.table();
            let fitting = table.grants.values().filter(|stored| !stored.is_over() && fits(&stored.grant));
            // The oldest: the map has no order.
            fitting.min_by_key(|stored| (stored.at_ms, stored.grant.id)).cloned()
        };
        find()?;
        let _changing = self.changing.lock().await;
        // Again under the lock: it may have been revoked meanwhile.
        let mut stored = find()?;
        stored.grant.uses += 1;
        if let Some(call) = call {
            stored.used_by.push(call.into());
            let old = stored.used_by.len().saturating_sub(MAX_USED_BY);
            stored.used_by.drain(..old);
        }
        stored.grant.last_used_at = Some(rfc3339(wall_ms()));
        let id = stored.grant.id;
        // On disk before it is shown: the next daemon counts no less.
        if let Err(e) = self.write_grant(&stored).await {
            tracing::warn!(%id, %e, "failed to count the use of a grant");
        }
        self.table().grants.insert(id, stored);
        Some(id)
    }

    /// Revokes a grant, on disk, then in the journal. Returns it, or None if it was over.
    pub async fn revoke(self: &Arc<Self>, id: GrantId, by: &Caller) -> Result<Option<Grant>, RevokeError> {
        self.revoke_because(id, by, None).await
    }

    async fn revoke_because(
        self: &Arc<Self>,
        id: GrantId,
        by: &Caller,
        reason: Option<&str>,
    ) -> Result<Option<Grant>, RevokeError> {
        let _changing = self.changing.lock().await;
        let mut stored = self.table().grants.get(&id).cloned().ok_or(RevokeError::NotFound(id))?;
        if stored.is_over() {
            return Ok(None);
        }
        stored.grant.revoked_at = Some(rfc3339(wall_ms()));
        stored.grant.revoked_by = Some(by.clone());
        stored.grant.revoke_reason = reason.map(String::from);
        stored.published.after = self.registry.sink.journal.last();
        let failed = |source| RevokeError::Store { path: self.grants_dir.clone(), source };
        self.write_grant(&stored).await.map_err(failed)?;
        let grant = stored.grant.clone();
        self.table().grants.insert(id, stored);
        self.publish_grant(id).await;
        Ok(Some(grant))
    }

    /// Revokes every grant of a session.
    pub async fn revoke_session(self: &Arc<Self>, session_key: &str, by: &Caller) -> Vec<Grant> {
        let of_session = GrantsListParams { session_key: Some(session_key.into()), all: false };
        let mut revoked = Vec::new();
        for grant in self.list_grants(&of_session) {
            match self.revoke(grant.id, by).await {
                Ok(grant) => revoked.extend(grant),
                Err(e) => tracing::error!(id = %grant.id, ?e, "failed to revoke a grant"),
            }
        }
        revoked
    }

    /// Revokes every grant for a script.
    pub(super) async fn revoke_script(self: &Arc<Self>, script: ProcId, by: &Caller, reason: &str) {
        for grant in self.list_grants(&GrantsListParams::default()) {
            if grant.covers.script != Some(script) {
                continue;
            }
            if let Err(e) = self.revoke_because(grant.id, by, Some(reason)).await {
                tracing::error!(id = %grant.id, ?e, "failed to revoke a grant");
            }
        }
    }

    /// Returns the scripts for which there are grants.
    pub fn granted_scripts(&self) -> BTreeSet<ProcId> {
        self.list_grants(&GrantsListParams::default()).iter().filter_map(|grant| grant.covers.script).collect()
    }

    /// Returns the processes that still run under these grants.
    pub fn running_under(&self, grants: &[Grant]) -> Vec<Arc<Proc>> {
        let mut procs = self.registry.newest_first();
        procs.retain(|proc| {
            let grant = proc.spec.policy.as_ref().and_then(|policy| policy.grant);
            let is_under = grant.is_some_and(|id| grants.iter().any(|grant| grant.id == id));
            is_under && !proc.published_state().is_final()
        });
        procs
    }

    /// Forgets the oldest grants that are over. Returns their files.
    pub(super) fn retain_grants(&self) -> Vec<PathBuf> {
        let mut table = self.table();
        let mut over: Vec<_> = table.grants.values().filter(|stored| stored.is_over()).collect();
        over.sort_by_key(|stored| (stored.at_ms, stored.grant.id));
        let old = over.len().saturating_sub(MAX_KEPT);
        let ids: Vec<GrantId> = over[..old].iter().map(|stored| stored.grant.id).collect();
        ids.iter().for_each(|id| drop(table.grants.remove(id)));
        ids.iter().map(|id| self.grants_dir.join(id.to_string())).collect()
    }
}

/// Returns true if a grant for a script covers this call of it.
fn covers_call(covers: &Covers, call: &ScriptCall) -> bool {
    let has = |(name, value): (&String, &serde_json::Value)| call.args.get(name) == Some(value);
    covers.script == Some(call.script)
        && covers.tool.as_ref() == Some(&call.tool)
        && covers.args_like.iter().flatten().all(has)
}
