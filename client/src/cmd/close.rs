//! `close`: closes a process's stdin.

use super::Context;
use crate::blocking::CallError;
use crate::error::{CliError, DONE};
use crate::error_text;
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
    let closed = cx.call_once::<api::Close>(&params::CloseParams { id: args.id }, |result, _| {
        let what = match result.stdin {
            Stdin::Pty => "end of file typed",
            Stdin::Null | Stdin::Pipe | Stdin::Closed => "stdin closed",
        };
        format!("{} {what}\n", result.id)
    });
    match closed {
        // A program may have read all it wanted, and closed its stdin or ended, before this call: that is not a failure.
        Err(CliError::Call(CallError::Rpc(error))) if !cx.json && is_closed(&error) => {
            cx.console.message(&format!("{}; there was nothing to close", error_text::describe(&error)));
            Ok(DONE)
        }
        closed => closed,
    }
}

/// Reports whether the stdin is closed already. A process that was started without stdin never had one.
fn is_closed(error: &RpcError) -> bool {
    match error.kind() {
        Some(ErrorKind::AlreadyExited) => true,
        Some(ErrorKind::StdinUnavailable) => error.data.get("reason").is_some_and(|reason| reason == "closed"),
        // Every other error leaves it open, or is about something else.
        _ => false,
    }
}
