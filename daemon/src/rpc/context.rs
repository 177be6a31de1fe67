//! What every verb works on.

use super::wire::Wire;
use crate::proc::Proc;
use crate::registry::Registry;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::watch;
use toold_proto::RpcError;

/// Where the daemon lives.
#[derive(Debug, Clone)]
pub struct Paths {
    pub socket: PathBuf,
    pub state_dir: PathBuf,
    pub config: Option<PathBuf>,
}

pub struct Daemon {
    pub registry: Arc<Registry>,
    pub paths: Paths,
    pub started_ms: u64,
    pub started: Instant,
    /// True: stop.
    pub stop: watch::Sender<bool>,
    /// Known once the socket is served.
    pub wire: OnceLock<Arc<Wire>>,
}

impl Daemon {
    pub fn find(&self, id: &str) -> Result<Arc<Proc>, RpcError> {
        self.registry.find("id", id)
    }
}
