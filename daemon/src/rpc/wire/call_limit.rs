//! Limits the calls in flight. A call holds its permit until its answer is in the outgoing buffer, so the limit also
//! bounds the answers that wait.

use super::cancel::Cancellation;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Permits beyond the limit for urgent methods. A client with 256 open waits must still be able to kill.
pub(crate) const URGENT_EXTRA_CALLS: usize = 64;
/// The most calls of all connections, closed ones included. A call with an effect outlives its client, so only this bounds
/// a client that calls and hangs up in a loop.
pub(crate) const MAX_GLOBAL_CALLS: usize = 65_536;

/// The calls in flight of one connection, and of all connections.
pub(crate) struct CallLimit {
    limit: usize,
    connection: AtomicUsize,
    urgent: AtomicUsize,
    global: Arc<AtomicUsize>,
}

/// The right to run one call. Dropped: given back.
pub(crate) struct CallPermit {
    limit: Arc<CallLimit>,
    urgent: bool,
    ends_with_client: bool,
    cancellation: Option<Cancellation>,
}

impl CallLimit {
    pub fn new(limit: usize, global: Arc<AtomicUsize>) -> Arc<CallLimit> {
        Arc::new(CallLimit { limit, connection: AtomicUsize::new(0), urgent: AtomicUsize::new(0), global })
    }

    /// Returns a permit for a call of `method`. None: the limit is reached.
    pub fn acquire(self: &Arc<CallLimit>, method: &str) -> Option<CallPermit> {
        let urgent = is_urgent(method);
        let extra = if urgent { URGENT_EXTRA_CALLS } else { 0 };
        // Counted first and given back by the drop, so that two concurrent calls cannot both pass.
        let connection = self.connection.fetch_add(1, Relaxed);
        let global = self.global.fetch_add(1, Relaxed);
        self.urgent.fetch_add(usize::from(urgent), Relaxed);
        let (ends_with_client, cancellation) = (is_only_answer(method), Cancellation::of(method));
        let slot = CallPermit { limit: self.clone(), urgent, ends_with_client, cancellation };
        (connection < self.limit.saturating_add(extra) && global < MAX_GLOBAL_CALLS + extra).then_some(slot)
    }

    /// Returns true if no call is in flight and no answer waits.
    pub fn is_idle(&self) -> bool {
        self.connection.load(Relaxed) == 0
    }

    /// Returns true if a call of an urgent method is in flight.
    pub fn has_urgent(&self) -> bool {
        self.urgent.load(Relaxed) > 0
    }
}

/// Returns true for methods that end processes or the daemon, and for the status of the daemon.
fn is_urgent(method: &str) -> bool {
    matches!(
        method,
        "kill" | "signal" | "daemon.info" | "daemon.shutdown" | "session.end" | "kernel.interrupt" | "kernel.close"
    )
}

/// Returns true for methods whose only effect is their answer. Without a client, their work is for nothing.
fn is_only_answer(method: &str) -> bool {
    matches!(
        method,
        "poll"
            | "log"
            | "wait"
            | "list"
            | "inspect"
            | "session.active"
            | "daemon.info"
            | "rpc.discover"
            | "kernel.next"
            | "kernel.stopping"
    )
}

impl CallPermit {
    /// Returns true if the call ends when its client hangs up.
    pub fn ends_with_client(&self) -> bool {
        self.ends_with_client
    }

    /// Returns the way in which the call is cancelled. None: it is not.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.cancellation
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.limit.connection.fetch_sub(1, Relaxed);
        self.limit.global.fetch_sub(1, Relaxed);
        self.limit.urgent.fetch_sub(usize::from(self.urgent), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_connection_still_kills_and_a_permit_comes_back() {
        let limit = CallLimit::new(2, Arc::default());
        let mut held: Vec<CallPermit> = (0..2).map(|_| limit.acquire("wait").expect("free")).collect();
        assert!(limit.acquire("wait").is_none() && !limit.has_urgent());
        held.extend((0..URGENT_EXTRA_CALLS).map(|_| limit.acquire("kill").expect("extra")));
        assert!(limit.acquire("kill").is_none() && limit.has_urgent());
        held.clear();
        assert!(limit.is_idle() && limit.acquire("wait").is_some());
    }
}
