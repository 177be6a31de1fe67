//! `events.ack`.

use super::{consumer_error, consumer_name};
use crate::clock::retention_ms;
use crate::rpc::context::Daemon;
use crate::rpc::wire::Peer;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn ack(
    call: params::EventsAckParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::EventsAckResult, RpcError> {
    let name = consumer_name(&call.consumer)?;
    let last = daemon.journal.last();
    if call.seq > last {
        return Err(RpcError::param("seq", format!("is {}, and the newest event is {last}", call.seq)));
    }
    let acked = daemon.consumers.ack(&name, call.seq, last, retention_ms());
    let position = acked.map_err(|e| consumer_error(e, &call.consumer))?;
    Ok(results::EventsAckResult { consumer: call.consumer, position })
}
