//! Answers on their way to a consumer. Until one is written or lost it is not known if its exits are acknowledged, so
//! the consumer's next events wait for that.

use super::super::segment::lock_ignoring_poison;
use super::{ConsumerName, Consumers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The longest wait of a consumer for answers to its other calls. A client that does not read them gets the exits again.
const MAX_DELIVERY_WAIT: Duration = Duration::from_secs(1);

/// An answer for a consumer. It is on its way from `begin` until it is dropped.
#[derive(Debug)]
pub struct Delivery {
    pub consumers: Arc<Consumers>,
    pub name: ConsumerName,
    started: AtomicBool,
}

impl Delivery {
    pub fn new(consumers: Arc<Consumers>, name: ConsumerName) -> Delivery {
        Delivery { consumers, name, started: AtomicBool::new(false) }
    }

    /// Records that the answer is being written.
    pub fn begin(&self) {
        if !self.started.swap(true, Relaxed) {
            self.consumers.begin_delivery(&self.name);
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if *self.started.get_mut() {
            self.consumers.end_delivery(&self.name);
        }
    }
}

impl Consumers {
    fn begin_delivery(&self, name: &ConsumerName) {
        *lock_ignoring_poison(&self.deliveries).entry(name.clone()).or_default() += 1;
    }

    fn end_delivery(&self, name: &ConsumerName) {
        let mut deliveries = lock_ignoring_poison(&self.deliveries);
        if let Some(count) = deliveries.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                deliveries.remove(name);
            }
        }
        drop(deliveries);
        self.settled.notify_waiters();
    }

    /// Waits until no answer for the consumer is being written.
    pub async fn wait_deliveries(&self, name: &ConsumerName) {
        if !self.is_delivering(name) {
            return;
        }
        let settled = async {
            loop {
                let mut settled = std::pin::pin!(self.settled.notified());
                // Before the look: an end between the two is not missed.
                settled.as_mut().enable();
                if !self.is_delivering(name) {
                    return;
                }
                settled.await;
            }
        };
        let _ = tokio::time::timeout(MAX_DELIVERY_WAIT, settled).await;
    }

    fn is_delivering(&self, name: &ConsumerName) -> bool {
        lock_ignoring_poison(&self.deliveries).contains_key(name)
    }
}
