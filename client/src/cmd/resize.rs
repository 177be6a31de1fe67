//! `resize`: sets the size of a process's terminal.

use super::Context;
use crate::args;
use crate::error::CliError;
use toold_proto::api;
use toold_proto::params;
use toold_proto::pty::PtySize;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// The new size, as in 24x80
    #[arg(value_name = "ROWSxCOLS", value_parser = args::window)]
    size: PtySize,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = params::ResizeParams { id: args.id, rows: args.size.rows, cols: args.size.cols };
    cx.call_once::<api::Resize>(&params, |result, _| format!("{} is {}x{}\n", result.id, result.rows, result.cols))
}
