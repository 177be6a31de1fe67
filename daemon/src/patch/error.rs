//! The reasons why a patch was not applied or undone. Nothing has changed then, unless files are named that were left alone.

use super::bounds::describe;
use crate::approvals::PathRefused;
use crate::changes::{ChangeError, LeftAlone};
use crate::files::Refusal;
use std::fmt;
use std::io;
use std::path::PathBuf;
use toold_proto::patch::PatchFailure;

#[derive(Debug)]
pub enum ApplyError {
    /// The patch cannot be parsed, or does not fit the files.
    Invalid(PatchFailure),
    /// Another parameter is wrong.
    Param {
        param: String,
        problem: String,
    },
    /// These files are not as they were when the patch was verified, or not as the call expects them.
    Conflict(Vec<PathBuf>),
    /// The request id belongs to another patch.
    RequestConflict {
        request_id: String,
        patch_id: String,
    },
    /// The path is out of bounds.
    Denied {
        path: PathBuf,
        why: String,
    },
    /// The path is outside the roots. A person may give the directory that is offered.
    Outside {
        path: PathBuf,
        offer: PathBuf,
    },
    /// A person did not give the directories that it needs, or was not asked.
    NotApproved {
        path: PathBuf,
        refused: PathRefused,
    },
    /// The files of the patch have more bytes than the config allows.
    TooLarge {
        max: u64,
    },
    HardLinks(PathBuf),
    /// The file system cannot replace files as needed.
    Unsupported {
        path: PathBuf,
        source: io::Error,
    },
    /// The failure was walked back, but for these files: another program changed them meanwhile.
    LeftAlone {
        cause: Box<ApplyError>,
        files: Vec<LeftAlone>,
    },
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    NotFound(String),
    Reverted(String),
    Internal(io::Error),
}

impl From<ChangeError> for ApplyError {
    fn from(error: ChangeError) -> ApplyError {
        match error {
            ChangeError::Conflict(paths) => ApplyError::Conflict(paths),
            ChangeError::LeftAlone { cause, files } => {
                ApplyError::LeftAlone { cause: Box::new(ApplyError::from(*cause)), files }
            }
            ChangeError::HardLinks(path) => ApplyError::HardLinks(path),
            ChangeError::Escapes(path) => ApplyError::Denied { path, why: "it leads out of its root".into() },
            ChangeError::NotAFile(path) => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
                ApplyError::Io { doing: "change", path, source }
            }
            ChangeError::NotEmpty(path) => {
                ApplyError::Io { doing: "remove", path, source: io::ErrorKind::DirectoryNotEmpty.into() }
            }
            ChangeError::Unsupported { path, source } => ApplyError::Unsupported { path, source },
            ChangeError::Io { doing, path, source } => ApplyError::Io { doing, path, source },
            ChangeError::Journal(source) => ApplyError::Internal(source),
            ChangeError::NotFound(id) => ApplyError::NotFound(id),
            ChangeError::Reverted(id) => ApplyError::Reverted(id),
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Invalid(failure) => f.write_str(&failure_text(failure)),
            ApplyError::Param { param, problem } => write!(f, "{param}: {problem}"),
            ApplyError::Conflict(paths) => {
                write!(f, "changed meanwhile, or not as expected: {}; nothing was changed", list(paths))
            }
            ApplyError::RequestConflict { request_id, patch_id } => write!(
                f,
                "the request_id {request_id:?} belongs to {patch_id}, which is another patch; repeat that call unchanged, or use \
                 another request_id"
            ),
            ApplyError::Denied { path, why } => write!(f, "{}: {why}; nothing was changed", path.display()),
            ApplyError::Outside { path, offer } => {
                let why = describe(&Refusal::Outside { offer: offer.clone() });
                write!(f, "{}: {why}; nothing was changed", path.display())
            }
            ApplyError::NotApproved { path, refused } => {
                let why = match refused {
                    PathRefused::Denied(approval) => format!("its approval {} was not given", approval.id),
                    PathRefused::NotAsked(why) => format!("it is outside the roots of the profile; {why}"),
                    PathRefused::Ask(_) => "the question was not recorded".into(),
                    PathRefused::Swapped(dir) => {
                        format!("{} is another directory than the one that was approved", dir.display())
                    }
                };
                write!(f, "{}: {why}; nothing was changed", path.display())
            }
            ApplyError::TooLarge { max } => {
                write!(
                    f,
                    "the files of the patch have more than {max} bytes before and after it; split the patch, or raise the limit"
                )
            }
            ApplyError::HardLinks(path) => write!(
                f,
                "{}: the file has several names, and the others would keep the old bytes; allow that with hard_links: \"break\"",
                path.display()
            ),
            ApplyError::Unsupported { path, source } => write!(
                f,
                "{}: its file system cannot replace a file without a moment at which it is missing: {source}; nothing was changed",
                path.display()
            ),
            ApplyError::LeftAlone { cause, files } => {
                let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
                write!(
                    f,
                    "{cause}; another program changed these meanwhile, and they were left alone: {}",
                    list(&paths)
                )
            }
            ApplyError::Io { doing, path, source } => {
                write!(f, "{doing} {}: {source}; nothing was changed", path.display())
            }
            ApplyError::NotFound(id) => write!(f, "no patch {id:?}; it may be older than `patch.keep_ms`"),
            ApplyError::Reverted(id) => write!(f, "{id} was reverted before"),
            ApplyError::Internal(source) => write!(f, "record the patch: {source}; nothing was changed"),
        }
    }
}

/// Describes a file of a patch that was walked back after a crash.
pub fn left_alone(id: &str, file: &LeftAlone) -> String {
    let path = file.path.display();
    let before = file.before.as_ref().map(|before| format!("; its old bytes are in {}", before.display()));
    format!(
        "{id}: a crash interrupted the patch and it was walked back, but another program has changed {path}, which was left \
         alone{}",
        before.unwrap_or_default()
    )
}

fn failure_text(failure: &PatchFailure) -> String {
    let mut text = match failure.line {
        Some(line) => format!("line {line}: {}", failure.message),
        None => failure.message.clone(),
    };
    if let Some(nearest) = failure.nearest.first() {
        text += &format!("; nearest: line {} of the file, `{}`", nearest.line, nearest.text.trim());
    }
    text
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().take(8).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
