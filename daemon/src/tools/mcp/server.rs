//! One server: its running process, if there is one, the list of its tools, and the limits on its starts.

use super::backoff::{Backoff, StartVerdict};
use super::handshake::{self, HandshakeError};
use super::launch;
use super::session::Session;
use super::state_file::{self, Era, SavedServer};
use super::tool_list::{self, ServerTool};
use crate::clock::wall_ms;
use crate::config::mcp::McpConfig;
use crate::events::Journal;
use crate::proc::Proc;
use crate::registry::Registry;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use toold_proto::tools::{Tool, ToolState};
use toold_proto::{ErrorKind, RpcError};

/// The values that all servers share.
pub struct Shared {
    pub registry: Arc<Registry>,
    pub journal: Arc<Journal>,
    /// The directory of the files of servers.
    pub dir: PathBuf,
    /// The program that reaches servers by HTTP.
    pub bridge: PathBuf,
    /// The longest answer, in bytes.
    pub max_answer_len: usize,
}

pub type Started = Option<Result<Arc<Session>, RpcError>>;

/// The running process of a server.
pub enum Slot {
    Down,
    Starting(watch::Receiver<Started>),
    Up(Arc<Session>),
}

pub struct ServerState {
    pub slot: Slot,
    /// The content of the file, once that was read.
    pub saved: SavedServer,
    is_loaded: bool,
    pub backoff: Backoff,
    /// The reason why the last start failed.
    pub trouble: Option<String>,
    /// The tools as they are listed, with the readiness that they have.
    listed: Option<Listed>,
}

/// A list of tools, and the readiness for which it was made.
type Listed = ((ToolState, Option<String>), Vec<Arc<Tool>>);

/// One server.
pub struct McpServer {
    pub name: String,
    pub config: McpConfig,
    pub shared: Arc<Shared>,
    digest: u64,
    state: Mutex<ServerState>,
    pub(super) tools_changed: Notify,
    /// Enough was read since the position in the log was recorded.
    pub(super) checkpoint_due: Notify,
    /// Number of lists that this daemon asked for.
    lists: AtomicU64,
    /// The time at which this object was made, for ids that no earlier daemon used.
    made_ms: u64,
}

impl ServerState {
    /// Returns the readiness of the tools, and the reason if they are not ready.
    fn readiness(&self) -> (ToolState, Option<String>) {
        match (&self.slot, self.backoff.verdict(Instant::now())) {
            (Slot::Up(session), _) if session.is_open() => (ToolState::Ready, None),
            (_, StartVerdict::Refused { why, .. }) => (ToolState::Unavailable, Some(why)),
            _ => (ToolState::Starting, None),
        }
    }
}

impl McpServer {
    pub fn new(name: &str, config: McpConfig, shared: Arc<Shared>) -> Arc<McpServer> {
        let digest = launch::digest(&config, &shared.bridge);
        let state = ServerState {
            slot: Slot::Down,
            saved: SavedServer::default(),
            is_loaded: false,
            backoff: Backoff::default(),
            trouble: None,
            listed: None,
        };
        Arc::new(McpServer {
            name: name.into(),
            config,
            shared,
            digest,
            state: Mutex::new(state),
            tools_changed: Notify::new(),
            checkpoint_due: Notify::new(),
            lists: AtomicU64::new(0),
            made_ms: wall_ms(),
        })
    }

