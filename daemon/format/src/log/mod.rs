//! The log of a process on disk: file names, index records, and the writer. `docs/log-format.md` describes the bytes.

mod counts;
mod index;
mod plan;
mod sums;
mod sys;
mod writer;

pub use counts::Counts;
pub use index::{
    IndexHeader, IndexRecord, MAX_SPAN_LEN, MAX_SPAN_MS, RECORD_LEN, SegmentName, parse_idx_name, parse_log_name,
};
pub use sums::{LogSums, SegmentSums, crc32};
pub use sys::{Dir, Files, release_reserved};
pub use writer::LogWriter;
