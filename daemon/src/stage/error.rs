//! The reasons why a stage could not be shown, committed or discarded.

use super::tree::TreeError;
use crate::changes::ChangeError;
use crate::store::stage::StageEnd;
use std::fmt;
use std::io;
use std::path::PathBuf;
use toold_proto::ProcId;

#[derive(Debug)]
pub enum StageError {
    /// It was started without a stage.
    NotStaged(ProcId),
    /// Something of it runs.
    Running(ProcId),
    /// It was committed or discarded before.
    Ended {
        id: ProcId,
        end: StageEnd,
    },
    /// The changes are not those of the digest. Theirs is this one.
    Stale {
        id: ProcId,
        digest: String,
    },
    /// These were changed below the overlay meanwhile. Nothing was done.
    Conflict {
        id: ProcId,
        paths: Vec<PathBuf>,
    },
    /// The root is not the directory that it was when the job started.
    RootReplaced(PathBuf),
    /// `paths[index]` selects no change.
    NoChangeAt {
        index: usize,
        path: String,
    },
    /// An entry of this kind cannot be removed or replaced in a commit.
    Special(PathBuf),
    Tree(TreeError),
    Changes(ChangeError),
    Io(io::Error),
}

impl From<TreeError> for StageError {
    fn from(e: TreeError) -> StageError {
        StageError::Tree(e)
    }
}

impl From<io::Error> for StageError {
    fn from(e: io::Error) -> StageError {
        StageError::Io(e)
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StageError::NotStaged(id) => write!(f, "{id} has no stage; start a process with `stage` for one"),
            StageError::Running(id) => {
                write!(f, "{id} or something of its tree still runs; wait for its end, or kill it")
            }
            StageError::Ended { id, end: StageEnd::Committed } => write!(f, "the stage of {id} was already committed"),
            StageError::Ended { id, end: StageEnd::Discarded } => write!(f, "the stage of {id} was already discarded"),
            StageError::Stale { id, .. } => {
                write!(f, "the digest is not that of the changes of {id}; read its diff again")
            }
            StageError::Conflict { paths, .. } => {
                write!(f, "changed below the stage since the job started: {}; nothing was committed", list(paths))
            }
            StageError::RootReplaced(path) => {
                write!(f, "{} is not the directory that the job ran on; nothing was committed", path.display())
            }
            StageError::NoChangeAt { path, .. } => write!(f, "the stage has no change at {path}"),
            StageError::Special(path) => {
                write!(f, "{} is a pipe, a socket or a device; nothing was committed", path.display())
            }
            StageError::Tree(TreeError { doing, path, source }) => write!(f, "{doing} {}: {source}", path.display()),
            StageError::Changes(e) => write!(f, "the commit failed: {}", change_error(e)),
            StageError::Io(e) => write!(f, "the stage: {e}"),
        }
    }
}

/// Names the first paths.
fn list(paths: &[PathBuf]) -> String {
    const MAX_NAMED: usize = 5;
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| path.display().to_string()).collect();
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn change_error(e: &ChangeError) -> String {
    match e {
        ChangeError::Conflict(paths) => format!("{} changed meanwhile; nothing was committed", list(paths)),
        ChangeError::LeftAlone { cause, files } => {
            let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            let names = list(&paths);
            format!("{}; it was walked back, but {names} changed meanwhile and was left alone", change_error(cause))
        }
        ChangeError::HardLinks(path) => format!("{} has several names", path.display()),
        ChangeError::Escapes(path) => format!("{} leads out of its root", path.display()),
        ChangeError::NotAFile(path) => format!("{} is not a file; nothing was committed", path.display()),
        ChangeError::NotEmpty(path) => format!("{} has new entries; nothing was committed", path.display()),
        ChangeError::Unsupported { path, source } => {
            format!("the file system of {} cannot replace a file in one step: {source}", path.display())
        }
        ChangeError::Io { doing, path, source } => {
            format!("{doing} {}: {source}; nothing was committed", path.display())
        }
        ChangeError::Journal(e) => format!("the journal: {e}; nothing was committed"),
        ChangeError::NotFound(id) | ChangeError::Reverted(id) => format!("{id} is not known"),
    }
}
