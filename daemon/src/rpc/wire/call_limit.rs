//! How many calls are under way. A call holds its slot until its answer is in the outgoing buffer,
//! so the slots also bound the answers that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Slots beyond the limit for calls that end things. Whoever has 256 waits open must still be able to kill.
pub(crate) const EXTRA: usize = 64;
/// Calls of all connections, also of those that are gone: a call outlives its client, so a
/// client that calls and hangs up in a loop is bounded only here.
const EVERYWHERE: usize = 65_536;

/// The slots of one connection.
pub(crate) struct Slots {
    limit: usize,
    here: AtomicUsize,
    urgent: AtomicUsize,
    everywhere: Arc<AtomicUsize>,
}

/// The right to run one call.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    urgent: bool,
}

impl Slots {
    pub fn new(limit: usize, everywhere: Arc<AtomicUsize>) -> Arc<Slots> {
        Arc::new(Slots { limit, here: AtomicUsize::new(0), urgent: AtomicUsize::new(0), everywhere })
    }

    /// A slot for a call of `method`, unless too many are taken.
    pub fn take(self: &Arc<Slots>, method: &str) -> Option<Slot> {
        let urgent = is_urgent(method);
        let extra = if urgent { EXTRA } else { 0 };
        // Taken first and given back by the drop, so that two at once cannot both pass.
        let here = self.here.fetch_add(1, Relaxed);
        let everywhere = self.everywhere.fetch_add(1, Relaxed);
        self.urgent.fetch_add(usize::from(urgent), Relaxed);
        let slot = Slot { slots: self.clone(), urgent };
        (here < self.limit + extra && everywhere < EVERYWHERE + extra).then_some(slot)
    }

    /// Whether no call is under way and no answer waits.
    pub fn is_idle(&self) -> bool {
        self.here.load(Relaxed) == 0
    }

    /// Whether a call that ends things is under way.
    pub fn has_urgent(&self) -> bool {
        self.urgent.load(Relaxed) > 0
    }
}

/// Methods that end things, or say how things are.
fn is_urgent(method: &str) -> bool {
    matches!(method, "kill" | "signal" | "daemon.info" | "daemon.shutdown" | "session.end")
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.here.fetch_sub(1, Relaxed);
        self.slots.everywhere.fetch_sub(1, Relaxed);
        self.slots.urgent.fetch_sub(usize::from(self.urgent), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_connection_still_kills_and_a_slot_comes_back() {
        let slots = Slots::new(2, Arc::default());
        let mut held: Vec<Slot> = (0..2).map(|_| slots.take("wait").expect("free")).collect();
        assert!(slots.take("wait").is_none() && !slots.has_urgent());
        held.extend((0..EXTRA).map(|_| slots.take("kill").expect("extra")));
        assert!(slots.take("kill").is_none() && slots.has_urgent());
        held.clear();
        assert!(slots.is_idle() && slots.take("wait").is_some());
    }
}
