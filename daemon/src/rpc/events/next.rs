//! `events.next`.

use super::{consumer_error, consumer_name, filter};
use crate::clock::wall_ms;
use crate::rpc::context::Daemon;
use crate::rpc::wire::Peer;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toold_proto::event::{Event, SeqRange};
use toold_proto::time::rfc3339;
use toold_proto::{RpcError, params, results};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 10_000;
/// Text of the events in one answer. One event is given even if it is longer.
const MAX_ANSWER_LEN: usize = 4 << 20;

pub async fn next(
    call: params::EventsNext,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::EventsNext, RpcError> {
    let name = consumer_name(&call.consumer)?;
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT);
    if limit == 0 || limit > MAX_LIMIT {
        return Err(RpcError::param("limit", format!("must be 1 to {MAX_LIMIT}, not {limit}")));
    }
    let filter = filter(&daemon, &call.types, &call.session_key, &call.task_id, &call.id)?;
    let registry = &daemon.registry;
    let (journal, consumers) = (&daemon.journal, &daemon.consumers);
    let mut updates = journal.subscribe();
    let registration = consumers
        .register(&name, call.from, journal.bounds(), wall_ms())
        .map_err(|e| consumer_error(e, &call.consumer))?;
    let deadline = Instant::now() + Duration::from_millis(call.wait_ms.min(registry.config.max_wait_ms));
    loop {
        updates.mark_unchanged();
        let last = journal.last();
        let next = consumers
            .next(journal, &name, &filter, limit as usize, MAX_ANSWER_LEN)
            .map_err(|e| consumer_error(e, &call.consumer))?;
        let missing = match (next.missing.first(), next.missing.last()) {
            (Some(first), Some(last)) => Some(SeqRange { from: *first.start(), to: *last.end() }),
            _ => None,
        };
        let done = !next.events.is_empty() || missing.is_some() || registration.expired.is_some();
        if !next.scanned_all && next.events.is_empty() {
            tokio::task::yield_now().await;
            continue;
        }
        // Who waits is there: it is not forgotten meanwhile.
        let look = deadline.min(Instant::now() + Duration::from_millis(registry.config.events.consumer_ttl_ms / 3 + 1));
        let waits = !done && Instant::now() < deadline;
        if waits && timeout_at(look, updates.changed()).await.is_err() && Instant::now() < deadline {
            consumers.touch(&name, wall_ms()).map_err(|e| consumer_error(e, &call.consumer))?;
            continue;
        }
        if !waits || Instant::now() >= deadline {
            let forgotten =
                registration.expired.map(|f| results::Forgotten { position: f.position, at: rfc3339(f.at_ms) });
            return Ok(results::EventsNext {
                consumer: call.consumer,
                events: next.events.into_iter().map(|e| Event(e.json)).collect(),
                position: next.position,
                last,
                missing,
                created: registration.created,
                forgotten,
            });
        }
    }
}
