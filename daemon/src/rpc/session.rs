//! `session.active` and `session.end`.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::results::KillStatus;
use toold_proto::{RpcError, params, results};

pub async fn active(
    call: params::SessionActive,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionActive, RpcError> {
    if call.session_key.is_some() == call.task_id.is_some() {
        return Err(RpcError::param("session_key", "give either session_key or task_id"));
    }
    let ours = |p: &Arc<Proc>| match (&call.session_key, &call.task_id) {
        (Some(key), _) => p.spec.session_key.as_ref() == Some(key),
        (None, task) => p.spec.task_id == *task,
    };
    let running = daemon.registry.newest_first().into_iter().filter(|p| ours(p) && !p.published_state().has_ended());
    let ids: Vec<_> = running.map(|p| p.spec.id).collect();
    Ok(results::SessionActive { count: ids.len() as u64, ids })
}

pub async fn end(
    call: params::SessionEnd,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::SessionEnd, RpcError> {
    if call.session_key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty"));
    }
    let all = daemon.registry.newest_first().into_iter();
    let procs = all
        .filter(|p| p.spec.session_key.as_ref() == Some(&call.session_key) && !p.published_state().is_final())
        .collect();
    let (signal, cause) = (libc::SIGTERM, Cause::SessionEnd);
    let mut killed = kill_all(procs, Kill { signal, grace_ms: GRACE_MS, cause, uid: peer.uid, pid: peer.pid }).await;
    // One that was over already, and whose shim was about to leave, was not killed.
    killed.retain(|one| one.status != KillStatus::AlreadyExited);
    Ok(results::SessionEnd { session_key: call.session_key, count: killed.len() as u64, killed })
}
