//! `events.subscribe`. A subscription is a cursor in the journal, and one in each log that it follows; no queue holds its
//! events. A slow subscriber catches up from the journal; it gets `lagged` only for events that retention removed.

use super::filter;
use super::output_push::OutputPush;
use crate::disk::on_disk;
use crate::events::{Filter, JournalEntry, ReadLimit};
use crate::proc::Proc;
use crate::rpc::context::Daemon;
use crate::rpc::register::{parse, wire_error};
use crate::rpc::wire::{Peer, PushBudget};
use jsonrpsee::types::Params;
use jsonrpsee::{Extensions, PendingSubscriptionSink, SubscriptionSink};
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use tokio::sync::SemaphorePermit;
use toold_proto::RpcError;
use toold_proto::event::{EventType, Lagged, LaggedOf, Push};
use toold_proto::params::EventsSubscribeParams;

/// The most that is read from the journal at a time.
const READ_LIMIT: ReadLimit = ReadLimit { events: 64, bytes: 256 * 1024, scan: 4096 };

/// The client has disconnected or unsubscribed.
#[derive(Debug)]
pub struct Disconnected;

pub async fn subscribe(
    params: Params<'static>,
    pending: PendingSubscriptionSink,
    daemon: Arc<Daemon>,
    extensions: Extensions,
) {
    let budget = extensions.get::<Arc<PushBudget>>().cloned().unwrap_or_default();
    let peer = extensions.get::<Arc<Peer>>().cloned().unwrap_or_default();
    let subscription = parse::<EventsSubscribeParams>(params.as_str()).and_then(|call| {
        let subscription = Subscription::new(&call, &daemon, peer.connection)?;
        daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
        Ok(subscription)
    });
    match subscription {
        Err(error) => pending.reject(wire_error(error)).await,
        Ok(mut subscription) => {
            if let Ok(sink) = pending.accept().await {
                // The answer goes out first: what follows may wait for the disk.
                tokio::task::yield_now().await;
                let Disconnected = on_disk(subscription.run(Pushes { sink, budget })).await;
            }
        }
    }
}

/// The way to a client: the queue of its connection, and the room in it.
pub struct Pushes {
    sink: SubscriptionSink,
    budget: Arc<PushBudget>,
}

impl Pushes {
    /// Waits for the turn of this subscription among those of its connection.
    pub async fn turn(&self) -> Result<SemaphorePermit<'_>, Disconnected> {
        tokio::select! {
            turn = self.budget.turn() => Ok(turn),
            () = self.sink.closed() => Err(Disconnected),
        }
    }

    /// Waits until more may be read. Only for the subscription whose turn it is.
    pub async fn room(&self) -> Result<(), Disconnected> {
        tokio::select! {
            () = self.budget.room() => Ok(()),
            () = self.sink.closed() => Err(Disconnected),
        }
    }

    pub fn is_full(&self) -> bool {
        self.sink.capacity() == 0 || self.budget.is_full()
    }

    async fn send_raw(&self, raw: Box<RawValue>) -> Result<(), Disconnected> {
        self.budget.add(raw.get().len());
        self.sink.send(raw).await.map_err(|_| Disconnected)
    }

    /// Sends a push that is not in the journal.
    pub async fn send(&self, push: &impl Push) -> Result<(), Disconnected> {
        self.send_raw(to_raw_value(&push.message()).map_err(|_| Disconnected)?).await
    }
}

struct Subscription {
    daemon: Arc<Daemon>,
    /// Has no types if output is pushed: starts and ends are needed then too. `types` selects what is sent.
    filter: Filter,
    types: Option<std::collections::BTreeSet<EventType>>,
    after: u64,
    output: Option<OutputPush>,
}

