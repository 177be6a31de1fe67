//! `signal`: sends one signal to a process's group, nothing more.

use super::Context;
use crate::args;
use crate::error::CliError;
use toold_proto::api;
use toold_proto::params;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// The signal by name or number: HUP, SIGHUP and 1 are the same
    #[arg(value_name = "SIG", value_parser = args::signal)]
    signal: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = params::SignalParams { id: args.id, signal: args.signal };
    cx.call_once::<api::Signal>(&params, |result, _| format!("{} sent {}\n", result.id, result.signal))
}
