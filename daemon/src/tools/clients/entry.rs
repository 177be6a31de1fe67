//! A provider in the table: its registration, and its client while that is connected.

use super::link::ClientLink;
use super::publish::ProviderEvent;
use super::registration::ToolRegistration;
use crate::clock::wall_ms;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Semaphore;
use toold_proto::approval::Caller;
use toold_proto::event::ToolProvider;
use toold_proto::time::rfc3339;
use toold_proto::tools::{ProviderState, Tool, ToolProviderInfo, ToolState};

/// A provider of the table.
pub(super) struct ClientEntry {
    pub registration: Arc<ToolRegistration>,
    /// Grows with every connection that begins to serve a provider.
    pub generation: u64,
    /// The client that serves it, or served it last.
    pub client: Caller,
    pub state: ClientState,
    /// Calls that were sent to it and have no answer yet.
    pub in_flight: SentCalls,
    /// The turns of tools that are not parallel, by name.
    pub turns: HashMap<String, Arc<Semaphore>>,
    /// Answers of earlier connections that were ignored.
    pub ignored_before: u64,
}

/// The number of calls that a client has.
#[derive(Debug, Clone, Default)]
pub(super) struct SentCalls(Arc<AtomicU64>);

/// One of them. Dropped: it has ended.
pub(super) struct CountedCall(SentCalls);

impl SentCalls {
    pub fn enter(&self) -> CountedCall {
        self.0.fetch_add(1, Relaxed);
        CountedCall(self.clone())
    }

    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

pub(super) enum ClientState {
    Live(Arc<dyn ClientLink>),
    Gone { at_ms: u64 },
}

impl ClientEntry {
    pub fn live(&self) -> Option<&Arc<dyn ClientLink>> {
        match &self.state {
            ClientState::Live(link) => Some(link),
            ClientState::Gone { .. } => None,
        }
    }

    /// Records the end of the connection. Returns the event, the first time.
    pub fn end(&mut self) -> Option<ProviderEvent> {
        self.live()?;
        self.ignored_before = self.ignored_answers();
        self.state = ClientState::Gone { at_ms: wall_ms() };
        Some(self.event(ProviderState::Gone, self.why()))
    }

    pub fn ignored_answers(&self) -> u64 {
        self.ignored_before + self.live().map_or(0, |link| link.ignored_answers())
    }

    /// Returns the reason why its tools cannot be called.
    fn why(&self) -> Option<String> {
        match self.state {
            ClientState::Live(_) => None,
            ClientState::Gone { at_ms } => {
                let (client, at) = (describe(&self.client), rfc3339(at_ms));
                Some(format!("{client} disconnected at {at}; the tools are back when a client registers them"))
            }
        }
    }

    pub fn tools(&self) -> Vec<Arc<Tool>> {
        let tools = &self.registration.tools;
        let Some(why) = self.why() else { return tools.clone() };
        let gone = |tool: &Arc<Tool>| {
            let (state, why) = (ToolState::Unavailable, Some(why.clone()));
            Arc::new(Tool { state, why, ..(**tool).clone() })
        };
        tools.iter().map(gone).collect()
    }

    /// Returns the turn of a tool whose calls run one after the other.
    pub fn turn(&mut self, tool: &str) -> Arc<Semaphore> {
        // A client that registers other names again and again must not make it grow.
        self.turns.retain(|name, turn| name == tool || turn.available_permits() == 0);
        self.turns.entry(tool.into()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }

    pub fn event(&self, state: ProviderState, why: Option<String>) -> ProviderEvent {
        let ToolRegistration { provider, tools, session_key, .. } = &*self.registration;
        let fields = ToolProvider { provider: provider.clone(), state, tools: tools.len() as u64, why };
        ProviderEvent { fields, session_key: session_key.clone() }
    }

    pub fn info(&self) -> ToolProviderInfo {
        let state = if self.live().is_some() { ProviderState::Ready } else { ProviderState::Gone };
        ToolProviderInfo {
            provider: self.registration.provider.clone(),
            state,
            tools: self.registration.tools.len() as u64,
            session_key: self.registration.session_key.clone(),
            client: self.client.clone(),
            in_flight: self.in_flight.count(),
            ignored_answers: self.ignored_answers(),
        }
    }
}

/// Names a client for a person.
pub(super) fn describe(client: &Caller) -> String {
    match &client.program {
        Some(program) => format!("pid {} ({program})", client.pid),
        None => format!("pid {}", client.pid),
    }
}
