//! Errors of calls on files.

use crate::files::edit::EditPlace;
use crate::files::{FsError, Refusal};
use std::io;
use std::path::Path;
use toold_proto::{ErrorKind, RpcError};

impl From<FsError> for RpcError {
    fn from(error: FsError) -> RpcError {
        match error {
            FsError::Param { param, why } => RpcError::param(param, why),
            FsError::NotFound { path, similar } => {
                let hint =
                    if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) };
                RpcError::new(ErrorKind::NotFound, format!("{} does not exist{hint}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("similar", similar)
            }
            FsError::WrongType { path, found, hint } => {
                RpcError::param("path", format!("{} is {found}{hint}", path.display())).with("file_type", found)
            }
            FsError::Refused { path, refusal } => refused(&path, refusal),
            FsError::PageTooLong { first_line, lines, chars, max, fitting_lines } => {
                let way = match fitting_lines {
                    0 => "read it with encoding: \"base64\" and from_byte".to_owned(),
                    n => format!("give limit: {n}"),
                };
                let message = format!("the {lines} lines from line {first_line} on have {chars} characters; {way}");
                RpcError::limit("fs.read_max_chars", message)
                    .with("chars", chars)
                    .with("max", max)
                    .with("fitting_lines", fitting_lines)
            }
            FsError::TooLarge { path, bytes, max } => {
                let message = format!(
                    "{} has {bytes} bytes, and files up to {max} are read whole; \
                     read a part with encoding: \"base64\" and from_byte, or search it with fs.search",
                    path.display()
                );
                RpcError::limit("fs.max_file_bytes", message).with("bytes", bytes).with("max", max)
            }
            FsError::Conflict { path, why, sha256 } => {
                RpcError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("sha256", sha256)
            }
            FsError::NoMatch { path, sha256, nearest, why } => {
                let lines: Vec<String> = nearest.iter().map(|place| place.line.to_string()).collect();
                let hint = match (why, lines.is_empty()) {
                    (Some(why), _) => format!("; {why}"),
                    (None, true) => String::new(),
                    (None, false) => format!("; nearest: line {}", lines.join(", ")),
                };
                RpcError::new(ErrorKind::NoMatch, format!("{} does not have the old text{hint}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("sha256", sha256)
                    .with("nearest", places(&nearest))
            }
            FsError::Ambiguous { path, strategy, count, places: found } => {
                let lines: Vec<String> = found.iter().map(|place| place.line.to_string()).collect();
                let message = format!(
                    "{} has the old text {count} times, on line {}; give more of its lines, or replace_all: true",
                    path.display(),
                    lines.join(", ")
                );
                RpcError::new(ErrorKind::AmbiguousMatch, message)
                    .with("path", path.to_string_lossy())
                    .with("strategy", serde_json::to_value(strategy).unwrap_or_default())
                    .with("count", count)
                    .with("matches", places(&found))
            }
            FsError::Io { doing, path, source } => {
                let kind = match source.kind() {
                    io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                    // A disk that is full, read-only or broken.
                    _ => ErrorKind::Unavailable,
                };
                RpcError::new(kind, format!("{doing} {}: {source}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("errno", source.raw_os_error())
                    .with("reason", source.to_string())
            }
        }
    }
}

fn refused(path: &Path, refusal: Refusal) -> RpcError {
    let (reason, message) = match &refusal {
        Refusal::Outside { .. } => ("outside_roots", "is outside the roots of the sandbox"),
        Refusal::Hidden => ("hidden", "is hidden by the sandbox"),
        Refusal::Protected => ("protected", "is protected by the sandbox"),
        Refusal::Escapes => ("escapes", "is where the path leads, out of the roots of the sandbox; give that path"),
        Refusal::Kernel => ("kernel", "is a file of the kernel that is not given to callers"),
        Refusal::SetId => ("set_id", "cannot get a set-user-ID or set-group-ID bit from inside a sandbox"),
    };
    let error = RpcError::new(ErrorKind::Denied, format!("{} {message}", path.display()))
        .with("path", path.to_string_lossy())
        .with("reason", reason);
    match refusal {
        Refusal::Outside { offer } => error.with("root", offer.to_string_lossy()),
        Refusal::Hidden | Refusal::Protected | Refusal::Escapes | Refusal::Kernel | Refusal::SetId => error,
    }
}

fn places(places: &[EditPlace]) -> Vec<serde_json::Value> {
    let place = |place: &EditPlace| {
        let mut shown = serde_json::json!({ "line": place.line, "text": place.text });
        if let Some(similarity) = place.similarity {
            shown["similarity"] = similarity.into();
        }
        shown
    };
    places.iter().map(place).collect()
}

/// Builds the error for a directory that was swapped after it was approved.
pub fn swapped(path: &Path) -> RpcError {
    let message = format!("{} is another directory than the one that was approved", path.display());
    RpcError::new(ErrorKind::Denied, message).with("reason", "swapped").with("path", path.to_string_lossy())
}
