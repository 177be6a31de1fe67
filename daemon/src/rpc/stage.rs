//! `stage.diff`, `stage.commit` and `stage.discard`.

use super::context::Daemon;
use super::wire::Peer;
use crate::changes::ChangeError;
use crate::stage::StageError;
use crate::store::stage::StageEnd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_proto::stage::{
    StageCommitParams, StageCommitResult, StageDiffParams, StageDiffResult, StageDiscardParams, StageDiscardResult,
};
use toold_proto::{ErrorKind, RpcError};

/// Paths in one error.
const MAX_PATHS: usize = 100;

pub async fn diff(call: StageDiffParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<StageDiffResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    daemon.stages.diff(&proc).await.map_err(error)
}

pub async fn commit(call: StageCommitParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<StageCommitResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    // In a task of its own: a caller that goes away must not leave the state of the stage behind that of the files.
    let commit = tokio::spawn(async move { daemon.stages.commit(&proc, &call.digest, call.paths).await });
    commit.await.map_err(|e| RpcError::new(ErrorKind::Internal, e.to_string()))?.map_err(error)
}

pub async fn discard(
    call: StageDiscardParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<StageDiscardResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    let discard = tokio::spawn(async move { daemon.stages.discard(&proc).await });
    discard.await.map_err(|e| RpcError::new(ErrorKind::Internal, e.to_string()))?.map_err(error)
}

fn error(e: StageError) -> RpcError {
    let message = e.to_string();
    let conflict = |reason: &str| RpcError::new(ErrorKind::Conflict, message.clone()).with("reason", reason);
    match e {
        StageError::NotStaged(_) => RpcError::param("id", message),
        StageError::NoChangeAt { index, .. } => RpcError::param(&format!("paths[{index}]"), message),
        StageError::Running(id) => conflict("running").with("id", id.to_string()),
        StageError::Ended { id, end } => {
            let reason = match end {
                StageEnd::Committed => "committed",
                StageEnd::Discarded => "discarded",
            };
            conflict(reason).with("already", reason).with("id", id.to_string())
        }
        StageError::Stale { id, digest } => conflict("digest").with("digest", digest).with("id", id.to_string()),
        StageError::Conflict { id, paths } => {
            conflict("changed_below").with("paths", shown(&paths)).with("id", id.to_string())
        }
        StageError::RootReplaced(path) => conflict("changed_below").with("paths", shown(&[path])),
        StageError::Special(path) => conflict("special").with("paths", shown(&[path])),
        StageError::Changes(ChangeError::LeftAlone { files, .. }) => {
            let paths: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
            conflict("left_alone").with("paths", shown(&paths))
        }
        StageError::Changes(_) | StageError::Tree(_) | StageError::Io(_) => RpcError::new(ErrorKind::Internal, message),
    }
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().take(MAX_PATHS).map(|path| Path::to_string_lossy(path).into_owned()).collect()
}
