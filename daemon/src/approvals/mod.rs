//! Approvals: questions that wait for a person, and grants, which a person gave. Each is one small file. A change is on disk
//! before it has an effect.
//!
//! An approval changes once, from pending. Who changes it holds `changing`, and the launch of the process that waits for it:
//! so a decision, a deadline, a kill and the end of a session come one after the other, and the first wins.

mod always;
mod caller;
mod exec;
mod file;
mod grants;
mod kill;
mod paths;
mod publish;
mod question;
mod recover;
mod retry;
mod settle;
mod tool;

pub use caller::caller;
pub use exec::{ExecError, NeedsApproval};
pub use grants::RevokeError;
pub use paths::{PathQuestion, PathRefused};
pub use question::Question;
pub use retry::retry_spec;
pub use settle::{DecideError, Decided};
pub use tool::{ToolQuestion, ToolRefused};

use crate::policy::Judge;
use crate::proc::Proc;
use crate::registry::Registry;
use file::{StoredApproval, StoredGrant};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use toold_proto::ProcId;
use toold_proto::approval::{AllowedBy, Approval, ApprovalId, ApprovalState, ApprovalsListParams, GrantId};

/// Number of approvals in a list, if the call has no limit.
const DEFAULT_LIMIT: u64 = 200;
/// Number of decided approvals, and of grants that are over, that are kept. A count, and no age: a clock that jumps forgets none.
const MAX_KEPT: usize = 1000;
/// Time that a kill waits until the approvals of what it ended are withdrawn.
const DECIDED_TIMEOUT: Duration = Duration::from_secs(1);

/// All approvals and grants.
pub struct Approvals {
    pub registry: Arc<Registry>,
    judge: Arc<Judge>,
    dir: PathBuf,
    grants_dir: PathBuf,
    table: Mutex<Table>,
    /// Held while an approval or a grant changes, also while the disk is written.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Table {
    approvals: HashMap<ApprovalId, Arc<Entry>>,
    /// Questions that are recorded, and whose process is being recorded.
    recording: HashMap<ApprovalId, StoredApproval>,
    grants: HashMap<GrantId, StoredGrant>,
}

/// One approval.
struct Entry {
    stored: watch::Sender<Arc<StoredApproval>>,
}

impl Entry {
    fn new(stored: StoredApproval) -> Arc<Entry> {
        Arc::new(Entry { stored: watch::Sender::new(Arc::new(stored)) })
    }

    fn get(&self) -> Arc<StoredApproval> {
        self.stored.borrow().clone()
    }

    fn set(&self, stored: StoredApproval) {
        self.stored.send_replace(Arc::new(stored));
    }
}

impl StoredApproval {
    fn is_pending(&self) -> bool {
        self.approval.state == ApprovalState::Pending
    }

    /// Returns the process that waits for the answer.
    fn waiter(&self) -> Option<ProcId> {
        self.approval.retry.or(self.approval.process)
    }
}

impl Approvals {
    /// Locks the table for look-ups and inserts only, never across an await.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn entry(&self, id: ApprovalId) -> Option<Arc<Entry>> {
        self.table().approvals.get(&id).cloned()
    }

    /// Returns the entries in the order of the questions.
    fn entries(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.table().approvals.values().cloned().collect();
        all.sort_by_key(|entry| {
            let stored = entry.get();
            (stored.at_ms, stored.approval.id)
        });
        all
    }

    /// Returns one approval.
    pub fn get(&self, id: ApprovalId) -> Option<Approval> {
        self.entry(id).map(|entry| entry.get().approval.clone())
    }

    /// Returns the permission under which a process was started. None: it needed none.
    pub fn allowed_by(&self, proc: &Proc) -> Option<AllowedBy> {
        let policy = proc.spec.policy.as_ref()?;
        let (approval, grant) =
            (policy.approval.and_then(|id| self.get(id)), policy.grant.and_then(|id| self.grant(id)));
        let rules = policy.rules.clone();
        let is_any = approval.is_some() || grant.is_some() || !rules.is_empty();
        is_any.then_some(AllowedBy { approval, grant, rules })
    }

    /// Returns the selected approvals, oldest first, and their number without the limit.
    pub fn list(&self, call: &ApprovalsListParams) -> (Vec<Approval>, u64) {
        let fits = |wanted: &Option<String>, given: &Option<String>| wanted.is_none() || wanted == given;
        let all = self.entries().into_iter().map(|entry| entry.get()).filter(|stored| {
            let approval = &stored.approval;
            call.state.includes(approval.state)
                && fits(&call.session_key, &approval.session_key)
                && fits(&call.task_id, &approval.task_id)
        });
        let mut all: Vec<Approval> = all.map(|stored| stored.approval.clone()).collect();
        let total = all.len() as u64;
        all.truncate(usize::try_from(call.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX));
        (all, total)
    }

    /// Returns the approvals that these processes wait for.
    pub fn asked_by(&self, procs: &[Arc<Proc>]) -> Vec<ApprovalId> {
        let asking = procs.iter().filter(|proc| proc.published_state().asking);
        asking.filter_map(|proc| proc.spec.policy.as_ref()?.approval).collect()
    }

    /// Waits until these approvals are decided, but not for long: a disk that hangs delays no answer to a kill.
    pub async fn wait_decided(&self, ids: &[ApprovalId]) {
        for id in ids {
            let _ = tokio::time::timeout(DECIDED_TIMEOUT, self.decision(*id)).await;
        }
    }

    /// Waits until an approval is decided, and returns it. None: there is none of this id.
    pub async fn decision(&self, id: ApprovalId) -> Option<Approval> {
        let entry = self.entry(id)?;
        let mut changes = entry.stored.subscribe();
        let decided = changes.wait_for(|stored| !stored.is_pending()).await.ok()?;
        Some(decided.approval.clone())
    }

    /// Forgets the oldest decided approvals and ended grants, beyond `MAX_KEPT` of each. The caller holds `changing`.
    async fn retain(&self) {
        let decided = self.entries().into_iter().map(|entry| entry.get());
        let decided: Vec<_> = decided.filter(|s| !s.is_pending() && s.published.last.is_some()).collect();
        let mut paths = Vec::new();
        for stored in &decided[..decided.len().saturating_sub(MAX_KEPT)] {
            let id = stored.approval.id;
            self.table().approvals.remove(&id);
            paths.push(self.dir.join(id.to_string()));
        }
        paths.extend(self.retain_grants());
        if !paths.is_empty() {
            let removed = crate::disk::blocking(move || paths.iter().try_for_each(std::fs::remove_file)).await;
            if let Err(e) = removed.flatten() {
                tracing::warn!(%e, "failed to remove old approvals");
            }
        }
    }
}
