//! Opens the approvals and grants that earlier daemons left, and does what they did not come to.

use super::file::{self, Found, StoredApproval, StoredGrant};
use super::{Approvals, Entry, Table};
use crate::disk::{self, on_disk};
use crate::policy::Judge;
use crate::registry::{FindError, Registry, SetAside};
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use toold_proto::EventType;
use toold_proto::approval::{ApprovalId, GrantId};

const APPROVAL_EVENTS: [EventType; 2] = [EventType::ApprovalRequested, EventType::ApprovalDecided];
const GRANT_EVENTS: [EventType; 2] = [EventType::GrantAdded, EventType::GrantRevoked];

impl Approvals {
    /// Reads the approvals and grants in the state directory. The processes are there already, and no request is served yet.
    /// `last_found` is the number of the last event that the journal has on disk.
    pub async fn open(
        registry: Arc<Registry>,
        judge: Arc<Judge>,
        state_dir: &Path,
        last_found: u64,
    ) -> io::Result<Arc<Approvals>> {
        let (dir, grants_dir) = (state_dir.join("approvals"), state_dir.join("grants"));
        let (read_dir, read_grants) = (dir.clone(), grants_dir.clone());
        let read = disk::blocking(move || -> io::Result<(Found<StoredApproval>, Found<StoredGrant>)> {
            let is_approval = |name: &str| name.parse::<ApprovalId>().is_ok();
            let is_grant = |name: &str| name.parse::<GrantId>().is_ok();
            Ok((file::read_all(&read_dir, is_approval)?, file::read_all(&read_grants, is_grant)?))
        });
        let (approvals, grants) = read.await??;
        approvals.damage.into_iter().chain(grants.damage).for_each(|damage| registry.report_damage(damage));
        let table = Mutex::new(Table::default());
        let changing = tokio::sync::Mutex::new(());
        let opened = Arc::new(Approvals { registry, judge, dir, grants_dir, table, changing });
        on_disk(opened.load(approvals.all, grants.all, last_found)).await?;
        Ok(opened)
    }

    async fn load(
        self: &Arc<Self>,
        approvals: Vec<StoredApproval>,
        grants: Vec<StoredGrant>,
        last_found: u64,
    ) -> io::Result<()> {
        let numbers = approvals.iter().map(|stored| stored.published.highest());
        let highest = numbers.chain(grants.iter().map(|stored| stored.published.highest())).max().unwrap_or(0);
        let missing = self.registry.sink.journal.advance_past(highest);
        missing.into_iter().for_each(|damage| self.registry.report_damage(damage));
        for mut stored in grants {
            stored.published = stored.published.without_lost(last_found);
            let (id, is_revoked) = (stored.grant.id.to_string(), stored.grant.revoked_at.is_some());
            self.find_published(&mut stored.published, GRANT_EVENTS, &id, is_revoked)?;
            self.table().grants.insert(stored.grant.id, stored);
        }
        for mut stored in approvals {
            let id = stored.approval.id;
            stored.published = stored.published.without_lost(last_found);
            let has_ended = !stored.is_pending();
            self.find_published(&mut stored.published, APPROVAL_EVENTS, &id.to_string(), has_ended)?;
            if stored.is_pending() && stored.published.first.is_none() && self.has_no_asker(&stored) {
                // Its process was not recorded, and no call was answered.
                std::fs::remove_file(self.dir.join(id.to_string()))?;
                continue;
            }
            self.table().approvals.insert(id, Entry::new(stored));
        }
        self.end_without_approval().await;
        for entry in self.entries() {
            self.resume(entry).await;
        }
        self.resume_retries();
        let grants: Vec<GrantId> = self.table().grants.keys().copied().collect();
        let _changing = self.changing.lock().await;
        for id in grants {
            self.publish_grant(id).await;
        }
        self.retain().await;
        Ok(())
    }

    /// Returns true if nothing waits for this question: its process is not there, and its call is gone with its daemon.
    fn has_no_asker(&self, stored: &StoredApproval) -> bool {
        let Some(id) = stored.waiter() else { return stored.request_id.is_none() };
        match self.registry.find(&id.to_string()) {
            Ok(_) | Err(FindError::SetAside { aside: SetAside::Unread(_), .. }) => false,
            Err(_) => true,
        }
    }

    async fn resume(self: &Arc<Self>, entry: Arc<Entry>) {
        if !entry.get().is_pending() {
            self.finish_decided(&entry).await;
            return;
        }
        {
            let _changing = self.changing.lock().await;
            self.publish_due(&entry).await;
        }
        self.follow_in_background(entry);
    }

    /// Ends processes that wait for an approval which is not there any more: its file was damaged. None of them starts unasked.
    async fn end_without_approval(&self) {
        let known: HashSet<ApprovalId> = self.table().approvals.keys().copied().collect();
        for proc in self.registry.newest_first().into_iter().filter(|proc| proc.published_state().asking) {
            let approval = proc.spec.pending.as_ref().and_then(|pending| pending.approval);
            if approval.is_some_and(|id| known.contains(&id)) {
                continue;
            }
            if let Some(launch) = proc.claim_pending() {
                self.registry.end_unapproved(&proc, launch).await;
            }
        }
    }
}
