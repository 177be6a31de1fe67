//! Receipts: effects of an answer that wait until it was written to its client. A client that hung up before gets none of
//! them, so nothing is recorded as received that no client received.

use crate::disk::on_disk;
use std::sync::Arc;

/// An effect of the delivery of an answer, such as an acknowledgement in the client's name. Dropped without
/// `delivered`: the answer did not reach the client.
pub trait OnDelivery: Send + Sync {
    /// The answer is about to be written.
    fn begin(&self);

    /// The whole answer was written to a connection whose client has not closed it.
    fn delivered(&self);
}

/// The effect of one result.
pub type Receipt = Arc<dyn OnDelivery>;

/// The text of an answer, and what its delivery causes.
pub(crate) struct Answer {
    pub text: Box<str>,
    pub receipts: Vec<Receipt>,
}

impl From<Box<str>> for Answer {
    fn from(text: Box<str>) -> Answer {
        // Without receipts, as most answers are, this allocates nothing.
        Answer { text, receipts: Vec::new() }
    }
}

/// The receipts of the answers that are being written on one connection.
#[derive(Default)]
pub(crate) struct Undelivered(Vec<Receipt>);

impl Undelivered {
    pub fn begin(&mut self, receipts: Vec<Receipt>) {
        for receipt in receipts {
            receipt.begin();
            self.0.push(receipt);
        }
    }

    /// Everything since the last call is written. The effects follow in the background: they may wait for the disk, and
    /// other answers of the connection do not.
    pub fn delivered(&mut self) {
        if self.0.is_empty() {
            return;
        }
        let receipts = std::mem::take(&mut self.0);
        tokio::spawn(on_disk(async move { receipts.into_iter().for_each(|receipt| receipt.delivered()) }));
    }
}
