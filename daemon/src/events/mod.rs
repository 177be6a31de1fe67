//! What happened, numbered and on disk, and how far each consumer has come. See `docs/events.md`.

pub mod consumers;
mod disk;
mod draft;
mod filter;
mod journal;
mod read;
mod record;
mod recover;
mod segment;
#[cfg(test)]
mod tests;
mod walk;

pub use consumers::{ConsumerError, ConsumerName, Consumers, Entered, Forgotten, Next, Start, View};
pub use draft::{Draft, Now};
pub use filter::Filter;
pub use journal::{Journal, Limits};
pub use read::{Batch, Entry, Limit};
pub use recover::Opened;

/// Numbers of events, both ends included.
pub type Range = std::ops::RangeInclusive<u64>;
