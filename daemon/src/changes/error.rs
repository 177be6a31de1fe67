//! The reasons why changes did not happen.

use std::io;
use std::path::PathBuf;

/// A file that another program changed while changes were walked back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftAlone {
    pub path: PathBuf,
    /// The file with its old bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<PathBuf>,
}

#[derive(Debug)]
pub enum ChangeError {
    /// These are not as they were expected. Nothing changed.
    Conflict(Vec<PathBuf>),
    /// A failure in the middle was walked back, but these were changed by another program meanwhile and were left alone.
    LeftAlone {
        cause: Box<ChangeError>,
        files: Vec<LeftAlone>,
    },
    /// The file has several names.
    HardLinks(PathBuf),
    /// The path leads out of its root.
    Escapes(PathBuf),
    /// Neither a regular file nor a link nor a directory.
    NotAFile(PathBuf),
    /// The directory is not empty.
    NotEmpty(PathBuf),
    /// The file system cannot replace a file without a moment at which it is missing.
    Unsupported {
        path: PathBuf,
        source: io::Error,
    },
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The journal cannot be written or read.
    Journal(io::Error),
    /// There is no set with this id, or its old bytes are not kept any more.
    NotFound(String),
    /// The set was reverted before.
    Reverted(String),
}

impl ChangeError {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ChangeError {
        let path = path.into();
        move |source| ChangeError::Io { doing, path, source }
    }
}
