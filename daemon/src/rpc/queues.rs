//! `queues.list` and `queues.set`.

use super::context::Daemon;
use super::wire::Peer;
use crate::registry::QueueError;
use crate::spec::check_queue_name;
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn list(_: params::Empty, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::QueuesListResult, RpcError> {
    Ok(results::QueuesListResult { queues: daemon.registry.list_queues() })
}

pub async fn set(call: params::QueuesSetParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Queue, RpcError> {
    check_queue_name("name", &call.name, daemon.registry.config.exec.max_name_bytes)?;
    if call.slots == Some(0) {
        return Err(RpcError::param("slots", "must be at least 1; `paused` stops a queue"));
    }
    if call.slots.is_none() && call.paused.is_none() {
        return Err(RpcError::param("slots", "give slots, paused or both"));
    }
    daemon.registry.set_queue(call.name, call.slots, call.paused).await.map_err(|e| match e {
        QueueError::TooMany(max) => {
            RpcError::new(ErrorKind::Limit, format!("there are {max} queues already; use one of them"))
                .with("limit", "queues")
        }
        QueueError::Store { path, source } => {
            RpcError::new(ErrorKind::Internal, format!("store the queues in {}: {source}", path.display()))
        }
    })
}
