//! `shutdown`: stop the daemon. Never starts one for that.

use super::Context;
use crate::blocking::CallError;
use crate::failure::Failure;
use crate::render;
use toold_proto::api;
use toold_proto::params;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also end every process
    #[arg(long)]
    kill: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    cx.link.refuse_autostart();
    let done = cx.once::<api::DaemonShutdown>(&params::Shutdown { kill: args.kill }, |result, look| {
        render::kill::kill(&result.killed, look) + "the daemon stops\n"
    });
    match done {
        Err(Failure::Call(CallError::Unreachable { path, .. })) => Err(Failure::NotRunning(path)),
        other => other,
    }
}
