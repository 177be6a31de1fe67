//! Providers that are clients: a connection registers tools and is sent their calls. The table of them, in memory only: the
//! connection is the registration. `call` runs a call, `link` is the way to the client.

mod answer;
mod call;
mod entry;
pub mod link;
mod provider;
mod publish;
mod registration;
#[cfg(test)]
mod tests;

pub use publish::ProviderEvent;
pub use registration::RegistrationRules;

use super::provider::Provider;
use super::providers::ProviderSource;
use crate::clock::wall_ms;
use crate::config::Config;
use crate::events::Journal;
use entry::{ClientEntry, ClientState, SentCalls};
use futures_util::FutureExt;
use link::ClientLink;
use provider::ClientProvider;
use registration::ToolRegistration;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use toold_proto::approval::Caller;
use toold_proto::tools::{
    ProviderState, TOOLS_REPLACED, Tool, ToolProviderInfo, ToolsRegisterParams, ToolsRegisterResult,
    ToolsReplacedParams, ToolsUnregisterResult,
};
use toold_proto::{ErrorKind, RpcError};

/// Providers that are listed, those that have gone included. Each holds definitions of at most 1 MiB.
const MAX_PROVIDERS: usize = 64;
/// The time in which the end of a connection is noticed. A client that reconnects at once may be faster.
const CLOSE_GRACE: Duration = Duration::from_millis(200);
/// Events that wait for the disk before registrations wait too.
const MAX_QUEUED_EVENTS: usize = 64;

/// All clients that serve tools. One per daemon.
pub struct ClientProviders {
    rules: RegistrationRules,
    table: Mutex<Table>,
    /// Counts the changes of the table, and wakes the calls that wait for one.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    by_name: BTreeMap<String, ClientEntry>,
    last_generation: u64,
    /// The events that are not published yet, in order. At most `MAX_QUEUED_EVENTS`, and one per provider that goes.
    events: VecDeque<ProviderEvent>,
}

/// A provider whose client is connected.
struct LiveProvider {
    registration: Arc<ToolRegistration>,
    generation: u64,
    link: Arc<dyn ClientLink>,
    in_flight: SentCalls,
}

impl ClientProviders {
    pub fn new(rules: RegistrationRules) -> Arc<ClientProviders> {
        let (changes, _) = watch::channel(0);
        Arc::new(ClientProviders { rules, table: Mutex::default(), changes })
    }

    /// Makes the table of a daemon, and publishes its events.
    pub fn start(config: &Config, journal: Arc<Journal>) -> Arc<ClientProviders> {
        let rules = RegistrationRules {
            mcp_servers: config.mcp.keys().cloned().collect(),
            max_key_bytes: config.exec.max_key_bytes,
        };
        let providers = ClientProviders::new(rules);
        tokio::spawn(providers.clone().publish_events(journal));
        providers
    }

    /// Returns the providers whose tools a call of this session may use, by name. Those that have gone are among them.
    pub fn visible_to(self: &Arc<Self>, session_key: Option<&str>) -> Vec<Arc<dyn Provider>> {
        let table = self.lock();
        let visible = table.by_name.iter().filter(|(_, entry)| entry.registration.is_visible_to(session_key));
        visible.map(|(name, _)| self.expect(name, session_key)).collect()
    }

    /// Returns the provider of this name, as calls of a session see it, also if it is not registered: calls wait for its client.
    pub fn expect(self: &Arc<Self>, name: &str, session_key: Option<&str>) -> Arc<dyn Provider> {
        Arc::new(ClientProvider::new(self.clone(), name, session_key))
    }

    /// Describes all providers, by name.
    pub fn info(&self) -> Vec<ToolProviderInfo> {
        self.lock().by_name.values().map(ClientEntry::info).collect()
    }

    /// Has the client behind `link` serve tools.
    pub async fn register(
        self: &Arc<Self>,
        params: ToolsRegisterParams,
        link: Arc<dyn ClientLink>,
    ) -> Result<ToolsRegisterResult, RpcError> {
        let registration = Arc::new(ToolRegistration::new(params, &self.rules)?);
        let caller = link.caller();
        self.event_room().await;
        let mut entered = self.enter(&registration, &link, &caller);
        if entered.as_ref().is_err_and(|error| error.kind() == Some(ErrorKind::AlreadyExists)) {
            let _ = tokio::time::timeout(CLOSE_GRACE, self.until_gone(&registration.provider)).await;
            entered = self.enter(&registration, &link, &caller);
        }
        let replaced = entered?;
        let has_replaced = replaced.is_some();
        if let Some(old) = replaced {
            let params = ToolsReplacedParams { provider: registration.provider.clone(), by: caller };
            tokio::spawn(old.notify(TOOLS_REPLACED, serde_json::to_value(params).unwrap_or_default()));
        }
        Ok(ToolsRegisterResult {
            provider: registration.provider.clone(),
            tools: names(&registration.tools),
            replaced: has_replaced,
        })
    }

