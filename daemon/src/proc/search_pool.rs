//! Runs searches in turns, on threads that no call waits for. Every search gets its next turn in the order in which they
//! asked, so a slow one delays another by a turn and not by itself.

use crate::clock::thread_cpu_ns;
use crate::disk;
use crate::matcher::Meter;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// The most steps of a search that runs on the caller's thread: a few milliseconds if all are taken.
const MAX_INLINE_STEPS: u64 = 1 << 20;
/// The computing time after which a turn ends.
pub const MAX_TURN_NS: u64 = 50_000_000;
/// The length after which a turn ends.
pub const MAX_TURN_BYTES: u64 = 1024 * 1024;

/// The places for searches that compute at the same time.
pub struct SearchPool {
    places: Semaphore,
    pub max_ms_per_mib: u64,
}

impl SearchPool {
    pub fn new(places: u64, max_ms_per_mib: u64) -> SearchPool {
        SearchPool { places: Semaphore::new(usize::try_from(places).unwrap_or(1)), max_ms_per_mib }
    }

    /// Returns the meter for a new search.
    pub fn meter(&self) -> Meter {
        Meter::new(self.max_ms_per_mib, thread_cpu_ns)
    }

    /// Returns the message for a pattern that was too slow.
    pub fn too_slow(&self) -> String {
        format!(
            "the regular expression is too slow: it took more than {} ms of computing time per MiB of output; \
             give a simpler one, with smaller or fewer repetitions",
            self.max_ms_per_mib
        )
    }

    /// Runs one turn. If the caller drops the future, `work` sees its argument set.
    pub async fn turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<AtomicBool>) -> T + Send + 'static,
    ) -> io::Result<T> {
        let _place = self.places.acquire().await.map_err(io::Error::other)?;
        let guard = CancelOnDrop(Arc::default());
        let cancelled = guard.0.clone();
        disk::blocking(move || work(cancelled)).await
    }
}

/// Returns true if a search of `bytes` at `cost` steps each is short enough for the caller's thread.
pub fn is_inline(bytes: u64, cost: u64) -> bool {
    bytes.saturating_mul(cost) <= MAX_INLINE_STEPS
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
