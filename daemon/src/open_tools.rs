//! Makes the dispatcher of tools with its providers, the scripts above it, and the toolsets above both.

use crate::approvals::Approvals;
use crate::events::Journal;
use crate::file_calls::FileCalls;
use crate::patch::Patches;
use crate::policy::Judge;
use crate::script::Scripts;
use crate::tools::call_events::CallEvents;
use crate::tools::clients::{ClientProviders, ClientSource};
use crate::tools::direct::DirectCalls;
use crate::tools::dispatcher::Dispatcher;
use crate::tools::mcp::McpServers;
use crate::tools::native::Native;
use crate::tools::providers::Providers;
use crate::tools::verdict::Verdicts;
use crate::toolsets::Toolsets;
use std::path::Path;
use std::sync::Arc;

/// The parts of the daemon that run calls of tools.
pub struct Tools {
    pub scripts: Arc<Scripts>,
    pub direct_calls: Arc<DirectCalls>,
    pub client_tools: Arc<ClientProviders>,
    pub toolsets: Arc<Toolsets>,
}

/// The parts of the daemon that tools use.
pub struct ToolParts<'a> {
    pub approvals: &'a Arc<Approvals>,
    pub judge: &'a Arc<Judge>,
    pub patches: &'a Arc<Patches>,
    pub file_calls: &'a Arc<FileCalls>,
    pub journal: &'a Arc<Journal>,
    pub state_dir: &'a Path,
    pub socket: &'a Path,
}

/// Makes them. Nothing starts and no file is read before the first use, but for MCP servers that run or are to start now.
pub fn open_tools(parts: &ToolParts<'_>) -> Tools {
    let ToolParts { approvals, judge, patches, file_calls, journal, state_dir, socket } = *parts;
    let config = &approvals.registry.config;
    let providers: Arc<Providers> = Arc::default();
    let native = Native::new(approvals.clone(), judge.clone(), patches.clone(), file_calls.clone());
    let client_tools = ClientProviders::start(config, journal.clone());
    let mcp = McpServers::new(approvals.registry.clone(), journal.clone(), state_dir);
    mcp.start();
    providers.set(native.clone(), vec![mcp, Arc::new(ClientSource(client_tools.clone()))]);
    let verdicts = Arc::new(Verdicts::new(approvals.clone(), judge.clone()));
    let script_tools = config.script.tools.clone();
    let call_events = Arc::new(CallEvents::new(&approvals.registry));
    let call_timeout_ms = Some(config.script.call_timeout_ms).filter(|ms| *ms > 0);
    let providers_of_calls = providers.clone();
    let dispatcher = Dispatcher { providers: providers_of_calls, script_tools, call_timeout_ms, verdicts, call_events };
    let dispatcher = Arc::new(dispatcher);
    let runtime_dir = socket.parent().unwrap_or(Path::new("/"));
    let scripts = Scripts::new(approvals.clone(), judge.clone(), patches.clone(), dispatcher, runtime_dir);
    let direct_calls = Arc::new(DirectCalls::new(state_dir, config));
    let toolsets = Toolsets::new(native, scripts.clone());
    providers.set_toolsets(toolsets.providers());
    Tools { scripts, direct_calls, client_tools, toolsets }
}
