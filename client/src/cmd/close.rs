//! `close`: the end of a process's stdin.

use super::Context;
use crate::failure::Failure;
use toold_proto::api;
use toold_proto::params;
use toold_proto::process::Stdin;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    cx.once::<api::Close>(&params::Close { id: args.id }, |result, _| {
        let what = match result.stdin {
            Stdin::Pty => "end of file typed",
            Stdin::Null | Stdin::Pipe | Stdin::Closed => "stdin closed",
        };
        format!("{} {what}\n", result.id)
    })
}