impl Subscription {
    fn new(call: &EventsSubscribeParams, daemon: &Arc<Daemon>, connection: u64) -> Result<Subscription, RpcError> {
        let journal = &daemon.journal;
        let mut filter = filter(daemon, &call.types, &call.session_key, &call.task_id, &call.id)?;
        let last = journal.last();
        if let Some(after) = call.after.filter(|after| *after > last) {
            return Err(RpcError::param("after", format!("is {after}, and the newest event is {last}")));
        }
        let types = filter.types.clone();
        let output = call.output.then(|| {
            filter.types = None;
            let config = &daemon.registry.config.events;
            OutputPush::new(call.ansi, config.lag_bytes, connection, last)
        });
        let mut subscription =
            Subscription { daemon: daemon.clone(), filter, types, after: call.after.unwrap_or(last), output };
        if let Some(mut output) = subscription.output.take() {
            let wanted = |proc: &Arc<Proc>| !proc.published_state().is_final() && subscription.wants(proc);
            for proc in daemon.registry.newest_first().into_iter().filter(wanted) {
                let end = proc.state().progress.counts.end;
                output.begin(proc, end);
            }
            subscription.output = Some(output);
        }
        Ok(subscription)
    }

    /// Returns true if the filter selects the process.
    fn wants(&self, proc: &Proc) -> bool {
        let (filter, spec) = (&self.filter, &proc.spec);
        filter.id.is_none_or(|id| id == spec.id)
            && filter.session_key.as_ref().is_none_or(|s| spec.session_key.as_ref() == Some(s))
            && filter.task_id.as_ref().is_none_or(|t| spec.task_id.as_ref() == Some(t))
    }

    async fn run(&mut self, pushes: Pushes) -> Disconnected {
        let daemon = self.daemon.clone();
        let mut updates = daemon.journal.subscribe();
        loop {
            updates.mark_unchanged();
            if self.catch_up(&pushes).await.is_err() {
                return Disconnected;
            }
            let output = async {
                match &mut self.output {
                    Some(output) => output.changed().await,
                    None => std::future::pending().await,
                }
            };
            let changed = tokio::select! {
                _ = updates.changed() => None,
                id = output => Some(id),
                () = pushes.sink.closed() => return Disconnected,
            };
            if let (Some(id), Some(output)) = (changed, &mut self.output)
                && output.push_in_turns(id, &pushes).await.is_err()
            {
                return Disconnected;
            }
        }
    }

    /// Pushes all events up to the end of the journal.
    async fn catch_up(&mut self, pushes: &Pushes) -> Result<(), Disconnected> {
        let daemon = self.daemon.clone();
        let journal = &daemon.journal;
        while self.after < journal.last() {
            let _turn = pushes.turn().await?;
            pushes.room().await?;
            let batch = match journal.read(self.after, &self.filter, READ_LIMIT) {
                Ok(batch) => batch,
                Err(e) => {
                    tracing::error!(%e, "read the journal for a subscriber");
                    return Err(Disconnected);
                }
            };
            for range in batch.missing {
                let (from, to) = range.into_inner();
                pushes.send(&Lagged { of: LaggedOf::Events, id: None, from, to }).await?;
            }
            for event in batch.events {
                self.push(event, pushes).await?;
            }
            if batch.scanned <= self.after {
                break;
            }
            self.after = batch.scanned;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Pushes one event. Before an end, pushes the output that came before it.
    async fn push(&mut self, event: JournalEntry, pushes: &Pushes) -> Result<(), Disconnected> {
        if let (Some(output), Some(id)) = (&mut self.output, event.id) {
            match event.kind {
                EventType::Started if output.is_new(event.seq) => {
                    if let Ok(proc) = self.daemon.find(&id.to_string()) {
                        output.begin(proc, 0);
                    }
                }
                EventType::Exited | EventType::Completion => while output.push_page(id, pushes).await? {},
                EventType::Closed => output.push_to_end(id, pushes).await?,
                // The other events do not concern output.
                _ => {}
            }
        }
        let wanted = self.types.as_ref().is_none_or(|types| types.contains(&event.kind));
        if wanted && !event.cancelled {
            pushes.send_raw(event.json).await?;
        }
        Ok(())
    }
}
