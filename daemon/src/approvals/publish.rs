//! Publishes the events of approvals and grants, each exactly once. The file has the number of each event; one that is due and
//! has none is looked for in the journal after a crash.

use super::file::{self, Published, StoredApproval, StoredGrant};
use super::{Approvals, Entry};
use crate::disk::{self, on_disk};
use crate::events::{Filter, NewEvent, ReadLimit};
use crate::proc::event_sink::{self, RETRY_DELAY};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use toold_proto::approval::{Action, DecidedBy, GrantId};
use toold_proto::event::{ApprovalDecided, ApprovalRequested, EventFields, GrantAdded, GrantRevoked};
use toold_proto::{EventType, ProcId};
use toold_shim::hooks;

/// Maximum number of characters of an action in an event.
const MAX_COMMAND_CHARS: usize = 2000;
/// Bounds of one read of the journal.
const SEARCH_LIMIT: ReadLimit = ReadLimit { events: 256, bytes: 1 << 20, scan: 1 << 20 };

/// Returns one line for an action, cut to `MAX_COMMAND_CHARS`.
fn summary(action: &Action) -> String {
    let files = || action.files.iter().map(|file| format!("{} {}", file.op, file.path)).collect::<Vec<_>>().join(", ");
    let tool = action.tool.as_ref().map(|tool| format!("{tool} {}", action.args.as_deref().unwrap_or_default()));
    let other = || if action.argv.is_empty() { files() } else { action.argv.join(" ") };
    let text = action.command.clone().or(tool).unwrap_or_else(other);
    text.chars().take(MAX_COMMAND_CHARS).collect()
}

fn requested(stored: &StoredApproval) -> ApprovalRequested {
    let approval = &stored.approval;
    ApprovalRequested {
        approval: approval.id,
        kind: approval.kind,
        command: summary(&approval.action),
        cwd: approval.action.cwd.clone(),
        why: approval.why.clone(),
        digest: approval.digest.clone(),
        expires_at: approval.expires_at.clone(),
        requested_by: approval.requested_by.clone(),
    }
}

fn decided(stored: &StoredApproval, decided_by: DecidedBy) -> ApprovalDecided {
    let approval = &stored.approval;
    ApprovalDecided {
        approval: approval.id,
        state: approval.state,
        scope: approval.scope,
        decided_by,
        message: approval.message.clone(),
        command: summary(&approval.action),
        digest: approval.digest.clone(),
    }
}

fn added(stored: &StoredGrant) -> GrantAdded {
    let grant = &stored.grant;
    GrantAdded {
        grant: grant.id,
        approval: grant.approval,
        scope: grant.scope,
        owner: grant.owner.clone(),
        covers: grant.covers.clone(),
        expires_at: grant.expires_at.clone(),
    }
}

/// The keys of an event.
struct Keys<'a> {
    id: Option<ProcId>,
    session_key: Option<&'a str>,
    task_id: Option<&'a str>,
}

impl Approvals {
    fn publish(&self, event: &dyn EventFields, keys: Keys<'_>) -> io::Result<u64> {
        let Keys { id, session_key, task_id } = keys;
        // It has no checkpoint of the process.
        let event = NewEvent { fields: event, id, session_key, task_id, state: &[], cancelled: false };
        let seq = self.registry.sink.journal.publish(&event, event_sink::now(), |_| {})?;
        hooks::at("approval.published");
        Ok(seq)
    }

    /// Publishes the events of an approval that are due. Retries later if the disk refuses. The caller holds `changing`.
    pub(super) async fn publish_due(self: &Arc<Self>, entry: &Arc<Entry>) {
        if let Err(e) = on_disk(self.try_publish(entry)).await {
            tracing::error!(id = %entry.get().approval.id, %e, "failed to store an event; trying again");
            let (approvals, entry) = (self.clone(), entry.clone());
            tokio::spawn(on_disk(async move {
                loop {
                    tokio::time::sleep(RETRY_DELAY).await;
                    let _changing = approvals.changing.lock().await;
                    if approvals.try_publish(&entry).await.is_ok() {
                        break;
                    }
                }
            }));
        }
    }

