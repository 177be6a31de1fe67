//! `toolctl mcp`: toold as an MCP server on stdio, in both eras of the protocol. Blocking, a thread for each call, on top of the
//! client library; it decides nothing, and what it starts outlives it.

mod approval;
mod arguments;
mod call;
mod carrier;
mod catalog;
mod client;
mod daemon_link;
mod dispatch;
mod flat_schema;
mod foreign_tools;
mod message;
mod output;
mod reply;
mod resources;
mod retry_key;
mod server;
mod subscriptions;
mod sys;
mod tasks;
mod tools;
mod view;
mod wake;

use clap::Parser;
use daemon_link::DaemonAddress;
use server::Server;
use std::path::PathBuf;
use std::process::ExitCode;
use toold_client::mcp_options::McpOptions;
use toold_proto::paths;

/// Serves agents over MCP, on stdin and stdout; `toolctl mcp` runs it
#[derive(Debug, Parser)]
#[command(name = "toolctl-mcp", version)]
struct CommandLine {
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The config file for a daemon that is started
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Fail when no daemon runs
    #[arg(long)]
    no_autostart: bool,
    #[command(flatten)]
    options: McpOptions,
}

/// Runs the program from its arguments to its exit code.
pub fn main() -> ExitCode {
    let line = CommandLine::parse();
    let address = DaemonAddress {
        socket: line.socket.unwrap_or_else(paths::socket),
        config: line.config,
        may_start: !line.no_autostart,
    };
    match Server::new(line.options, address).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolctl-mcp: {error}");
            ExitCode::FAILURE
        }
    }
}
