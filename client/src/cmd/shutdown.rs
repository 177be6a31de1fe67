//! `shutdown`: stops the daemon. Never starts one for that.

use super::Context;
use super::kill::DEFAULT_GRACE_MS;
use crate::blocking::CallError;
use crate::error::CliError;
use crate::render;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kill every process too
    #[arg(long)]
    kill: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.connection.refuse_autostart();
    if args.kill {
        cx.connection.expect_wait(Duration::from_millis(DEFAULT_GRACE_MS));
    }
    let done = cx.call_once::<api::DaemonShutdown>(&params::ShutdownParams { kill: args.kill }, |result, style| {
        render::kill::kill(&result.killed, style) + "the daemon stops\n"
    });
    match done {
        Err(CliError::Call(CallError::Unreachable { path, .. })) => Err(CliError::NotRunning(path)),
        other => other,
    }
}
