//! The sets that are kept after their commit: for a revert, and for a repeated request.

use super::identity::Kind;
use super::journal::{ChangeJournal, ChangeState, Form, Head};
use super::{ChangeError, Changes, Request};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The longest sleep of the expiry: the clock of retention may be set.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// The kept sets in memory.
#[derive(Debug, Default)]
pub struct Index {
    sets: Mutex<BTreeMap<String, Entry>>,
    changed: Notify,
}

#[derive(Debug)]
struct Entry {
    at_ms: u64,
    request: Option<Request>,
    is_reverted: bool,
}

/// A set whose old bytes are kept.
#[derive(Debug)]
pub struct KeptChange {
    pub files: Vec<KeptFile>,
    pub note: String,
}

/// A file of a kept set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    pub path: PathBuf,
    pub before_sha256: Option<String>,
    pub after_sha256: Option<String>,
}

impl Index {
    fn sets(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, head: &Head, state: ChangeState) {
        let is_reverted = state == ChangeState::Reverted;
        let entry = Entry { at_ms: head.at_ms, request: head.request.clone(), is_reverted };
        self.sets().insert(head.id.clone(), entry);
        self.changed.notify_one();
    }
}

impl Changes {
    /// Returns the set that a request made.
    pub fn find_request(&self, request_id: &str) -> Option<(String, u64)> {
        let sets = self.kept.sets();
        sets.iter().find_map(|(id, entry)| {
            let request = entry.request.as_ref().filter(|request| request.id == request_id)?;
            Some((id.clone(), request.digest))
        })
    }

    /// Returns the owner's text about a kept set.
    pub fn note(&self, id: &str) -> Result<String, ChangeError> {
        Ok(self.journal(id)?.steps.note)
    }

    /// Describes a kept set.
    pub fn kept(&self, id: &str) -> Result<KeptChange, ChangeError> {
        let journal = self.journal(id)?;
        let is_dir = |step: &&super::journal::Step| {
            step.form == Form::Place && step.new.as_ref().is_some_and(|new| new.kind == Kind::Dir)
        };
        let files = journal.steps.steps.iter().filter(|step| !is_dir(step)).map(|step| KeptFile {
            path: journal.steps.roots[step.root].path.join(&step.path),
            before_sha256: step.old.as_ref().and_then(|old| old.sha256.clone()),
            after_sha256: step.new.as_ref().and_then(|new| new.sha256.clone()),
        });
        Ok(KeptChange { files: files.collect(), note: journal.steps.note.clone() })
    }

    pub(super) fn journal(&self, id: &str) -> Result<ChangeJournal, ChangeError> {
        let is_kept = self.kept.sets().get(id).map(|entry| entry.is_reverted);
        match is_kept {
            None => return Err(ChangeError::NotFound(id.into())),
            Some(true) => return Err(ChangeError::Reverted(id.into())),
            Some(false) => {}
        }
        ChangeJournal::read(&self.dir.join(id)).map_err(ChangeError::Journal)
    }

    /// Notes that the owner has published the event of a set. One that undid another is not needed any more.
    pub fn mark_published(&self, id: &str) -> io::Result<()> {
        let dir = self.dir.join(id);
        let (_, head) = ChangeJournal::read_head(&dir)?;
        if head.reverts.is_some() {
            self.forget(id);
            return Ok(());
        }
        ChangeJournal::set_state(&dir, ChangeState::Published, false)
    }

    /// Notes that a set was undone. Its old bytes are not needed any more; its request stays known.
    pub(super) fn mark_reverted(&self, id: &str) {
        let dir = self.dir.join(id);
        let marked = ChangeJournal::set_state(&dir, ChangeState::Reverted, true);
        let _ = std::fs::remove_file(dir.join(super::journal::BEFORE_FILE));
        match marked {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => tracing::error!(id, %e, "failed to note that a change was reverted"),
        }
        if let Some(entry) = self.kept.sets().get_mut(id) {
            entry.is_reverted = true;
        }
    }

    /// Returns true for a set that was committed and is kept.
    pub fn is_committed(&self, id: &str) -> bool {
        self.kept.sets().contains_key(id)
    }

    /// Removes a set that its owner does not need any more.
    pub fn forget(&self, id: &str) {
        self.kept.sets().remove(id);
        if let Err(e) = ChangeJournal::remove(&self.dir.join(id)) {
            tracing::warn!(id, %e, "failed to remove the journal of a change");
        }
    }

    /// Forgets the sets that are older than `patch.keep_ms`. Returns the time until the next one is.
    pub(super) fn expire(&self, now_ms: u64) -> Option<Duration> {
        let mut old = Vec::new();
        let mut next = None;
        for (id, entry) in self.kept.sets().iter() {
            let due = entry.at_ms.saturating_add(self.keep_ms);
            match due.checked_sub(now_ms).filter(|left| *left > 0) {
                None => old.push(id.clone()),
                Some(left) => next = Some(next.map_or(left, |next: u64| next.min(left))),
            }
        }
        old.iter().for_each(|id| self.forget(id));
        next.map(Duration::from_millis)
    }

    /// Forgets old sets when their time has come. Waits without a timer while there are none.
    pub async fn run_expiry(self: Arc<Self>) {
        loop {
            let changes = self.clone();
            let next = crate::disk::blocking(move || changes.expire(crate::clock::retention_ms())).await.ok().flatten();
            match next {
                None => self.kept.changed.notified().await,
                Some(next) => {
                    let _ = tokio::time::timeout(next.min(MAX_SLEEP), std::future::pending::<()>()).await;
                }
            }
        }
    }
}
