//! The reasons why a call on files fails.

use super::edit::EditPlace;
use std::io;
use std::path::PathBuf;
use toold_proto::files::EditStrategy;

/// The rule that refused a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A write outside the roots. A grant for `offer` would allow it.
    Outside { offer: PathBuf },
    /// A path that cannot be read.
    Hidden,
    /// A path inside a root that stays as it is.
    Protected,
    /// A path that begins in a root and leads out of it.
    Escapes,
    /// A file of the kernel that shows the memory or the secrets of processes.
    Kernel,
    /// Permissions with the set-user-ID or set-group-ID bit.
    SetId,
}

#[derive(Debug)]
pub enum FsError {
    Param {
        param: &'static str,
        why: String,
    },
    NotFound {
        path: PathBuf,
        similar: Vec<String>,
    },
    /// Not a file, or not a directory, of the kind that the call needs.
    WrongType {
        path: PathBuf,
        found: &'static str,
        hint: &'static str,
    },
    Refused {
        path: PathBuf,
        refusal: Refusal,
    },
    /// A page that is too long.
    PageTooLong {
        first_line: u64,
        lines: u64,
        chars: u64,
        max: u64,
        fitting_lines: u64,
    },
    TooLarge {
        path: PathBuf,
        bytes: u64,
        max: u64,
    },
    Conflict {
        path: PathBuf,
        why: String,
        sha256: Option<String>,
    },
    NoMatch {
        path: PathBuf,
        sha256: String,
        nearest: Vec<EditPlace>,
        why: Option<&'static str>,
    },
    Ambiguous {
        path: PathBuf,
        strategy: EditStrategy,
        count: u64,
        places: Vec<EditPlace>,
    },
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl FsError {
    pub fn param(param: &'static str, why: impl Into<String>) -> FsError {
        FsError::Param { param, why: why.into() }
    }

    pub fn io(doing: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> FsError {
        FsError::Io { doing, path: path.into(), source: source.into() }
    }
}
