//! `patch.apply` and `patch.revert`.

use super::context::Daemon;
use super::error::not_approved;
use super::files_ask::swapped;
use super::wire::Peer;
use crate::approvals::{PathRefused, caller};
use crate::patch::{ApplyError, PatchCall};
use crate::sandbox::plan::Plan;
use std::path::PathBuf;
use std::sync::Arc;
use toold_proto::params::ExecParams;
use toold_proto::patch::{PatchApplyParams, PatchResult, PatchRevertParams, PatchRevertResult};
use toold_proto::sandbox::SandboxSetting;
use toold_proto::{ErrorKind, RpcError};

pub async fn apply(mut call: PatchApplyParams, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<PatchResult, RpcError> {
    let plan = plan(&daemon, call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
    let within = within(&daemon, plan.as_ref(), &peer);
    Ok(daemon.patches.apply_or_ask(call, within).await?)
}

pub async fn revert(
    call: PatchRevertParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<PatchRevertResult, RpcError> {
    // The roots of a profile are relative to the directory of the patch.
    let mut cwd = daemon.patches.working_dir(&call.patch_id).await?;
    let plan = plan(&daemon, call.sandbox.as_ref(), &mut cwd, call.session_key.as_deref())?;
    let within = within(&daemon, plan.as_ref(), &peer);
    Ok(daemon.patches.revert_or_ask(call, cwd, within).await?)
}

fn within<'a>(daemon: &'a Daemon, plan: Option<&'a Plan>, peer: &Peer) -> PatchCall<'a> {
    PatchCall { approvals: &daemon.approvals, plan, by: caller(peer.uid, peer.pid) }
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
