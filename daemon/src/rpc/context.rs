//! The state that every verb works on.

use super::live_sessions::LiveSessions;
use crate::approvals::Approvals;
use crate::call_error::find_error;
use crate::events::{Consumers, Journal};
use crate::file_calls::FileCalls;
use crate::patch::Patches;
use crate::policy::Judge;
use crate::proc::Proc;
use crate::proc::listening_port::PortCache;
use crate::registry::Registry;
use crate::script::Scripts;
use crate::stage::Stages;
use crate::tools::clients::ClientProviders;
use crate::tools::direct::DirectCalls;
use crate::toolsets::Toolsets;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;
use tokio::sync::watch;
use toold_proto::RpcError;

/// The paths of the daemon.
#[derive(Debug, Clone)]
pub struct Paths {
    pub socket: PathBuf,
    pub state_dir: PathBuf,
    pub config: Option<PathBuf>,
}

pub struct Daemon {
    pub registry: Arc<Registry>,
    pub approvals: Arc<Approvals>,
    pub judge: Arc<Judge>,
    pub journal: Arc<Journal>,
    pub consumers: Arc<Consumers>,
    pub file_calls: Arc<FileCalls>,
    pub patches: Arc<Patches>,
    pub stages: Arc<Stages>,
    pub scripts: Arc<Scripts>,
    pub direct_calls: Arc<DirectCalls>,
    pub client_tools: Arc<ClientProviders>,
    pub toolsets: Arc<Toolsets>,
    pub paths: Paths,
    pub started_ms: u64,
    pub started: Instant,
    /// True: stop.
    pub stop: watch::Sender<bool>,
    pub ports: Arc<PortCache>,
    /// The sessions that have a client.
    pub sessions: Arc<LiveSessions>,
    /// Number of open connections, counted by the wire.
    pub connections: Arc<AtomicUsize>,
}

impl Daemon {
    pub fn find(&self, id: &str) -> Result<Arc<Proc>, RpcError> {
        self.find_by("id", id)
    }

    /// Finds the process that the parameter `param` names.
    pub fn find_by(&self, param: &str, text: &str) -> Result<Arc<Proc>, RpcError> {
        self.registry.find(text).map_err(|e| find_error(param, e))
    }
}
