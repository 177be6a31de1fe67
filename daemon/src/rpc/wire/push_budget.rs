//! The bytes of pushes that wait for one connection. Its subscriptions read one after the other, each only when there is
//! room: a client that follows much and reads nothing costs a bounded amount of memory, however many subscriptions it has.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Above this many bytes in the queue nothing more is read for it.
const MAX_QUEUED_BYTES: usize = 1 << 20;

pub struct PushBudget {
    turn: Semaphore,
    queued: AtomicUsize,
    drained: Notify,
}

impl Default for PushBudget {
    fn default() -> PushBudget {
        PushBudget { turn: Semaphore::new(1), queued: AtomicUsize::new(0), drained: Notify::new() }
    }
}

impl PushBudget {
    /// Waits until no other subscription of the connection holds what it has read.
    pub async fn turn(&self) -> SemaphorePermit<'_> {
        self.turn.acquire().await.expect("the semaphore is never closed")
    }

    /// Waits until the queue has room.
    pub async fn room(&self) {
        while self.is_full() {
            let mut drained = std::pin::pin!(self.drained.notified());
            // Before the second look: a drain between the two is not missed.
            drained.as_mut().enable();
            if self.is_full() {
                drained.await;
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.queued.load(Relaxed) >= MAX_QUEUED_BYTES
    }

    /// Counts a push that is about to be queued.
    pub fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Relaxed);
    }

    /// Records that the connection took everything out of the queue.
    pub fn on_drained(&self) {
        if self.queued.swap(0, Relaxed) >= MAX_QUEUED_BYTES {
            self.drained.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_full_queue_is_waited_for_and_one_subscription_reads_at_a_time() {
        let budget = PushBudget::default();
        budget.add(MAX_QUEUED_BYTES - 1);
        assert!(budget.room().now_or_never().is_some());
        budget.add(1);
        let mut waiting = std::pin::pin!(budget.room());
        assert!(waiting.as_mut().now_or_never().is_none());
        budget.on_drained();
        waiting.await;
        let turn = budget.turn().await;
        assert!(budget.turn().now_or_never().is_none());
        drop(turn);
        assert!(budget.turn().now_or_never().is_some());
    }
}
