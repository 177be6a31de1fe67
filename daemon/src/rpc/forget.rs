//! `forget`.

use super::context::Daemon;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::state::State;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::{RpcError, params, results};

/// How long a shim may take to leave after the end of its process.
const SHIM_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

pub async fn forget(call: params::Forget, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Forget, RpcError> {
    let procs: Vec<Arc<Proc>> = match (&call.ids, call.older_than_ms) {
        (Some(_), Some(_)) => return Err(RpcError::param("ids", "give either ids or older_than_ms, not both")),
        (None, None) => return Err(RpcError::param("ids", "give ids or older_than_ms")),
        (Some(ids), None) => ids.iter().map(|id| daemon.registry.find("ids", id)).collect::<Result<_, _>>()?,
        (None, Some(age)) => {
            let before = wall_ms().saturating_sub(age);
            let old = |p: &Arc<Proc>| {
                p.published_state().closed && p.published_state().ended_ms().is_some_and(|at| at <= before)
            };
            daemon.registry.newest_first().into_iter().filter(old).collect()
        }
    };
    let mut result = results::Forget { forgotten: Vec::new(), skipped: Vec::new() };
    for proc in procs {
        let id = proc.spec.id;
        if proc.published_state().has_ended() && proc.published_state().closed {
            // Its shim is about to leave.
            let mut state = proc.subscribe();
            let _ = tokio::time::timeout(SHIM_EXIT_TIMEOUT, state.wait_for(State::is_final)).await;
        }
        let list = if daemon.registry.forget(id).await { &mut result.forgotten } else { &mut result.skipped };
        list.push(id);
    }
    Ok(result)
}
