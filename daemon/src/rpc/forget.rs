//! `forget`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::caller;
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::registry::Selector;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn forget(
    call: params::ForgetParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::ForgetResult, RpcError> {
    let ended = |age: u64| daemon.registry.ended_before(wall_ms().saturating_sub(age));
    let procs: Vec<Arc<Proc>> = match (&call.ids, call.older_than_ms, call.failed) {
        (Some(ids), None, false) => ids.iter().map(|id| daemon.find_by("ids", id)).collect::<Result<_, _>>()?,
        (Some(_), _, _) => {
            return Err(RpcError::param("ids", "give either ids, or older_than_ms and failed, not both"));
        }
        (None, None, false) => return Err(RpcError::param("ids", "give ids, older_than_ms or failed")),
        (None, age, false) => {
            daemon.client_tools.forget_gone(age.unwrap_or(0));
            ended(age.unwrap_or(0))
        }
        (None, age, true) => {
            let failed = Selector { failed: true, ..Selector::default() };
            ended(age.unwrap_or(0)).into_iter().filter(|proc| failed.matches(proc)).collect()
        }
    };
    daemon.approvals.withdraw_retries(&procs, &caller(peer.uid, peer.pid)).await;
    let (forgotten, skipped) = daemon.registry.forget_all(procs).await;
    Ok(results::ForgetResult { forgotten, skipped })
}
