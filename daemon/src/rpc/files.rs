//! `fs.read`, `fs.write`, `fs.edit`, `fs.list` and `fs.search`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::caller;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::files as api;

pub async fn read(call: api::FsReadParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<api::FsReadResult, RpcError> {
    daemon.file_calls.read(call).await
}

pub async fn write(
    call: api::FsWriteParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::FsWriteResult, RpcError> {
    daemon.file_calls.write(call, || caller(peer.uid, peer.pid)).await
}

pub async fn edit(
    call: api::FsEditParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::FsEditResult, RpcError> {
    daemon.file_calls.edit(call, || caller(peer.uid, peer.pid)).await
}

pub async fn list(call: api::FsListParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<api::FsListResult, RpcError> {
    daemon.file_calls.list(call).await
}

pub async fn search(
    call: api::FsSearchParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::FsSearchResult, RpcError> {
    daemon.file_calls.search(call).await
}
