//! An event before it is published.

use super::filter::hash;
use super::record::{CANCELLED, EventHeader};
use std::io;
use toold_proto::ProcId;
use toold_proto::event::EventFields;
use toold_proto::time::rfc3339;

/// The maximum length of a state. A slot of a process record has room for several.
const MAX_STATE_LEN: usize = 255;

/// An event without its number.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    /// The type, and the fields of the type. They follow the common ones in the same object.
    pub fields: &'a dyn EventFields,
    pub id: Option<ProcId>,
    pub session_key: Option<&'a str>,
    pub task_id: Option<&'a str>,
    /// The process's checkpoint that belongs to this event, at most 255 bytes. Clients never see it.
    pub state: &'a [u8],
    /// Never pushed to subscribers.
    pub cancelled: bool,
}

/// A moment on all clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTime {
    pub wall_ms: u64,
    pub mono_ms: u64,
    /// The clock by which ages are counted; not stored.
    pub retention_ms: u64,
}

/// An encoded event that lacks only its number.
pub(super) struct Rendered {
    pub header: EventHeader,
    /// The text after the number, without the newline.
    pub rest: Vec<u8>,
}

impl NewEvent<'_> {
    pub(super) fn render(&self, now: EventTime) -> io::Result<Rendered> {
        if self.state.len() > MAX_STATE_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an event's state has at most 255 bytes"));
        }
        let mut rest = Vec::with_capacity(512);
        rest.extend_from_slice(b",\"at\":\"");
        rest.extend_from_slice(rfc3339(now.wall_ms).as_bytes());
        rest.extend_from_slice(b"\",\"type\":\"");
        rest.extend_from_slice(self.fields.event_type().name().as_bytes());
        rest.extend_from_slice(b"\",\"id\":");
        serde_json::to_writer(&mut rest, &self.id)?;
        rest.extend_from_slice(b",\"session_key\":");
        serde_json::to_writer(&mut rest, &self.session_key)?;
        rest.extend_from_slice(b",\"task_id\":");
        serde_json::to_writer(&mut rest, &self.task_id)?;
        self.fields.write_fields(&mut rest)?;
        rest.push(b'}');
        let header = EventHeader {
            seq: 0,
            wall_ms: now.wall_ms,
            mono_ms: now.mono_ms,
            kind: self.fields.event_type().code(),
            flags: if self.cancelled { CANCELLED } else { 0 },
            process: self.id.map_or(0, ProcId::bits),
            session: hash(self.session_key),
            task: hash(self.task_id),
        };
        Ok(Rendered { header, rest })
    }
}
