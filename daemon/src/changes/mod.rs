//! Changes of files that happen all or not at all, also over a crash. See `docs/patch.md`.
//!
//! New contents are written beside their targets first, under names of their own. A journal in the state directory then has
//! every step with the identity of what it replaces and of what it puts there. Each step is one rename. A journal without the
//! mark of its commit is walked back: by this daemon after a failure, by the next one after a crash. Between two renames a
//! reader can see the new content of one file beside the old one of another.

mod commit;
mod dirs;
mod error;
mod identity;
mod journal;
mod kept;
mod paths;
mod plan;
mod prepare;
mod recover;
mod revert;
#[cfg(test)]
mod tests;
mod walk;
mod walk_back;

pub use error::{ChangeError, LeftAlone};
pub use identity::{FileId, Seen};
pub use kept::{KeptChange, KeptFile};
pub use recover::{RecoveredChange, RecoveredOutcome};
pub use walk::{ChangePlace, LastLink, Root, WalkError, stat_at};

use crate::disk;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// SHA-256 of a file's bytes.
pub type Sha256 = [u8; 32];

/// Changes that happen together.
#[derive(Debug)]
pub struct ChangeSet {
    /// Names the journal: letters, digits and `_`. No other set has it.
    pub id: String,
    /// The directories beneath which all paths are.
    pub roots: Vec<Arc<Root>>,
    pub changes: Vec<Change>,
    /// Keeps the old bytes, for a revert.
    pub keep_before: bool,
    pub hard_links: HardLinks,
    /// The owner's text about this set: it is in the journal, and recovery returns it.
    pub note: String,
    /// The request whose repetition finds this set, and the digest of what was requested.
    pub request: Option<Request>,
}

/// The request that made a set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Request {
    pub id: String,
    pub digest: u64,
}

/// One change. `root` is an index into the roots; `path` is a real path from there, as `Root::find` returns it.
#[derive(Debug)]
pub struct Change {
    pub root: usize,
    pub path: PathBuf,
    pub expect: Before,
    pub action: Action,
}

#[derive(Debug)]
pub enum Action {
    /// Puts a regular file there. Missing directories are made.
    Write {
        content: Content,
        attributes: Attributes,
    },
    /// Removes a file, a link, or a directory that is empty then.
    Remove,
    MakeDir {
        mode: Option<u32>,
    },
    SymLink {
        target: PathBuf,
    },
}

/// The mode, the owner and the extended attributes of a file that is written.
#[derive(Debug, Default)]
pub struct Attributes {
    /// None: that of the file before, else that of a new file.
    pub mode: Option<u32>,
    /// None: those of the file before.
    pub owner: Option<(u32, u32)>,
    /// None: those of the file before.
    pub xattrs: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// The bytes of a file that is written.
#[derive(Debug)]
pub enum Content {
    Bytes(Vec<u8>),
    /// All bytes of a regular file beneath a directory. It is opened when it is copied: a set may have more files than a process
    /// may have descriptors.
    Beneath {
        dir: Arc<OwnedFd>,
        path: PathBuf,
    },
}

/// The state of a path before its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    Any,
    Absent,
    /// As it was seen: same file, size and time of the last change.
    Same(Seen),
    /// A regular file with these bytes.
    Hash(Sha256),
}

/// The treatment of a file with several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardLinks {
    #[default]
    Refuse,
    /// The other names keep the old bytes.
    Break,
}

/// A set that was committed.
#[derive(Debug)]
pub struct Committed {
    pub id: String,
    /// Paths of directories that were made, with their roots.
    pub made_dirs: Vec<PathBuf>,
}

/// The journals in the state directory.
#[derive(Debug)]
pub struct Changes {
    dir: PathBuf,
    keep_ms: u64,
    kept: kept::Index,
}

impl Changes {
    /// Commits a set: all of it, or nothing. Runs to its end even if the caller goes away.
    pub async fn commit(self: &Arc<Self>, set: ChangeSet) -> Result<Committed, ChangeError> {
        let changes = self.clone();
        disk::blocking(move || changes.commit_now(set)).await.map_err(ChangeError::Journal).flatten()
    }

    /// Undoes a set whose old bytes are kept, as a set `new_id`. A file that has changed since: conflict, and nothing is done.
    pub async fn revert(
        self: &Arc<Self>,
        id: &str,
        new_id: String,
        roots: Vec<Arc<Root>>,
        note: String,
    ) -> Result<Committed, ChangeError> {
        let (changes, id) = (self.clone(), id.to_owned());
        disk::blocking(move || changes.revert_now(&id, new_id, roots, note))
            .await
            .map_err(ChangeError::Journal)
            .flatten()
    }
}
