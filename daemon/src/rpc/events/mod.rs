//! The verbs `events.*`, a file each, and the parameters that they share: consumer names and filters.

pub mod ack;
pub mod next;
mod output_push;
pub mod subscribe;

use super::context::Daemon;
use crate::clock::wall_ms;
use crate::events::{ConsumerError, ConsumerName, Filter};
use crate::proc::{Proc, completion};
use std::sync::Arc;
use toold_proto::event::EventType;
use toold_proto::params::ConsumerStart;
use toold_proto::{ErrorKind, ProcId, RpcError};

/// Checks the name of a consumer.
pub fn consumer_name(name: &str) -> Result<ConsumerName, RpcError> {
    ConsumerName::parse(name).map_err(|why| RpcError::param("consumer", why))
}

/// Builds the filter of a subscriber or consumer.
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
            // The events of a process outlive it.
            Err(e) => text.parse::<ProcId>().map_err(|_| e)?,
        }),
    };
    let types = types.as_ref().map(|types| types.iter().copied().collect());
    Ok(Filter { types, session_key: session_key.clone(), task_id: task_id.clone(), id })
}

/// Registers the consumer that a call names. Called before anything else is done, so that a bad name has no effect.
pub fn consumer(daemon: &Daemon, name: Option<&str>) -> Result<Option<ConsumerName>, RpcError> {
    let Some(text) = name else { return Ok(None) };
    let name = consumer_name(text)?;
    let (journal, consumers) = (&daemon.journal, &daemon.consumers);
    let registration = consumers.register(&name, ConsumerStart::Oldest, journal.bounds(), wall_ms());
    registration.map_err(|e| consumer_error(e, text))?;
    Ok(Some(name))
}

/// Acknowledges the exits of these processes for a consumer: the answer contains them.
pub fn acknowledge<'a>(
    daemon: &Daemon,
    consumer: Option<&ConsumerName>,
    ended: impl Iterator<Item = &'a Arc<Proc>>,
) -> Result<(), RpcError> {
    let Some(name) = consumer else { return Ok(()) };
    for proc in ended {
        let acknowledged = completion::acknowledge_exit(proc, name, &daemon.consumers, &daemon.journal);
        acknowledged.map_err(|e| consumer_error(e, name.as_str()))?;
    }
    Ok(())
}

pub fn consumer_error(error: ConsumerError, name: &str) -> RpcError {
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