    /// Enters a registration into the table. Returns the link from which it was taken.
    fn enter(
        self: &Arc<Self>,
        registration: &Arc<ToolRegistration>,
        link: &Arc<dyn ClientLink>,
        caller: &Caller,
    ) -> Result<Option<Arc<dyn ClientLink>>, RpcError> {
        let name = &registration.provider;
        let mut table = self.lock();
        let mut replaced = None;
        let mut ignored_before = 0;
        if let Some(entry) = table.by_name.get_mut(name) {
            let live = entry.live().filter(|old| old.closed().now_or_never().is_none()).cloned();
            match live {
                Some(old) if old.connection() == link.connection() => {
                    entry.registration = registration.clone();
                    let event = entry.event(ProviderState::Ready, None);
                    table.events.push_back(event);
                    self.on_change();
                    return Ok(None);
                }
                Some(_) if !registration.takeover => return Err(in_use(name, &entry.client)),
                Some(old) => replaced = Some(old),
                None => {}
            }
            ignored_before = entry.ignored_answers();
            if replaced.is_some() {
                let why = format!("pid {} serves it now", caller.pid);
                let event = entry.event(ProviderState::Replaced, Some(why));
                table.events.push_back(event);
            }
        } else {
            table.make_room()?;
        }
        table.last_generation += 1;
        let generation = table.last_generation;
        let entry = ClientEntry {
            registration: registration.clone(),
            generation,
            client: caller.clone(),
            state: ClientState::Live(link.clone()),
            in_flight: SentCalls::default(),
            turns: HashMap::new(),
            ignored_before,
        };
        table.events.push_back(entry.event(ProviderState::Ready, None));
        table.by_name.insert(name.clone(), entry);
        link.accept_answers();
        self.on_change();
        drop(table);
        tokio::spawn(self.clone().watch_link(name.clone(), generation, link.clone()));
        Ok(replaced)
    }

    /// Removes a provider of this connection, or one that has gone.
    pub async fn unregister(&self, provider: &str, connection: u64) -> Result<ToolsUnregisterResult, RpcError> {
        self.event_room().await;
        let mut table = self.lock();
        let Some(entry) = table.by_name.get(provider) else { return Err(not_registered(provider)) };
        if entry.live().is_some_and(|link| link.connection() != connection) {
            return Err(of_another(provider, &entry.client));
        }
        let (tools, ended) = (names(&entry.registration.tools), entry.in_flight.count());
        let event = entry.event(ProviderState::Removed, Some("it was unregistered".into()));
        table.events.push_back(event);
        table.by_name.remove(provider);
        self.on_change();
        Ok(ToolsUnregisterResult { tools, ended })
    }

    /// Removes the providers that have been gone for a time. One that calls may still wait for stays.
    pub fn forget_gone(&self, age_ms: u64) {
        let now = wall_ms();
        let mut table = self.lock();
        let is_over = |entry: &ClientEntry| match entry.state {
            ClientState::Live(_) => false,
            ClientState::Gone { at_ms } => {
                let gone_ms = now.saturating_sub(at_ms);
                gone_ms >= age_ms && u128::from(gone_ms) >= entry.registration.reconnect.as_millis()
            }
        };
        let over: Vec<String> =
            table.by_name.iter().filter(|(_, entry)| is_over(entry)).map(|(name, _)| name.clone()).collect();
        for name in over {
            if let Some(entry) = table.by_name.remove(&name) {
                table.events.push_back(entry.event(ProviderState::Removed, Some("it was forgotten".into())));
            }
        }
        self.on_change();
    }

    /// Waits until the connection of a provider ends, or the provider is another one.
    async fn watch_link(self: Arc<Self>, name: String, generation: u64, link: Arc<dyn ClientLink>) {
        tokio::select! {
            () = link.closed() => self.on_closed(&name, generation),
            () = self.left(&name, generation) => {}
        }
    }

    /// Records that the connection of a provider has ended.
    fn on_closed(&self, name: &str, generation: u64) {
        let mut table = self.lock();
        let Some(entry) = table.by_name.get_mut(name).filter(|entry| entry.generation == generation) else { return };
        if let Some(event) = entry.end() {
            tracing::debug!(provider = name, pid = entry.client.pid, "the client of tools has gone");
            table.events.push_back(event);
            self.on_change();
        }
    }

