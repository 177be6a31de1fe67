//! One write of the log's writer: bytes, and the index records that go before them. Pure.

use super::counts::Counts;
use super::index::{IndexRecord, MAX_SPAN_LEN, MAX_SPAN_MS, RECORD_LEN};
use crate::Stream;

/// The number of records written at once: enough for a chunk of half a megabyte.
pub const MAX_BATCH_RECORDS: usize = 8;

/// Bytes to append in one write, and the index records that go before them.
pub struct AppendPlan {
    pub records: [u8; RECORD_LEN * (MAX_BATCH_RECORDS + 1)],
    pub records_len: usize,
    /// The number of bytes to append.
    pub len: usize,
    pub last_record: Option<LastRecord>,
    pub counts: Counts,
}

/// The last record of a segment.
#[derive(Debug, Clone, Copy)]
pub struct LastRecord {
    pub start: u64,
    pub time_ms: u64,
    pub stream: Stream,
}

impl AppendPlan {
    pub fn is_full(&self) -> bool {
        self.records_len + RECORD_LEN > self.records.len()
    }

    pub fn push(&mut self, record: [u8; RECORD_LEN]) {
        if let Some(slot) = self.records.get_mut(self.records_len..self.records_len + RECORD_LEN) {
            slot.copy_from_slice(&record);
            self.records_len += RECORD_LEN;
        }
    }
}

impl LastRecord {
    pub fn covers(&self, at: u64, stream: Stream, now_ms: u64) -> bool {
        // A clock that was set back counts like one that advanced: the recorded time stays within the span.
        self.stream == stream && at - self.start < MAX_SPAN_LEN && now_ms.abs_diff(self.time_ms) < MAX_SPAN_MS
    }

    pub fn record(&self, counts: &Counts) -> IndexRecord {
        IndexRecord {
            start: self.start,
            out_newlines: counts.out_newlines,
            err_newlines: counts.err_newlines,
            time_ms: self.time_ms,
            stream: self.stream,
            out_open: counts.out_open,
            err_open: counts.err_open,
        }
    }
}
