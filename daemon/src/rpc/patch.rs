//! `patch.apply` and `patch.revert`.

use super::context::Daemon;
use super::wire::Peer;
use crate::patch::{ApplyError, Bounds};
use crate::sandbox::plan::Plan;
use std::path::PathBuf;
use std::sync::Arc;
use toold_proto::params::ExecParams;
use toold_proto::patch::{PatchApplyParams, PatchResult, PatchRevertParams, PatchRevertResult};
use toold_proto::sandbox::SandboxSetting;
use toold_proto::{ErrorKind, RpcError};

pub async fn apply(mut call: PatchApplyParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<PatchResult, RpcError> {
    let plan = plan(&daemon, call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
    let bounds = Bounds::new(plan.as_ref()).map_err(ApplyError::Internal)?;
    Ok(daemon.patches.apply(call, bounds).await?)
}

pub async fn revert(call: PatchRevertParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<PatchRevertResult, RpcError> {
    // The roots of a profile are relative to the directory of the patch.
    let mut cwd = daemon.patches.working_dir(&call.patch_id).await?;
    let plan = plan(&daemon, call.sandbox.as_ref(), &mut cwd, call.session_key.as_deref())?;
    let bounds = Bounds::new(plan.as_ref()).map_err(ApplyError::Internal)?;
    Ok(daemon.patches.revert(call, bounds).await?)
}

/// Judges the profile of a call, with the defaults and the ceiling of its session, and fills in the directory of the session.
fn plan(
    daemon: &Daemon,
    sandbox: Option<&SandboxSetting>,
    cwd: &mut Option<String>,
    session_key: Option<&str>,
) -> Result<Option<Plan>, RpcError> {
    let (sandbox, session_key) = (sandbox.cloned(), session_key.map(String::from));
    let mut call = ExecParams { cwd: cwd.take(), sandbox, session_key, ..ExecParams::default() };
    let session = daemon.judge.apply_session(&mut call, &daemon.registry.config)?;
    *cwd = call.cwd;
    let (asked, key) = (call.sandbox.as_ref(), call.session_key.as_deref());
    Ok(daemon.registry.plan(asked, session.ceiling.as_ref(), cwd.as_deref(), key)?)
}

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
