//! `forget`.

use super::context::Daemon;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::proc::Proc;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn forget(
    call: params::ForgetParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::ForgetResult, RpcError> {
    let procs: Vec<Arc<Proc>> = match (&call.ids, call.older_than_ms) {
        (Some(_), Some(_)) => return Err(RpcError::param("ids", "give either ids or older_than_ms, not both")),
        (None, None) => return Err(RpcError::param("ids", "give ids or older_than_ms")),
        (Some(ids), None) => ids.iter().map(|id| daemon.find_by("ids", id)).collect::<Result<_, _>>()?,
        (None, Some(age)) => daemon.registry.ended_before(wall_ms().saturating_sub(age)),
    };
    let (forgotten, skipped) = daemon.registry.forget_all(procs).await;
    Ok(results::ForgetResult { forgotten, skipped })
}
