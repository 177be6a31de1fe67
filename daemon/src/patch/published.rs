//! The note about a patch in its journal, and its event, which is published exactly once.
//!
//! The journal of the changes is marked after the event is published. A crash in between leaves a patch without the mark: then
//! the events since the commit show whether its event is there.

use super::Patches;
use crate::changes::RecoveredChange;
use crate::events::{Filter, NewEvent, ReadLimit};
use crate::proc::event_sink::now;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use toold_proto::EventType;
use toold_proto::event::{EventFields, PatchApplied, PatchReverted};
use toold_proto::patch::PatchResult;
use toold_shim::hooks;

/// Files that an event names.
const MAX_LISTED_FILES: usize = 64;
/// Bounds of one read of the journal.
const READ: ReadLimit = ReadLimit { events: 64, bytes: 4 << 20, scan: 4096 };

/// The owner's text in the journal of a patch. On disk: fields are only added.
#[derive(Debug, Serialize, Deserialize)]
pub struct Note {
    /// Empty if the call had none.
    pub cwd: String,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    /// The last event before the commit.
    pub after_seq: u64,
    /// The patch that this change undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<String>,
    pub result: PatchResult,
}

impl Note {
    pub fn to_text(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    pub fn parse(text: &str) -> io::Result<Note> {
        Ok(serde_json::from_str(text)?)
    }
}

/// The end of an event in the journal, by which it is recognised.
#[derive(Deserialize)]
struct Published {
    patch_id: String,
}

impl Patches {
    /// Publishes the event of a change that was just committed.
    pub(super) fn publish(&self, change_id: &str, note: &Note) {
        let patch_id = note.reverts.as_deref().or(note.result.patch_id.as_deref()).unwrap_or(change_id);
        let paths = note.result.files.iter().map(|file| file.path.clone());
        let (files, count) = (paths.take(MAX_LISTED_FILES).collect(), note.result.files.len() as u64);
        let (patch_id, cwd) = (patch_id.to_owned(), note.cwd.clone());
        let event: Box<dyn EventFields> = match note.reverts {
            Some(_) => Box::new(PatchReverted { patch_id, cwd, files, count }),
            None => {
                let added = note.result.files.iter().map(|file| file.added).sum();
                let removed = note.result.files.iter().map(|file| file.removed).sum();
                Box::new(PatchApplied { patch_id, cwd, files, count, added, removed })
            }
        };
        let new = NewEvent {
            fields: &*event,
            id: None,
            session_key: note.session_key.as_deref(),
            task_id: note.task_id.as_deref(),
            state: &[],
            cancelled: false,
        };
        if let Err(e) = self.journal.publish(&new, now(), |_| {}) {
            // It is published at the next start.
            tracing::error!(change_id, %e, "failed to store the event of a patch");
            return;
        }
        hooks::at("patch.published");
        if let Err(e) = self.changes.mark_published(change_id) {
            tracing::error!(change_id, %e, "failed to note that the event of a patch is published");
        }
    }

    /// Publishes the event of a change that an earlier daemon committed, unless it did that too.
    pub(super) fn publish_due(&self, change: &RecoveredChange) {
        let note = match Note::parse(&change.note) {
            Ok(note) => note,
            Err(e) => {
                tracing::error!(id = change.id, %e, "failed to read the note about a patch");
                return;
            }
        };
        match self.is_published(&note) {
            Ok(false) => self.publish(&change.id, &note),
            Ok(true) => {
                let _ = self.changes.mark_published(&change.id);
            }
            Err(e) => tracing::error!(id = change.id, %e, "failed to look for the event of a patch"),
        }
    }

    fn is_published(&self, note: &Note) -> io::Result<bool> {
        let (kind, id) = match &note.reverts {
            Some(id) => (EventType::PatchReverted, Some(id)),
            None => (EventType::PatchApplied, note.result.patch_id.as_ref()),
        };
        let filter = Filter { types: Some(BTreeSet::from([kind])), ..Filter::default() };
        let mut after = note.after_seq;
        loop {
            let batch = self.journal.read(after, &filter, READ)?;
            for entry in &batch.events {
                let published: Option<Published> = serde_json::from_str(entry.json.get()).ok();
                if published.is_some_and(|published| Some(&published.patch_id) == id) {
                    return Ok(true);
                }
            }
            if batch.scanned <= after {
                return Ok(false);
            }
            after = batch.scanned;
        }
    }
}
