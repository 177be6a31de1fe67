//! What happened, as clients get it: numbered, durable, flat.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

macro_rules! types {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $wire:literal;)*) => {
        /// What kind of thing happened. A code is frozen: it is on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EventType { $($(#[doc = $doc])+ $name,)* }

        impl EventType {
            pub const ALL: &[EventType] = &[$(EventType::$name),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(EventType::$name => $wire,)* }
            }

            /// The number on disk.
            pub fn code(self) -> u16 {
                match self { $(EventType::$name => $code,)* }
            }

            pub fn from_code(code: u16) -> Option<EventType> {
                match code {
                    $($code => Some(EventType::$name),)*
                    // A later version's.
                    _ => None,
                }
            }
        }
    };
}

types! {
    /// The program runs.
    Started = 1, "started";
    /// The program ended, or never ran.
    Exited = 2, "exited";
    /// Both output streams are at their end.
    Closed = 3, "closed";
    /// How it ended, and what it printed; for processes started with `notify`.
    Completion = 4, "completion";
    /// Lines matched a watch pattern.
    WatchMatch = 5, "watch_match";
    /// Watching ended: too much matched, again and again.
    WatchDisabled = 6, "watch_disabled";
    /// Too many matches over all processes: silence for a while.
    WatchOverflowTripped = 7, "watch_overflow_tripped";
    /// The silence is over.
    WatchOverflowReleased = 8, "watch_overflow_released";
    /// There is new output; for processes started with a heartbeat.
    Heartbeat = 9, "heartbeat";
    /// The program waits for somebody to type.
    NeedsInput = 10, "needs_input";
}

/// One event, as the text that is in the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub Box<RawValue>);

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.0.get() == other.0.get()
    }
}

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "The facts of its type stand flat beside these.",
            "properties": {
                "seq": { "type": "integer", "minimum": 1 },
                "at": { "type": "string", "format": "date-time" },
                "type": g.subschema_for::<EventType>(),
                "id": { "type": ["string", "null"] },
                "session_key": { "type": ["string", "null"] },
                "task_id": { "type": ["string", "null"] },
            },
            "required": ["seq", "at", "type", "id", "session_key", "task_id"],
        })
    }
}

/// Events `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeqRange {
    pub from: u64,
    pub to: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_one_name_and_one_code() {
        for kind in EventType::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a name"), kind.name());
            assert_eq!(EventType::from_code(kind.code()), Some(*kind));
        }
    }
}