    /// Locks the state, never across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn file(&self) -> PathBuf {
        self.shared.dir.join(format!("{}.json", self.name))
    }

    /// Returns true if a running process is this server with its config of now.
    pub fn owns(&self, proc: &Proc) -> bool {
        launch::is_of(proc, self.digest)
    }

    /// Locks the state after the file was read, at the first use.
    pub(super) fn loaded(&self) -> MutexGuard<'_, ServerState> {
        let mut state = self.state();
        if !state.is_loaded {
            state.is_loaded = true;
            state.saved = match state_file::read::<SavedServer>(&self.file()) {
                Ok(saved) => saved.filter(|saved| saved.config == self.digest).unwrap_or_default(),
                Err(e) => {
                    let what = format!("mcp/{}.json: {e}; the server is asked for its tools again", self.name);
                    self.shared.registry.report_damage(what);
                    SavedServer::default()
                }
            };
            state.saved.config = self.digest;
        }
        state
    }

    /// Changes what is known of the server, and its file.
    pub(super) fn save(&self, change: impl FnOnce(&mut SavedServer)) {
        let mut state = self.loaded();
        change(&mut state.saved);
        state.listed = None;
        // Under the lock: a later state must not be replaced by an earlier one.
        if let Err(e) = state_file::write(&self.file(), &state.saved) {
            tracing::warn!(server = self.name, %e, "failed to store the tools of an MCP server");
        }
    }

    /// Returns the tools that can be called.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        let mut state = self.loaded();
        let readiness = state.readiness();
        if let Some((_, tools)) = state.listed.as_ref().filter(|(made_for, _)| *made_for == readiness) {
            return tools.clone();
        }
        let listed = state.saved.tools.as_deref().unwrap_or_default();
        let tools = tool_list::to_tools(&self.name, &self.config, listed, readiness.0, readiness.1.as_deref());
        let tools: Vec<Arc<Tool>> = tools.into_iter().map(Arc::new).collect();
        state.listed = Some((readiness, tools.clone()));
        tools
    }

    /// Returns the reason why the last start failed.
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Returns true if the tools were listed, by this daemon or an earlier one.
    pub fn knows_tools(&self) -> bool {
        self.loaded().saved.tools.is_some()
    }

    /// Returns a tool that can be called.
    pub fn find_tool(&self, name: &str) -> Option<ServerTool> {
        if !tool_list::is_allowed(&self.config, name) {
            return None;
        }
        self.loaded().saved.tools.iter().flatten().find(|tool| tool.name == name).cloned()
    }

    pub fn era(&self) -> Option<Era> {
        self.loaded().saved.era.clone()
    }

    /// Notes that a call was answered.
    pub fn succeeded(&self) {
        self.state().backoff.succeeded();
    }

    /// Returns the running server if there is one.
    pub fn running(&self) -> Option<Arc<Session>> {
        match &self.state().slot {
            Slot::Up(session) => Some(session.clone()),
            Slot::Down | Slot::Starting(_) => None,
        }
    }

    pub(super) async fn list(
        &self,
        session: &Arc<Session>,
        era: &Era,
        deadline: Instant,
    ) -> Result<Vec<ServerTool>, HandshakeError> {
        let id = format!("toold-list/{:x}-{}", self.made_ms, self.lists.fetch_add(1, Relaxed));
        let list = handshake::list_tools(session, era, &id, deadline).await?;
        for why in &list.refused {
            tracing::warn!(server = self.name, why, "left out a tool of an MCP server");
        }
        let overridden = self.config.effect_override.keys();
        for name in overridden.chain(self.config.tools.iter().flatten()) {
            if !list.tools.iter().any(|tool| tool.name == *name) {
                tracing::warn!(
                    server = self.name,
                    tool = name,
                    "the config names a tool that the MCP server does not list"
                );
            }
        }
        Ok(list.tools)
    }

    /// Lists the tools again.
    pub async fn list_again(&self, session: &Arc<Session>) -> Result<(), RpcError> {
        let Some(era) = self.era() else { return Ok(()) };
        let deadline = Instant::now() + Duration::from_millis(self.config.start_timeout_ms);
        match self.list(session, &era, deadline).await {
            Ok(tools) => {
                self.save(|saved| saved.tools = Some(tools));
                Ok(())
            }
            Err(error) => {
                let message = self.failure(&session.proc, error);
                Err(RpcError::new(ErrorKind::Unavailable, message).with("server", self.name.as_str()))
            }
        }
    }

    pub(super) fn failure(&self, proc: &Proc, error: HandshakeError) -> String {
        let printed = launch::printed(proc);
        let what = match error {
            HandshakeError::Ended { .. } => "ended before it answered".to_string(),
            HandshakeError::Timeout(what) => {
                format!("did not answer {what} within {} ms", self.config.start_timeout_ms)
            }
            HandshakeError::Refused(why) => format!("cannot be used: {why}"),
        };
        format!("the MCP server mcp/{} {what}; {printed} (log: {})", self.name, proc.spec.id)
    }

    /// Records the position in the log up to which everything was read.
    pub(super) fn checkpoint(&self) {
        if let Some(session) = self.running() {
            let (id, cursor) = (session.proc.spec.id, session.position());
            self.save(|saved| {
                if let Some(process) = saved.process.as_mut().filter(|process| process.id == id) {
                    process.cursor = cursor;
                }
            });
        }
    }
}
