//! The verbs `events.*`, a file each, and the parameters that they share: consumer names and filters.

pub mod ack;
pub mod next;
mod output_push;
pub mod subscribe;

use super::context::Daemon;
use super::wire::{OnDelivery, Receipt};
use crate::clock::retention_ms;
use crate::events::{ConsumerError, ConsumerName, Delivery, Filter};
use crate::proc::Proc;
use crate::proc::exit_delivery::ExitDelivery;
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
    let registration = consumers.register(&name, ConsumerStart::Oldest, journal.bounds(), retention_ms());
    registration.map_err(|e| consumer_error(e, text))?;
    Ok(Some(name))
}

/// Returns the receipt that acknowledges the exits of these processes for a consumer: the answer contains them.
pub fn exit_receipt<'a>(
    daemon: &Daemon,
    consumer: Option<ConsumerName>,
    ended: impl Iterator<Item = &'a Arc<Proc>>,
) -> Option<Receipt> {
    let ended: Vec<Arc<Proc>> = consumer.is_some().then(|| ended.cloned().collect())?;
    let delivery = Delivery::new(daemon.consumers.clone(), consumer?);
    let delivery = ExitDelivery::new(delivery, daemon.journal.clone(), ended)?;
    Some(Arc::new(delivery))
}

impl OnDelivery for ExitDelivery {
    fn begin(&self) {
        ExitDelivery::begin(self);
    }

    fn delivered(&self) {
        self.acknowledge();
    }
}

/// The delivery of the fact that a consumer had expired.
struct ExpiryDelivery(Delivery);

impl OnDelivery for ExpiryDelivery {
    fn begin(&self) {
        self.0.begin();
    }

    fn delivered(&self) {
        self.0.consumers.forget_expiry(&self.0.name);
    }
}

/// Returns the receipt that records that a consumer was informed of its expiry.
pub fn expiry_receipt(daemon: &Daemon, name: &ConsumerName) -> Receipt {
    Arc::new(ExpiryDelivery(Delivery::new(daemon.consumers.clone(), name.clone())))
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
