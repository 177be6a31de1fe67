//! What an event can be about: its name on the wire, and the number it has on disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened. Names and numbers are promises: new ones are added, none is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// A program runs.
    Started,
    /// A program ended; descendants may still hold its streams.
    Exited,
    /// Both output streams are at their end.
    Closed,
    /// A process with `notify` ended: its exit and the end of its output.
    Completion,
    /// A watched pattern was seen.
    WatchMatch,
    /// A watch spoke too often and was ended.
    WatchDisabled,
    /// All watches together spoke too often: silence for a while.
    WatchOverflowTripped,
    /// The silence is over.
    WatchOverflowReleased,
    /// It still runs.
    Heartbeat,
    /// It seems to wait for somebody to type.
    NeedsInput,
}

impl EventType {
    /// Every type, in the order of their numbers.
    pub const ALL: [EventType; 10] = [
        EventType::Started,
        EventType::Exited,
        EventType::Closed,
        EventType::Completion,
        EventType::WatchMatch,
        EventType::WatchDisabled,
        EventType::WatchOverflowTripped,
        EventType::WatchOverflowReleased,
        EventType::Heartbeat,
        EventType::NeedsInput,
    ];

    /// As it is written on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EventType::Started => "started",
            EventType::Exited => "exited",
            EventType::Closed => "closed",
            EventType::Completion => "completion",
            EventType::WatchMatch => "watch_match",
            EventType::WatchDisabled => "watch_disabled",
            EventType::WatchOverflowTripped => "watch_overflow_tripped",
            EventType::WatchOverflowReleased => "watch_overflow_released",
            EventType::Heartbeat => "heartbeat",
            EventType::NeedsInput => "needs_input",
        }
    }

    /// As it is written on disk. Zero is nobody's.
    pub fn code(self) -> u16 {
        match self {
            EventType::Started => 1,
            EventType::Exited => 2,
            EventType::Closed => 3,
            EventType::Completion => 4,
            EventType::WatchMatch => 5,
            EventType::WatchDisabled => 6,
            EventType::WatchOverflowTripped => 7,
            EventType::WatchOverflowReleased => 8,
            EventType::Heartbeat => 9,
            EventType::NeedsInput => 10,
        }
    }

    /// None: a later version's.
    pub fn from_code(code: u16) -> Option<EventType> {
        EventType::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::EventType;

    #[test]
    fn a_type_reads_back_from_its_name_and_from_its_number() {
        for (i, kind) in EventType::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(kind).expect("a name"), kind.name());
            assert_eq!(usize::from(kind.code()), i + 1, "the numbers are frozen");
            assert_eq!(EventType::from_code(kind.code()), Some(kind));
        }
        assert_eq!((EventType::from_code(0), EventType::from_code(11)), (None, None));
    }
}
