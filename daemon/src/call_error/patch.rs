//! Errors of patches.

use super::files::swapped;
use super::not_approved;
use crate::approvals::PathRefused;
use crate::patch::ApplyError;
use std::path::PathBuf;
use toold_proto::{ErrorKind, RpcError};

impl From<ApplyError> for RpcError {
    fn from(error: ApplyError) -> RpcError {
        let message = error.to_string();
        match error {
            ApplyError::Invalid(failure) => RpcError::param("patch", message)
                .with("line", failure.line)
                .with("path", failure.path)
                .with("nearest", serde_json::to_value(failure.nearest).unwrap_or_default()),
            ApplyError::Param { param, problem } => RpcError::param(&param, problem),
            ApplyError::Conflict(paths) => RpcError::new(ErrorKind::Conflict, message).with("paths", texts(&paths)),
            ApplyError::RequestConflict { request_id, patch_id } => {
                RpcError::new(ErrorKind::Conflict, message).with("request_id", request_id).with("patch_id", patch_id)
            }
            ApplyError::Denied { path, why } => {
                RpcError::new(ErrorKind::Denied, message).with("path", path.display().to_string()).with("reason", why)
            }
            ApplyError::Outside { path, offer } => RpcError::new(ErrorKind::Denied, message)
                .with("path", path.display().to_string())
                .with("reason", "outside_roots")
                .with("offer", offer.display().to_string()),
            ApplyError::NotApproved { path, refused } => {
                let path = path.display().to_string();
                match refused {
                    PathRefused::Denied(approval) => not_approved(&path, &approval, "nothing was changed"),
                    PathRefused::NotAsked(_) => {
                        RpcError::new(ErrorKind::Denied, message).with("path", path).with("reason", "outside_roots")
                    }
                    PathRefused::Ask(error) => error.into(),
                    PathRefused::Swapped(dir) => swapped(&dir),
                }
            }
            ApplyError::TooLarge { .. } => RpcError::limit("patch.max_bytes", message),
            ApplyError::HardLinks(path) => {
                RpcError::param("hard_links", message).with("path", path.display().to_string())
            }
            ApplyError::Unsupported { path, .. } => {
                RpcError::new(ErrorKind::Unavailable, message).with("path", path.display().to_string())
            }
            ApplyError::LeftAlone { files, .. } => {
                let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
                RpcError::new(ErrorKind::Conflict, message)
                    .with("paths", texts(&paths))
                    .with("left_alone", serde_json::to_value(&files).unwrap_or_default())
            }
            ApplyError::Io { path, source, .. } => RpcError::new(ErrorKind::Unavailable, message)
                .with("path", path.display().to_string())
                .with("errno", source.raw_os_error()),
            ApplyError::NotFound(id) => RpcError::new(ErrorKind::NotFound, message).with("patch_id", id),
            ApplyError::Reverted(id) => {
                RpcError::new(ErrorKind::Conflict, message).with("patch_id", id).with("reason", "reverted")
            }
            ApplyError::Internal(_) => RpcError::new(ErrorKind::Internal, message),
        }
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}
