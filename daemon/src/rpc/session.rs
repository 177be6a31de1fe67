//! `session.active` and `session.end`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::caller;
use crate::registry::Selector;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn active(
    call: params::SessionActiveParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionActiveResult, RpcError> {
    if call.session_key.is_some() == call.task_id.is_some() {
        return Err(RpcError::param("session_key", "give either session_key or task_id"));
    }
    let selector = Selector { session_key: call.session_key, task_id: call.task_id, ..Selector::default() };
    let ids: Vec<_> = daemon.registry.select_running(&selector).iter().map(|proc| proc.spec.id).collect();
    Ok(results::SessionActiveResult { count: ids.len() as u64, ids })
}

pub async fn end(
    call: params::SessionEndParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::SessionEndResult, RpcError> {
    if call.session_key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty"));
    }
    daemon.approvals.end_session(&call.session_key, &caller(peer.uid, peer.pid)).await;
    let killed = daemon.registry.end_session(&call.session_key, peer.uid, peer.pid).await;
    Ok(results::SessionEndResult { session_key: call.session_key, count: killed.len() as u64, killed })
}
