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
    /// Read TOML on stdin and print it as JSON: for `toolctl integrate`, which has no parser
    #[arg(long, hide = true)]
    read_toml: bool,
    #[command(flatten)]
    options: McpOptions,
}

fn read_toml() -> ExitCode {
    let text = std::io::read_to_string(std::io::stdin()).map_err(|e| e.to_string());
    let parsed = text.and_then(|text| {
        toml::from_str::<serde_json::Value>(&text).map_err(|e: toml::de::Error| e.message().to_owned())
    });
    match parsed {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the program from its arguments to its exit code.
pub fn main() -> ExitCode {
    let line = CommandLine::parse();
    if line.read_toml {
        return read_toml();
    }
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
