//! Events and pushes: their types, fields and schemas. The journal that stores events is the daemon's.
//!
//! An event is one flat JSON object. It begins with the common fields `COMMON_FIELDS`, and the fields of its type follow.
//! `list` declares every type once.

mod declare;
#[cfg(test)]
mod docs;
mod list;
mod schema;

pub use list::{
    ApprovalDecided, ApprovalRequested, Closed, Completion, Denial, Denied, EVENTS, EventBody, EventType, Exited,
    GrantAdded, GrantRevoked, Heartbeat, InsideRefused, Lagged, NeedsInput, Output, PatchApplied, PatchReverted,
    PolicyLoaded, ProtectedCreated, RestartGaveUp, SandboxGap, ScriptCall, ScriptFinished, ScriptNote, ScriptStarted,
    StageReady, Started, ToolProvider, WatchDisabled, WatchMatch, WatchOverflowReleased, WatchOverflowTripped,
};
pub use schema::{COMMON_FIELDS, Event, Notification};

use crate::process::{Failure, Reason};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The fields of an event that the journal stores.
pub trait EventFields: fmt::Debug {
    fn event_type(&self) -> EventType;

    /// Appends `,"name":value` for every field to the text of an event that has its common fields already.
    fn write_fields(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

/// Appends the fields of a struct as `EventFields::write_fields` does: as an object whose opening brace becomes a comma
/// and whose closing brace is left out. No intermediate `Value` is made: this is on the path of every `exec`.
fn append_fields(fields: &impl Serialize, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let start = out.len();
    serde_json::to_writer(&mut *out, fields)?;
    debug_assert!(out[start..].len() > 2, "an event has at least one field of its own");
    out[start] = b',';
    out.pop();
    Ok(())
}

/// A message for subscribers that is not an event: it has no number, and the journal does not store it.
pub trait Push: Serialize {
    /// The value of `type`.
    const NAME: &'static str;

    /// Returns the whole message: `type`, then the fields.
    fn message(&self) -> PushMessage<'_, Self> {
        PushMessage { name: Self::NAME, fields: self }
    }
}

/// A push as it is sent.
#[derive(Debug, Serialize)]
pub struct PushMessage<'a, P: ?Sized> {
    #[serde(rename = "type")]
    name: &'static str,
    #[serde(flatten)]
    fields: &'a P,
}

/// An event or push type as data, for the discovery document, the docs, and tests over all of them.
pub struct EventDescription {
    pub name: &'static str,
    pub doc: &'static str,
    /// The type's number on disk. None for a push.
    pub code: Option<u16>,
    /// An example of the type's fields, as JSON.
    pub example: &'static str,
    /// The schema of the type's fields.
    pub fields: fn(&mut SchemaGenerator) -> Schema,
}

/// The end of a process, as `exited` and `completion` report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The process's name.
    pub name: Option<String>,
    /// The command line, at most 2000 characters of it.
    pub command: String,
    /// The program's exit code; 128+n after signal n. Null if unknown.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<String>,
    /// The cause of the end.
    pub reason: Option<Reason>,
    /// The caller, the limit or the timeout that ended it, if toold did.
    pub killed_by: Option<String>,
    /// Milliseconds from the start to the exit.
    pub duration_ms: u64,
    /// Matching lines that no `watch_match` reported. Only with a watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub suppressed: Option<u64>,
    /// Bytes that the log dropped before the watch scanned them. Only with a watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub unseen_bytes: Option<u64>,
    /// The reason why the program never ran, or why its end was not observed. Only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Failure")]
    pub failure: Option<Failure>,
}

/// The output of a process up to its exit, as `completion` reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputSummary {
    /// The last 2000 characters, without escape sequences.
    pub output: String,
    /// The file with the first bytes of output. Null if there is none.
    pub output_path: Option<String>,
    /// Bytes written up to the exit.
    pub bytes: u64,
    /// Lines written up to the exit.
    pub lines: u64,
    /// SHA-256 of all these bytes, in hex. Null if the log does not hold all of them.
    pub sha256: Option<String>,
    /// Bytes that the log dropped: the middle beyond `log_max_bytes`.
    pub dropped_bytes: u64,
    /// Bytes that could not be written to disk.
    pub unstored_bytes: u64,
}

/// The sequence of which a subscriber missed a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaggedOf {
    /// `from` and `to` are event numbers, both missed.
    Events,
    /// `from` and `to` are cursors in the output of the process `id`.
    Output,
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
    use serde_json::{Map, Value};

    #[test]
    fn every_type_has_one_name_and_one_code() {
        for kind in EventType::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a name"), kind.name());
            assert_eq!(EventType::from_code(kind.code()), Some(*kind));
        }
        let listed: Vec<(&str, u16)> = EVENTS.iter().filter_map(|e| Some((e.name, e.code?))).collect();
        assert_eq!(listed, EventType::ALL.iter().map(|kind| (kind.name(), kind.code())).collect::<Vec<_>>());
    }

    #[test]
    fn every_example_reads_as_its_type_and_prints_as_the_same_text() {
        for event in EVENTS {
            let mut object: Map<String, Value> = serde_json::from_str(event.example).expect("an example is an object");
            object.insert("type".into(), event.name.into());
            object.insert("a_later_field".into(), 1.into());
            let body = EventBody::read(&object).expect("an example has all fields");
            assert_eq!((body.name(), body.text().as_str()), (event.name, event.example));
            assert!(
                object
                    .keys()
                    .all(|key| key == "type" || !COMMON_FIELDS.contains(&key.as_str()) || event.code.is_none())
            );
        }
    }

    #[test]
    fn an_unknown_type_and_an_event_without_its_fields_do_not_read() {
        let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).expect("an object");
        assert_eq!(EventBody::read(&object(r#"{"type":"moved","to":"host"}"#)), None);
        assert_eq!(EventBody::read(&object(r#"{"type":"started","pid":1}"#)), None);
        assert_eq!(EventBody::read(&object(r#"{"pid":1}"#)), None);
    }

    #[test]
    fn fields_follow_the_common_ones_and_a_push_begins_with_its_type() {
        let mut text = br#"{"seq":1"#.to_vec();
        let closed = Closed { name: None, bytes: 16, lines: 2 };
        closed.write_fields(&mut text).expect("it prints");
        assert_eq!(String::from_utf8(text).as_deref(), Ok(r#"{"seq":1,"name":null,"bytes":16,"lines":2"#));
        let lagged = Lagged { of: LaggedOf::Events, id: None, from: 2, to: 9 };
        let text = serde_json::to_string(&lagged.message()).expect("it prints");
        assert_eq!(text, r#"{"type":"lagged","of":"events","id":null,"from":2,"to":9}"#);
    }
}
