//! A call that runs in this daemon: its callers wait for it, and may end it.

use super::journal::CallOutcome;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};
use toold_proto::{ErrorKind, RpcError};

/// A call that runs.
#[derive(Clone)]
pub struct Running {
    pub done: watch::Receiver<Option<Arc<CallOutcome>>>,
    pub cancel: Arc<Cancel>,
}

/// The request to end a call, and its reason.
#[derive(Default)]
pub struct Cancel {
    pub notify: Notify,
    reason: Mutex<Option<RpcError>>,
}

impl Cancel {
    /// Asks for the end of the call.
    pub fn request(&self, reason: RpcError) {
        if let Ok(mut place) = self.reason.lock() {
            place.get_or_insert(reason);
        }
        self.notify.notify_one();
    }

    /// Returns the reason for the end.
    pub fn reason(&self) -> RpcError {
        let reason = self.reason.lock().ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| RpcError::new(ErrorKind::Cancelled, "the call was cancelled"))
    }
}
