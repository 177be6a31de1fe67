//! MCP servers as providers of tools. A server is the process `mcp/NAME`; it does not notice that the daemon was killed, and a call
//! in flight is answered once.

mod backoff;
mod handshake;
mod invoke;
mod launch;
mod lines;
mod message;
mod provider;
mod publish;
mod result;
mod server;
mod session;
mod start;
mod state_file;
mod tool_list;
mod writer;

pub use server::McpServer;

use crate::config::mcp::McpStart;
use crate::events::Journal;
use crate::registry::Registry;
use crate::tools::provider::Provider;
use crate::tools::providers::ProviderSource;
use server::Shared;
use std::path::Path;
use std::sync::Arc;
use toold_format::slots::Cause;

/// The program that reaches servers by HTTP, beside `toold`.
const BRIDGE: &str = "toold-fetch";

/// All servers of the config.
pub struct McpServers {
    servers: Vec<Arc<McpServer>>,
    shared: Arc<Shared>,
}

impl McpServers {
    /// Makes the servers of the config. Nothing is read or started.
    pub fn new(registry: Arc<Registry>, journal: Arc<Journal>, state_dir: &Path) -> Arc<McpServers> {
        let beside = |program: std::path::PathBuf| program.parent().map(|dir| dir.join(BRIDGE));
        let bridge = std::env::current_exe().ok().and_then(beside).unwrap_or_else(|| BRIDGE.into());
        let max_answer_len = usize::try_from(registry.config.script.max_result_bytes).unwrap_or(usize::MAX);
        let shared = Arc::new(Shared { registry, journal, dir: state_dir.join("mcp"), bridge, max_answer_len });
        let config = &shared.registry.config.mcp;
        let servers =
            config.iter().map(|(name, config)| McpServer::new(name, config.clone(), shared.clone())).collect();
        Arc::new(McpServers { servers, shared })
    }

    pub fn all(&self) -> &[Arc<McpServer>] {
        &self.servers
    }

    pub fn get(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Continues with servers that run, ends those that the config does not have any more, and starts those that start with the daemon.
    pub fn start(&self) {
        for (name, proc) in launch::all(&self.shared.registry) {
            match self.get(&name).filter(|server| server.owns(&proc)) {
                Some(server) => {
                    let server = server.clone();
                    tokio::spawn(async move { server.session().await.map(drop) });
                }
                None => drop(tokio::spawn(async move { launch::end(&proc, Cause::Client).await })),
            }
        }
        for server in self.servers.iter().filter(|server| server.config.start == McpStart::Eager) {
            let server = server.clone();
            tokio::spawn(async move {
                if let Err(e) = server.session().await {
                    tracing::warn!(server = server.name, %e, "an MCP server does not start");
                }
            });
        }
    }
}

impl ProviderSource for McpServers {
    fn providers(&self, _: Option<&str>) -> Vec<Arc<dyn Provider>> {
        self.servers.iter().map(|server| server.clone() as Arc<dyn Provider>).collect()
    }

    fn has(&self, provider: &str) -> bool {
        self.get(provider).is_some()
    }
}
