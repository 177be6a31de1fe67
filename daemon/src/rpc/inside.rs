//! Refuses clients that are processes of a job.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::Proc;
use crate::registry::{Inside, Registry, UnknownClient};
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

impl Daemon {
    /// Returns the script that a client is a process of. A process neither enters nor leaves the tree of another one, so a
    /// connection is looked at once.
    pub fn script_of(&self, peer: &Peer) -> Result<Option<Arc<Proc>>, RpcError> {
        if !self.registry.has_scripts() {
            return Ok(None);
        }
        let unknown = || error(&Inside::Unknown, "no call");
        let id = match peer.script.get() {
            Some(known) => *known,
            None => {
                let script = self.registry.script_of(peer.client()).map_err(|UnknownClient| unknown())?;
                *peer.script.get_or_init(|| script.map(|script| script.spec.id))
            }
        };
        // A script that is forgotten has no process any more.
        id.map(|id| self.registry.find(&id.to_string()).map_err(|_| unknown())).transpose()
    }

    /// Refuses a call that a script must not make: `what` is that call.
    pub fn refuse_script(&self, peer: &Peer, what: &'static str) -> Result<(), RpcError> {
        match self.script_of(peer)? {
            None => Ok(()),
            Some(script) => {
                let message = format!("{what} is denied: a script may not call it");
                let error = RpcError::new(ErrorKind::Denied, message).with("reason", "inside_script");
                Err(error.with("process", script.spec.id.to_string()))
            }
        }
    }

    /// Refuses a call of a method that the script of this client may not make.
    pub fn authorize(&self, peer: &Peer, method: &str) -> Result<(), RpcError> {
        match self.script_of(peer)? {
            None => Ok(()),
            Some(script) => self.scripts.authorize(&script, method),
        }
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
