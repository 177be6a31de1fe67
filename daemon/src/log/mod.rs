//! The bytes a program wrote, addressed by offset.
//!
//! The shim appends (`writer`), the daemon reads (`reader`, `lines`, `grep`); between them are files whose format is a
//! promise (`format`, `docs/log-format.md`).

mod buffer_pool;
mod check;
mod counts;
pub mod format;
pub mod fuzz;
mod grep;
mod lines;
mod reader;
mod segments;
mod sys;
mod text;
mod walk;
mod writer;

pub use buffer_pool::BufferPool;
pub use check::check;
pub use counts::Counts;
pub use lines::{LinePage, LineQuery, MAX_PAGE_BYTES};
pub use reader::{Filled, Log, Page};
pub use sys::{Dir, Files, release};
pub use text::TextPage;
pub use writer::LogWriter;

#[cfg(test)]
mod tests;
