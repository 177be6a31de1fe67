//! `events.next`.

use super::{consumer_error, consumer_name, expiry_receipt, filter};
use crate::clock::retention_ms;
use crate::events::NextQuery;
use crate::rpc::context::Daemon;
use crate::rpc::wire::{Peer, WithReceipt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use toold_proto::event::{Event, SeqRange};
use toold_proto::time::rfc3339;
use toold_proto::{RpcError, params, results};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 10_000;
/// The most bytes of event text in one answer. One event is sent even if it is longer.
const MAX_ANSWER_LEN: usize = 4 << 20;

pub async fn next(
    call: params::EventsNextParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<WithReceipt<results::EventsNextResult>, RpcError> {
    let name = consumer_name(&call.consumer)?;
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT);
    if limit == 0 || limit > MAX_LIMIT {
        return Err(RpcError::param("limit", format!("must be 1 to {MAX_LIMIT}, not {limit}")));
    }
    let filter = filter(&daemon, &call.types, &call.session_key, &call.task_id, &call.id)?;
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    let (journal, consumers) = (&daemon.journal, &daemon.consumers);
    let error = |e| consumer_error(e, &call.consumer);
    consumers.wait_deliveries(&name).await;
    let registration = consumers.register(&name, call.from, journal.bounds(), retention_ms()).map_err(error)?;
    // A consumer that had expired, or whose position was damaged, is answered at once, with the fact.
    let is_informed = registration.expired.is_some() || registration.damaged_ms.is_some();
    let wait_ms = if is_informed { 0 } else { call.wait_ms };
    let deadline = Instant::now() + Duration::from_millis(wait_ms.min(daemon.registry.config.max_wait_ms));
    let query = NextQuery { name: &name, filter: &filter, max_events: limit as usize, max_bytes: MAX_ANSWER_LEN };
    let next = consumers.wait_next(journal, query, deadline).await.map_err(error)?;
    let missing = match (next.missing.first(), next.missing.last()) {
        (Some(first), Some(last)) => Some(SeqRange { from: *first.start(), to: *last.end() }),
        _ => None,
    };
    // The consumer learns of its expiry once, by this answer: not by one that was lost.
    let receipt = registration.expired.map(|_| expiry_receipt(&daemon, &name));
    let forgotten = registration.expired.map(|e| results::Forgotten { position: e.position, at: rfc3339(e.at_ms) });
    let result = results::EventsNextResult {
        events: next.events.into_iter().map(|entry| Event(entry.json)).collect(),
        position: next.position,
        last: next.last,
        missing,
        created: registration.created,
        forgotten,
        damaged: registration.damaged_ms.map(|at| results::PositionDamage { at: rfc3339(at) }),
        consumer: call.consumer,
    };
    Ok(WithReceipt { result, receipt })
}