    /// Returns when the provider is no longer that of this generation: it has gone, was replaced or removed.
    async fn left(&self, name: &str, generation: u64) {
        let mut changes = self.changes.subscribe();
        let is_live = || {
            let table = self.lock();
            table.by_name.get(name).is_some_and(|entry| entry.generation == generation && entry.live().is_some())
        };
        while is_live() {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Returns a provider whose client is connected, if a call of this session may use its tools.
    fn live(&self, name: &str, session_key: Option<&str>) -> Option<LiveProvider> {
        let table = self.lock();
        let entry = table.by_name.get(name).filter(|entry| entry.registration.is_visible_to(session_key))?;
        let link = entry.live()?.clone();
        let (registration, in_flight) = (entry.registration.clone(), entry.in_flight.clone());
        Some(LiveProvider { registration, generation: entry.generation, link, in_flight })
    }

    /// Waits until the provider of this name has no connection.
    async fn until_gone(&self, name: &str) {
        let generation = self.lock().by_name.get(name).map(|entry| entry.generation);
        if let Some(generation) = generation {
            self.left(name, generation).await;
        }
    }

    /// Waits until a provider is connected.
    async fn until_live(&self, name: &str, session_key: Option<&str>) -> LiveProvider {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(live) = self.live(name, session_key) {
                return live;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    fn registration(&self, name: &str) -> Option<Arc<ToolRegistration>> {
        self.lock().by_name.get(name).map(|entry| entry.registration.clone())
    }

    /// Returns the tools of a provider that calls of this session may use, with their state.
    fn tools(&self, name: &str, session_key: Option<&str>) -> Vec<Arc<Tool>> {
        let table = self.lock();
        let entry = table.by_name.get(name).filter(|entry| entry.registration.is_visible_to(session_key));
        entry.map(ClientEntry::tools).unwrap_or_default()
    }

    /// Returns the turn of a tool whose calls run one after the other. None: the provider is another one now.
    fn turn(&self, name: &str, generation: u64, tool: &str) -> Option<Arc<Semaphore>> {
        let mut table = self.lock();
        table.by_name.get_mut(name).filter(|entry| entry.generation == generation).map(|entry| entry.turn(tool))
    }

    /// Waits until few events wait for the disk.
    async fn event_room(&self) {
        let mut changes = self.changes.subscribe();
        while self.lock().events.len() >= MAX_QUEUED_EVENTS {
            let _ = changes.changed().await;
        }
    }

    /// Wakes what waits for a change. The caller holds the table, so that none is missed.
    fn on_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clients, as the dispatcher finds them.
pub struct ClientSource(pub Arc<ClientProviders>);

impl ProviderSource for ClientSource {
    fn providers(&self, session_key: Option<&str>) -> Vec<Arc<dyn Provider>> {
        self.0.visible_to(session_key)
    }

    fn has(&self, provider: &str) -> bool {
        self.0.registration(provider).is_some()
    }

    fn expect(&self, provider: &str, session_key: Option<&str>) -> Option<Arc<dyn Provider>> {
        Some(self.0.expect(provider, session_key))
    }
}

impl Table {
    /// Makes room for one more provider: the one that has gone first is forgotten.
    fn make_room(&mut self) -> Result<(), RpcError> {
        if self.by_name.len() < MAX_PROVIDERS {
            return Ok(());
        }
        let gone = self.by_name.iter().filter(|(_, entry)| entry.live().is_none());
        let Some(oldest) = gone.min_by_key(|(_, entry)| entry.generation).map(|(name, _)| name.clone()) else {
            let message = format!("{MAX_PROVIDERS} clients serve tools already; unregister one");
            return Err(RpcError::new(ErrorKind::Limit, message).with("limit", "tool_providers"));
        };
        if let Some(entry) = self.by_name.remove(&oldest) {
            let why = "it had gone, and others needed its place".to_string();
            self.events.push_back(entry.event(ProviderState::Removed, Some(why)));
        }
        Ok(())
    }
}

fn names(tools: &[Arc<Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}

fn client_json(client: &Caller) -> serde_json::Value {
    serde_json::to_value(client).unwrap_or_default()
}

fn in_use(provider: &str, client: &Caller) -> RpcError {
    let message = format!(
        "the provider {provider:?} is served by {}; give another name, or `takeover` to replace it",
        entry::describe(client)
    );
    RpcError::new(ErrorKind::AlreadyExists, message).with("provider", provider).with("client", client_json(client))
}

fn not_registered(provider: &str) -> RpcError {
    let shown: String = provider.chars().take(100).collect();
    let message = format!("no client serves tools as {shown:?}; `daemon.info` lists those that do");
    RpcError::new(ErrorKind::NotFound, message).with("provider", shown)
}

fn of_another(provider: &str, client: &Caller) -> RpcError {
    let message = format!(
        "the provider {provider:?} is served by {}, and only that connection can remove it; `tools.register` with \
         `takeover` replaces it",
        entry::describe(client)
    );
    RpcError::new(ErrorKind::Denied, message)
        .with("reason", "other_connection")
        .with("provider", provider)
        .with("client", client_json(client))
}
