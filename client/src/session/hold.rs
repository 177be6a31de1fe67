//! `run` prints all that its program wrote: the daemon holds the program back for it. What is missing all the same is reported.

use super::{Request, Role, Session};
use crate::error::{CliError, INCOMPLETE};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::process::Process;
use toold_proto::{ErrorKind, RpcError};

/// Reports whether the daemon does not know the parameter `hold`.
pub(super) fn is_unknown(error: &RpcError) -> bool {
    error.kind() == Some(ErrorKind::InvalidParams) && error.data["param"] == "hold"
}

impl Session<'_, '_> {
    /// Starts the process with a daemon that knows no hold.
    pub(super) fn start_without_hold(&mut self) -> Result<(), CliError> {
        self.message("the daemon is of an earlier version: output beyond its log_max_bytes may be dropped");
        self.options.exec.hold = false;
        let exec = self.options.exec.clone();
        self.ask::<api::Exec>(Request::Exec, &exec, Duration::ZERO)
    }

    /// Takes the hold again while our output is not ready. The daemon that knew us is gone, and without one the program is held
    /// back for a bounded time only.
    pub(super) fn take_hold_again(&mut self) {
        // What it sent before is read first.
        let Err(lost) = self.cx.connection.fill() else { return };
        self.events.cancel(Request::Signal);
        let params = params::PollParams {
            id: self.id(),
            cursor: Some(self.progress.cursor),
            max_bytes: Some(1),
            hold: true,
            ..Default::default()
        };
        let taken = self.events.reconnect(&mut self.cx.connection, lost);
        match taken.and_then(|()| self.ask::<api::Poll>(Request::Hold, &params, Duration::ZERO)) {
            Ok(()) => self.disconnected = true,
            // The next poll tries again, and reports it.
            Err(_) => self.cx.connection.disconnect(),
        }
    }

    /// Reports output that the program wrote and we could not print. A reader of ours must not take it for all.
    pub(super) fn report_missing(&mut self, process: &Process) -> Option<u8> {
        let missing = self.progress.missing();
        if missing == 0 || self.options.role == Role::Attached {
            return None;
        }
        let why = match process.unstored_bytes {
            0 => "they were not kept",
            _ => "the disk did not take them",
        };
        let line = format!(
            "the output of {} is incomplete: {missing} of its {} bytes are missing; {why}",
            process.id, process.bytes
        );
        self.cx.console.message(&line);
        Some(INCOMPLETE)
    }
}
