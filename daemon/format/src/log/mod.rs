//! The log of a process on disk: file names, index records, and the writer. `docs/log-format.md` describes the bytes.

mod counts;
mod index;
mod sys;
mod writer;

pub use counts::Counts;
pub use index::{Header, Name, RECORD, Record, SPAN, SPAN_MS, parse_idx_name, parse_log_name};
pub use sys::{Dir, Files, release};
pub use writer::LogWriter;
