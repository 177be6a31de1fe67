//! The end of a long walk: its time is over, or no call waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Asked at every step of a walk.
#[derive(Debug, Clone)]
pub struct Stop {
    cancelled: Arc<AtomicBool>,
    deadline: Instant,
}

/// Cancels a walk when it is dropped: with the call that waits for it.
pub struct CancelOnDrop(Arc<AtomicBool>);

impl Stop {
    pub fn at(deadline: Instant) -> (Stop, CancelOnDrop) {
        let cancelled = Arc::new(AtomicBool::new(false));
        (Stop { cancelled: cancelled.clone(), deadline }, CancelOnDrop(cancelled))
    }

    pub fn is_reached(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
