//! Reads the bytes that a program wrote, addressed by offset.
//!
//! The shim appends (`toold_format::log::LogWriter`), the daemon reads (`reader`, `lines`, `grep`); between them are files
//! whose format is stable (`toold_format::log`, `docs/log-format.md`).

mod buffer_pool;
mod cached;
mod check;
pub mod fuzz;
mod grep;
mod lines;
mod reader;
mod segments;
mod stream;
mod text;
mod verify;
mod walk;

pub use buffer_pool::BufferPool;
pub use cached::cached_only;
pub use check::{check, check_whole};
pub use grep::Grep;
pub use lines::{LinePage, LineQuery, MAX_PAGE_BYTES};
pub use reader::{Filled, Log, Page};
pub use stream::{from_wire, to_wire};
pub use text::TextPage;
pub use verify::{Writer, verify};

#[cfg(test)]
mod tests;