    async fn try_publish(&self, entry: &Entry) -> io::Result<()> {
        let mut stored = (*entry.get()).clone();
        let before = stored.published;
        let approval = stored.approval.clone();
        let keys = || Keys {
            id: approval.process.or(approval.script),
            session_key: approval.session_key.as_deref(),
            task_id: approval.task_id.as_deref(),
        };
        let mut result = Ok(());
        if stored.published.first.is_none() {
            result = self.publish(&requested(&stored), keys()).map(|seq| stored.published.first = Some(seq));
        }
        if let (Ok(()), None, Some(by)) = (&result, stored.published.last, approval.decided_by.clone()) {
            result = self.publish(&decided(&stored, by), keys()).map(|seq| stored.published.last = Some(seq));
        }
        if stored.published != before {
            entry.set(stored.clone());
            self.note(&self.dir, approval.id.to_string(), stored).await;
        }
        result
    }

    /// Publishes the events of a grant that are due. The caller holds `changing`.
    pub(super) async fn publish_grant(self: &Arc<Self>, id: GrantId) {
        if let Err(e) = on_disk(self.try_publish_grant(id)).await {
            tracing::error!(%id, %e, "failed to store an event; trying again");
            let approvals = self.clone();
            tokio::spawn(on_disk(async move {
                loop {
                    tokio::time::sleep(RETRY_DELAY).await;
                    let _changing = approvals.changing.lock().await;
                    if approvals.try_publish_grant(id).await.is_ok() {
                        break;
                    }
                }
            }));
        }
    }

    async fn try_publish_grant(&self, id: GrantId) -> io::Result<()> {
        let Some(mut stored) = self.table().grants.get(&id).cloned() else { return Ok(()) };
        let before = stored.published;
        let grant = stored.grant.clone();
        let keys = || Keys { id: None, session_key: grant.session_key.as_deref(), task_id: None };
        let mut result = Ok(());
        if stored.published.first.is_none() {
            result = self.publish(&added(&stored), keys()).map(|seq| stored.published.first = Some(seq));
        }
        if let (Ok(()), None, Some(revoked_by)) = (&result, stored.published.last, grant.revoked_by.clone()) {
            let revoked = GrantRevoked { grant: id, uses: grant.uses, revoked_by, reason: grant.revoke_reason.clone() };
            result = self.publish(&revoked, keys()).map(|seq| stored.published.last = Some(seq));
        }
        if stored.published != before {
            self.table().grants.insert(id, stored.clone());
            self.note(&self.grants_dir, id.to_string(), stored).await;
        }
        result
    }

    /// Notes the numbers of events in a file. Without the note the next daemon looks for them in the journal.
    async fn note(&self, dir: &Path, name: String, stored: impl serde::Serialize + Send + 'static) {
        let dir = dir.to_path_buf();
        if let Err(e) = disk::blocking(move || file::write(&dir, &name, &stored)).await.flatten() {
            tracing::warn!(%e, "failed to note the number of an event");
        }
    }

    /// Finds the events that are in the journal and have no number in the file. `has_ended`: the second one is due.
    pub(super) fn find_published(
        &self,
        published: &mut Published,
        kinds: [EventType; 2],
        id: &str,
        has_ended: bool,
    ) -> io::Result<()> {
        if published.first.is_none() {
            published.first = self.find_event(published.after, kinds[0], id)?;
        }
        if has_ended && published.last.is_none() {
            published.last = self.find_event(published.after, kinds[1], id)?;
        }
        Ok(())
    }

    fn find_event(&self, mut after: u64, kind: EventType, id: &str) -> io::Result<Option<u64>> {
        let journal = &self.registry.sink.journal;
        let filter = Filter { types: Some(BTreeSet::from([kind])), ..Filter::default() };
        let key = if matches!(kind, EventType::GrantAdded | EventType::GrantRevoked) { "grant" } else { "approval" };
        let has_id = |json: &str| {
            let event: Result<serde_json::Value, _> = serde_json::from_str(json);
            event.is_ok_and(|event| event[key] == id)
        };
        loop {
            let batch = journal.read(after, &filter, SEARCH_LIMIT)?;
            if let Some(event) = batch.events.iter().find(|event| has_id(event.json.get())) {
                return Ok(Some(event.seq));
            }
            if batch.scanned <= after {
                return Ok(None);
            }
            after = batch.scanned;
        }
    }
}
