//! The deadline of an opening: the time in which a new connection must send its first whole request. A connection that
//! never finishes one would hold a place under `max_connections` for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;
use toold_proto::RpcError;

/// The bytes within one period that extend the deadline by another: a large first request on a slow line is not cut.
const MIN_PROGRESS_BYTES: usize = 64 * 1024;
/// A period longer than this never ends.
const MAX_PERIOD: Duration = Duration::from_secs(86_400 * 365);

/// The deadline of a connection that has not sent a whole request yet.
pub(super) struct OpeningDeadline {
    period: Duration,
    at: Instant,
    received: Arc<AtomicUsize>,
    /// The value of `received` at the last extension.
    counted: usize,
}

impl OpeningDeadline {
    pub fn new(first_byte_ms: u64) -> OpeningDeadline {
        let period = Duration::from_millis(first_byte_ms).min(MAX_PERIOD);
        OpeningDeadline { period, at: Instant::now() + period, received: Arc::default(), counted: 0 }
    }

    pub fn at(&self) -> Instant {
        self.at
    }

    /// Returns the counter of the bytes that the client has sent.
    pub fn received(&self) -> &Arc<AtomicUsize> {
        &self.received
    }

    /// Waits until the client is too slow. Cancel-safe.
    pub async fn passed(&mut self) {
        loop {
            tokio::time::sleep_until(self.at).await;
            if !self.extend() {
                return;
            }
        }
    }

    /// Adds a period if enough has come in the last one.
    fn extend(&mut self) -> bool {
        let received = self.received.load(Relaxed);
        let progressed = received - self.counted >= MIN_PROGRESS_BYTES;
        if progressed {
            self.counted = received;
            self.at += self.period;
        }
        progressed
    }

    pub fn error(&self) -> RpcError {
        let message = format!("no whole request came within {} ms", self.period.as_millis());
        RpcError::limit("first_byte_ms", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_request_in_progress_is_given_another_period_and_a_byte_at_a_time_is_not() {
        let mut deadline = OpeningDeadline::new(1000);
        let first = deadline.at();
        deadline.received().fetch_add(MIN_PROGRESS_BYTES, Relaxed);
        assert!(deadline.extend());
        assert_eq!(deadline.at() - first, Duration::from_secs(1));
        deadline.received().fetch_add(MIN_PROGRESS_BYTES - 1, Relaxed);
        assert!(!deadline.extend(), "what came before does not count twice");
    }

    #[test]
    fn the_largest_number_is_a_deadline() {
        assert!(OpeningDeadline::new(u64::MAX).at() > Instant::now());
    }
}
