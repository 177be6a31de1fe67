//! The request for a bell of the shim: one for all followers of a process. The shim rings once, above the lowest offset that was asked for.

use std::sync::atomic::{AtomicU64, Ordering};

/// The value without a request.
const NONE: u64 = u64::MAX;

/// Offsets beyond which followers wait for output.
#[derive(Debug)]
pub struct OutputRequest {
    /// The lowest one that the shim does not know yet.
    unsent: AtomicU64,
    /// The byte that the follower furthest ahead waits for, plus 1. 0: all got their bell.
    awaited: AtomicU64,
}

impl Default for OutputRequest {
    fn default() -> OutputRequest {
        OutputRequest { unsent: AtomicU64::new(NONE), awaited: AtomicU64::new(0) }
    }
}

impl OutputRequest {
    /// Asks for a bell when the output grows beyond `cursor`.
    pub fn add(&self, cursor: u64) {
        self.awaited.fetch_max(cursor.saturating_add(1), Ordering::AcqRel);
        self.unsent.fetch_min(cursor, Ordering::AcqRel);
    }

    /// Takes the offset that the shim is to get.
    pub fn take(&self) -> Option<u64> {
        let unsent = self.unsent.swap(NONE, Ordering::AcqRel);
        (unsent != NONE).then_some(unsent)
    }

    /// Notes that the shim rang with its output at `end`. Returns true if a follower waits for more than that: a lower offset was sent
    /// in its stead, and the shim has forgotten both.
    pub fn on_bell(&self, end: u64) -> bool {
        let awaited = self.awaited.load(Ordering::Acquire);
        if awaited > end {
            self.unsent.fetch_min(end, Ordering::AcqRel);
            return true;
        }
        // One that came meanwhile stays.
        let _ = self.awaited.compare_exchange(awaited, 0, Ordering::AcqRel, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bell_answers_all_that_wait_for_less() {
        let request = OutputRequest::default();
        assert_eq!(request.take(), None);
        request.add(50);
        request.add(20);
        assert_eq!((request.take(), request.take()), (Some(20), None));
        assert!(!request.on_bell(51));
        assert_eq!(request.take(), None);
        assert!(!request.on_bell(0), "a bell without a request");
    }

    /// The broken code sent the lower offset, got its bell at once, and never asked again for the other: its follower waited for ever.
    #[test]
    fn a_follower_that_is_ahead_of_another_gets_its_bell_too() {
        let request = OutputRequest::default();
        request.add(100);
        request.add(60);
        assert_eq!(request.take(), Some(60));
        assert!(request.on_bell(100), "the follower at 100 has all of this");
        assert_eq!(request.take(), Some(100));
        assert!(!request.on_bell(101));
        assert_eq!(request.take(), None);
    }
}
