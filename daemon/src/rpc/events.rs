//! `events.next` and `events.ack`: pulling what happened, at one's own pace.

use super::context::Daemon;
use super::wire::Peer;
use crate::events::{ConsumerError, ConsumerName, Filter, Start};
use crate::proc::Proc;
use crate::proc::task::now_ms;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toold_proto::event::{Event, EventType, SeqRange};
use toold_proto::time::rfc3339;
use toold_proto::{ErrorKind, ProcId, RpcError, params, results};

const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 10_000;
/// Text of the events in one answer. One event is given even if it is longer.
const ANSWER_BYTES: usize = 4 << 20;

pub async fn next(
    call: params::EventsNext,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::EventsNext, RpcError> {
    let name = consumer_name(&call.consumer)?;
    let limit = call.limit.unwrap_or(LIMIT);
    if limit == 0 || limit > LIMIT_MAX {
        return Err(RpcError::param("limit", format!("must be 1 to {LIMIT_MAX}, not {limit}")));
    }
    let filter = filter(&daemon, &call.types, &call.session_key, &call.task_id, &call.id)?;
    let registry = &daemon.registry;
    let (journal, consumers) = (&registry.sink.journal, &registry.consumers);
    let mut news = journal.subscribe();
    let start = match call.from {
        params::ConsumerStart::Oldest => Start::Oldest,
        params::ConsumerStart::Now => Start::Now,
    };
    let entered = consumers
        .enter(&name, start, journal.oldest(), journal.last(), now_ms())
        .map_err(|e| failed(e, &call.consumer))?;
    let deadline = Instant::now() + Duration::from_millis(call.wait_ms.min(registry.config.max_wait_ms));
    loop {
        news.mark_unchanged();
        let last = journal.last();
        let next = consumers
            .next(journal, &name, &filter, limit as usize, ANSWER_BYTES)
            .map_err(|e| failed(e, &call.consumer))?;
        let missing = match (next.missing.first(), next.missing.last()) {
            (Some(first), Some(last)) => Some(SeqRange { from: *first.start(), to: *last.end() }),
            _ => None,
        };
        let done = !next.events.is_empty() || missing.is_some() || entered.forgotten.is_some();
        if !next.scanned_all && next.events.is_empty() {
            tokio::task::yield_now().await;
            continue;
        }
        // Who waits is there: it is not forgotten meanwhile.
        let look = deadline.min(Instant::now() + Duration::from_millis(registry.config.events.consumer_ttl_ms / 3 + 1));
        let waits = !done && Instant::now() < deadline;
        if waits && timeout_at(look, news.changed()).await.is_err() && Instant::now() < deadline {
            consumers.used(&name, now_ms()).map_err(|e| failed(e, &call.consumer))?;
            continue;
        }
        if !waits || Instant::now() >= deadline {
            let forgotten =
                entered.forgotten.map(|f| results::Forgotten { position: f.position, at: rfc3339(f.at_ms) });
            return Ok(results::EventsNext {
                consumer: call.consumer,
                events: next.events.into_iter().map(|e| Event(e.json)).collect(),
                position: next.position,
                last,
                missing,
                created: entered.created,
                forgotten,
            });
        }
    }
}

pub async fn ack(call: params::EventsAck, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::EventsAck, RpcError> {
    let name = consumer_name(&call.consumer)?;
    let last = daemon.registry.sink.journal.last();
    if call.seq > last {
        return Err(RpcError::param("seq", format!("is {}, and the newest event is {last}", call.seq)));
    }
    let acked = daemon.registry.consumers.ack(&name, call.seq, last, now_ms());
    let position = acked.map_err(|e| failed(e, &call.consumer))?;
    Ok(results::EventsAck { consumer: call.consumer, position })
}

/// The name of a consumer, checked.
pub fn consumer_name(name: &str) -> Result<ConsumerName, RpcError> {
    ConsumerName::parse(name).map_err(|why| RpcError::param("consumer", why))
}

/// What a subscriber or consumer wants to see.
pub fn filter(
    daemon: &Daemon,
    types: &Option<Vec<EventType>>,
    session_key: &Option<String>,
    task_id: &Option<String>,
    id: &Option<String>,
) -> Result<Filter, RpcError> {
    if types.as_ref().is_some_and(Vec::is_empty) {
        return Err(RpcError::param("types", "must not be empty; leave it out for all types"));
    }
    let id = match id {
        None => None,
        Some(text) => Some(match daemon.find(text) {
            Ok(proc) => proc.spec.id,
            // Its events outlive a process that was forgotten.
            Err(e) => text.parse::<ProcId>().map_err(|_| e)?,
        }),
    };
    let types = types.as_ref().map(|types| types.iter().copied().collect());
    Ok(Filter { types, session_key: session_key.clone(), task_id: task_id.clone(), id })
}

/// A consumer that a call names, made if it is new: what cannot be is refused before anything is done.
pub fn consumer(daemon: &Daemon, name: Option<&str>) -> Result<Option<ConsumerName>, RpcError> {
    let Some(text) = name else { return Ok(None) };
    let name = consumer_name(text)?;
    let (journal, consumers) = (&daemon.registry.sink.journal, &daemon.registry.consumers);
    let entered = consumers.enter(&name, Start::Oldest, journal.oldest(), journal.last(), now_ms());
    entered.map_err(|e| failed(e, text))?;
    Ok(Some(name))
}

/// Acknowledges the exits of these processes for a consumer: it is told them in the answer.
pub fn acknowledge<'a>(
    daemon: &Daemon,
    consumer: Option<&ConsumerName>,
    ended: impl Iterator<Item = &'a Arc<Proc>>,
) -> Result<(), RpcError> {
    let Some(name) = consumer else { return Ok(()) };
    let (journal, consumers) = (&daemon.registry.sink.journal, &daemon.registry.consumers);
    for proc in ended {
        let told = proc.checkpoint();
        let upto = match (proc.notify(), told.completed) {
            (false, _) => told.exited_seq,
            (true, true) => told.completed_seq,
            // It is on its way.
            (true, false) => 0,
        };
        let (oldest, last) = (journal.oldest(), journal.last());
        consumers
            .skip_exit(name, proc.spec.id, last, upto, oldest, last, now_ms())
            .map_err(|e| failed(e, name.as_str()))?;
    }
    Ok(())
}

fn failed(error: ConsumerError, name: &str) -> RpcError {
    match error {
        ConsumerError::TooMany { max } => {
            RpcError::limit("events.max_consumers", format!("there are {max} consumers already"))
        }
        ConsumerError::Unknown => {
            let message = format!("there is no consumer {name:?}; `events.next` makes one");
            RpcError::new(ErrorKind::NotFound, message).with("consumer", name)
        }
        ConsumerError::Io(e) => RpcError::new(
            ErrorKind::Unavailable,
            format!("the position of consumer {name:?} cannot be stored or read: {e}"),
        ),
    }
}
