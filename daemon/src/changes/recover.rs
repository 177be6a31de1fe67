//! Ends the sets that a crash has left: those without the mark of a commit are walked back, the others are finished.

use super::Changes;
use super::dirs::Dirs;
use super::error::LeftAlone;
use super::journal::{ChangeJournal, ChangeState};
use super::kept::Index;
use super::walk_back::walk_back;
use crate::events::{can_pass, quarantine_path};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_shim::hooks;

/// A set that recovery has ended, or whose event the owner still has to publish.
#[derive(Debug)]
pub struct RecoveredChange {
    pub id: String,
    /// The set that it undoes.
    pub reverts: Option<String>,
    pub outcome: RecoveredOutcome,
    pub note: String,
}

#[derive(Debug)]
pub enum RecoveredOutcome {
    /// All of it happened. Its event may not be published yet.
    Committed,
    /// Nothing of it is left but in these files.
    WalkedBack(Vec<LeftAlone>),
}

impl Changes {
    /// Opens the journals and ends what a crash has left. Also returns descriptions of damage.
    pub fn open(dir: PathBuf, keep_ms: u64) -> io::Result<(Arc<Changes>, Vec<RecoveredChange>, Vec<String>)> {
        let changes = Changes { dir, keep_ms, kept: Index::default() };
        let (mut recovered, mut damage) = (Vec::new(), Vec::new());
        let entries = match std::fs::read_dir(&changes.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Arc::new(changes), recovered, damage)),
            entries => entries?,
        };
        let mut dirs: Vec<PathBuf> = Vec::new();
        for entry in entries {
            dirs.push(entry?.path());
        }
        dirs.sort_unstable();
        for dir in dirs {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            if name.contains(".damaged-") {
                continue;
            }
            match changes.recover_one(&dir) {
                Ok(found) => recovered.extend(found),
                Err(e) if can_pass(&e) => damage.push(format!("{}: {e}; it is tried again", dir.display())),
                Err(e) => {
                    let aside = quarantine_path(&dir);
                    let moved = match std::fs::rename(&dir, &aside) {
                        Ok(()) => format!("moved to {}", aside.display()),
                        Err(e) => format!("it could not be moved: {e}"),
                    };
                    damage.push(format!(
                        "{}: the journal of changes {e}; if they were not complete, files named .toold-{name}-* have the \
                         other bytes; {moved}",
                        dir.display()
                    ));
                }
            }
        }
        changes.expire(crate::clock::retention_ms());
        Ok((Arc::new(changes), recovered, damage))
    }

    fn recover_one(&self, dir: &Path) -> io::Result<Option<RecoveredChange>> {
        let (state, head) = match ChangeJournal::read_head(dir) {
            // A crash before the journal: nothing has changed.
            Err(e) if e.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
                std::fs::remove_dir_all(dir)?;
                return Ok(None);
            }
            read => read?,
        };
        if dir.file_name().and_then(|name| name.to_str()) != Some(&head.id) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "has another name"));
        }
        match state {
            ChangeState::Published | ChangeState::Reverted if head.reverts.is_some() => {
                self.forget(&head.id);
                return Ok(None);
            }
            ChangeState::Published | ChangeState::Reverted => {
                self.kept.insert(&head, state);
                return Ok(None);
            }
            ChangeState::Planned | ChangeState::Prepared | ChangeState::Committed | ChangeState::Cleaned => {}
        }
        let mut journal = ChangeJournal::read(dir)?;
        let mut dirs = Dirs::reopen(&journal.steps);
        let outcome = match state {
            ChangeState::Planned | ChangeState::Prepared => {
                let left = walk_back(&journal, &mut dirs);
                hooks::at("changes.walked_back");
                dirs.sync(&journal.steps).or_else(|e| if left.is_empty() { Err(e) } else { Ok(()) })?;
                ChangeJournal::remove(dir)?;
                RecoveredOutcome::WalkedBack(left)
            }
            _ => {
                self.finish(&mut journal, &mut dirs);
                RecoveredOutcome::Committed
            }
        };
        Ok(Some(RecoveredChange { id: head.id, reverts: head.reverts, outcome, note: journal.steps.note }))
    }
}
