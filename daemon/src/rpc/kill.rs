//! `kill`.

use super::context::Daemon;
use super::signal::signal_number;
use super::wire::Peer;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::GRACE_MS;
use crate::registry::Selector;
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::results::KillStatus;
use toold_proto::{RpcError, params, results};

pub async fn kill(
    call: params::KillParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::KillResult, RpcError> {
    let signal = signal_number(call.signal.as_deref().unwrap_or("SIGTERM"))?;
    let grace_ms = call.grace_ms.unwrap_or(GRACE_MS).min(daemon.registry.config.max_wait_ms);
    let procs = selected(&call, &daemon)?;
    let kill = Kill { signal, grace_ms, cause: Cause::Client, uid: peer.uid, pid: peer.pid };
    let results = daemon.approvals.kill(procs, kill).await;
    let status = results.iter().map(|r| r.status).max().unwrap_or(KillStatus::AlreadyExited);
    Ok(results::KillResult { status, results })
}

/// Returns the processes that a call selects. Without ids: those of which something is left.
fn selected(call: &params::KillParams, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    let given = [
        call.id.is_some(),
        call.ids.is_some(),
        call.task_id.is_some(),
        call.session_key.is_some(),
        call.label.is_some(),
        call.name.is_some(),
        call.all == Some(true),
    ];
    if given.iter().filter(|g| **g).count() != 1 {
        return Err(RpcError::param("id", "give exactly one of id, ids, task_id, session_key, label, name, all: true"));
    }
    if let Some(id) = &call.id {
        return Ok(vec![daemon.find(id)?]);
    }
    if let Some(ids) = &call.ids {
        if ids.is_empty() {
            return Err(RpcError::param("ids", "must not be empty"));
        }
        let mut procs = ids.iter().map(|id| daemon.find_by("ids", id)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = std::collections::HashSet::new();
        procs.retain(|p| seen.insert(p.spec.id));
        return Ok(procs);
    }
    let selector = Selector {
        task_id: call.task_id.clone(),
        session_key: call.session_key.clone(),
        label: call.label.clone(),
        name: call.name.clone(),
        ..Selector::default()
    };
    Ok(daemon.registry.select_unfinished(&selector))
}
