//! What happened, numbered and on disk, and how far each consumer has come. See `docs/events.md`.

pub mod consumers;
mod disk;
mod filter;
mod journal;
pub mod maintenance;
mod new_event;
mod read;
mod record;
mod record_reader;
mod recover;
mod segment;
#[cfg(test)]
mod tests;

pub use consumers::{ConsumerError, ConsumerName, Consumers, Entered, Forgotten, Next, Start, View};
pub use filter::Filter;
pub use journal::{Journal, Limits};
pub use new_event::{Draft, Now};
pub use read::{Batch, Entry, Limit};
pub use recover::Opened;

/// Numbers of events, both ends included.
pub type Range = std::ops::RangeInclusive<u64>;
