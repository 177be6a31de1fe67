//! The event journal on disk, and the position of each consumer. See `docs/events.md`.

pub mod consumers;
pub mod disk;
mod filter;
pub mod fuzz;
mod journal;
pub mod maintenance;
mod manifest;
mod new_event;
mod newest_state;
mod read;
mod record;
mod record_reader;
mod recover;
mod segment;
#[cfg(test)]
mod tests;

pub use consumers::{
    ConsumerError, ConsumerName, ConsumerView, Consumers, Delivery, ExitMark, Expired, NextEvents, NextQuery,
    Registration,
};
pub use disk::{can_pass, open_regular, quarantine_path};
pub use filter::Filter;
pub use journal::{Journal, JournalLimits, SeqBounds};
pub use new_event::{EventTime, NewEvent};
pub use read::{EventBatch, JournalEntry, ReadLimit};
pub use recover::RecoveryReport;

/// A range of event numbers, both ends included.
pub type SeqSpan = std::ops::RangeInclusive<u64>;
