//! `close`: the end of a process's stdin.

use super::Context;
use crate::blocking::CallError;
use crate::error::{CliError, DONE};
use toold_proto::api;
use toold_proto::params;
use toold_proto::process::Stdin;
use toold_proto::{ErrorKind, RpcError};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let closed = cx.once::<api::Close>(&params::Close { id: args.id }, |result, _| {
        let what = match result.stdin {
            Stdin::Pty => "end of file typed",
            Stdin::Null | Stdin::Pipe | Stdin::Closed => "stdin closed",
        };
        format!("{} {what}\n", result.id)
    });
    match closed {
        // A program that has read all it wanted is faster than who closes its stdin: that is no failure.
        Err(CliError::Call(CallError::Rpc(error))) if !cx.json && is_closed(&error) => {
            cx.console.message(&format!("{}; there was nothing to close", error.message));
            Ok(DONE)
        }
        closed => closed,
    }
}

/// Whether the refusal says that its stdin is as it was to be. One that was started without stdin never had any.
fn is_closed(error: &RpcError) -> bool {
    match error.kind() {
        Some(ErrorKind::AlreadyExited) => true,
        Some(ErrorKind::StdinUnavailable) => !error.message.contains("without stdin"),
        // Every other refusal leaves it open, or is about something else.
        _ => false,
    }
}
