//! Refuses clients that are processes of a job.

use super::context::Daemon;
use super::wire::Peer;
use crate::registry::{Inside, Registry};
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError};

/// Returns the reason why a new client must not make any call: it is inside a sandbox.
pub fn refuse_sandboxed(registry: &Arc<Registry>, peer: &Peer) -> Option<RpcError> {
    let inside = registry.sandboxed_client(peer.client())?;
    registry.report_refused(&inside, peer.client(), "connect");
    Some(error(&inside, "no call"))
}

impl Daemon {
    /// Refuses a call that a process of a job must not make: `what` is that call.
    pub fn refuse_inside(&self, peer: &Peer, what: &'static str) -> Result<(), RpcError> {
        let inside = self.registry.inside(peer.client());
        if matches!(inside, Inside::No) {
            return Ok(());
        }
        self.registry.report_refused(&inside, peer.client(), what);
        Err(error(&inside, what))
    }
}

fn error(inside: &Inside, what: &str) -> RpcError {
    let (reason, place) = match inside {
        Inside::Sandbox(_) => ("inside_sandbox", "it comes from a process inside a sandbox"),
        Inside::Job(_) => ("inside_job", "it comes from a process of a job, and a person has to decide"),
        Inside::No | Inside::Unknown => {
            ("unknown_client", "the process that connected has ended, so it is not known who calls")
        }
    };
    let message = if what == "no call" { format!("denied: {place}") } else { format!("{what} is denied: {place}") };
    let error = RpcError::new(ErrorKind::Denied, message).with("reason", reason);
    match inside {
        Inside::Job(Some(proc)) | Inside::Sandbox(Some(proc)) => error.with("process", proc.spec.id.to_string()),
        Inside::Job(None) | Inside::Sandbox(None) | Inside::No | Inside::Unknown => error,
    }
}
