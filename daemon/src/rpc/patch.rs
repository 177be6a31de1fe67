//! `patch.apply` and `patch.revert`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::caller;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::patch::{PatchApplyParams, PatchResult, PatchRevertParams, PatchRevertResult};

pub async fn apply(call: PatchApplyParams, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<PatchResult, RpcError> {
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    daemon.file_calls.patch_apply(call, || caller(peer.uid, peer.pid)).await
}

pub async fn revert(
    call: PatchRevertParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<PatchRevertResult, RpcError> {
    daemon.file_calls.patch_revert(call, || caller(peer.uid, peer.pid)).await
}
