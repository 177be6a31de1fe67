//! Exits in an answer to a consumer: acknowledged for it once the answer is written.

use super::Proc;
use super::completion::acknowledge_exit;
use crate::events::{Delivery, Journal};
use std::sync::Arc;

/// The exits of one answer. Dropped without `acknowledge`, they are not acknowledged: their events come again.
pub struct ExitDelivery {
    delivery: Delivery,
    journal: Arc<Journal>,
    ended: Vec<Arc<Proc>>,
}

impl ExitDelivery {
    /// Returns None if no process has ended.
    pub fn new(delivery: Delivery, journal: Arc<Journal>, ended: Vec<Arc<Proc>>) -> Option<ExitDelivery> {
        (!ended.is_empty()).then_some(ExitDelivery { delivery, journal, ended })
    }

    /// Records that the answer is being written.
    pub fn begin(&self) {
        self.delivery.begin();
    }

    /// Acknowledges the exits. A failure is only logged: the answer is written, and the events come again.
    pub fn acknowledge(&self) {
        let Delivery { name, consumers, .. } = &self.delivery;
        for proc in &self.ended {
            if let Err(e) = acknowledge_exit(proc, name, consumers, &self.journal) {
                tracing::warn!(consumer = %name, id = %proc.spec.id, %e, "failed to acknowledge an exit");
            }
        }
    }
}
