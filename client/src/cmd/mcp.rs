//! `mcp`: becomes the program `toolctl-mcp`, which serves MCP on stdio.

use super::Context;
use crate::error::CliError;
use crate::mcp_options::McpOptions;
use crate::sibling_program;

const NOTES: &str = "An MCP client starts this command and talks to it over stdin and stdout; logs go to stderr. The daemon is started at the \
first call of a tool, and what is started goes on when the client ends. docs/mcp-server.md has the tools and the set-up of agents.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    #[command(flatten)]
    options: McpOptions,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    sibling_program::become_program("toolctl-mcp", "mcp", args.options.to_args(), &cx.connection)
}
