//! Tests the journal and its consumers against a naive list of events.

mod consumers;
mod damage;
mod disk_errors;
mod journal;
mod lag;
mod model;
mod throughput;

use super::*;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use toold_proto::event::EventFields;
use toold_proto::params::ConsumerStart;
use toold_proto::{EventType, ProcId};

/// No limit.
pub const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX, scan: usize::MAX };
/// Segments of a few records, without retention.
pub const SMALL: JournalLimits = JournalLimits { segment_bytes: 1000, max_bytes: u64::MAX, max_age_ms: u64::MAX };

pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

pub fn open(dir: &Path, limits: JournalLimits) -> (Journal, RecoveryReport) {
    Journal::open(dir, limits, 0, 0).expect("it opens")
}

pub fn bounds(oldest: u64, last: u64) -> SeqBounds {
    SeqBounds { oldest, last }
}

pub fn at(ms: u64) -> EventTime {
    EventTime { wall_ms: ms, mono_ms: ms, retention_ms: ms }
}

/// An event of any type with any fields: the journal looks at neither.
#[derive(Debug)]
pub struct TestEvent {
    kind: EventType,
    fields: Map<String, Value>,
}

impl EventFields for TestEvent {
    fn event_type(&self) -> EventType {
        self.kind
    }
    fn write_fields(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        for (key, value) in &self.fields {
            out.extend_from_slice(format!(",\"{key}\":{value}").as_bytes());
        }
        Ok(())
    }
}

pub fn test_event(kind: EventType, fields: Value) -> TestEvent {
    match fields {
        Value::Object(fields) => TestEvent { kind, fields },
        other => panic!("the fields are an object: {other}"),
    }
}

pub fn process(n: u64) -> ProcId {
    ProcId::from_bits(n)
}

/// Returns the type of the event `n` of a test. Its process, session and state follow from `n` too.
pub fn kind(n: u64) -> EventType {
    EventType::ALL[(n % 10) as usize]
}

pub fn session(n: u64) -> Option<&'static str> {
    [None, Some("red"), Some("blue\n\"")][(n % 3) as usize]
}

pub fn state(n: u64) -> Vec<u8> {
    (0..n % 7).map(|i| [b'\n', 0, 255, b'{'][((n + i) % 4) as usize]).collect()
}

/// Publishes the event `n`, whose number may differ.
pub fn publish(journal: &Journal, n: u64) -> std::io::Result<u64> {
    let fields = test_event(kind(n), json!({ "n": n, "output": "x\n".repeat((n % 11) as usize) }));
    let state = state(n);
    let event = NewEvent {
        fields: &fields,
        id: (!n.is_multiple_of(5)).then(|| process(n % 5)),
        session_key: session(n),
        task_id: n.is_multiple_of(2).then_some("even"),
        state: &state,
        cancelled: n.is_multiple_of(4),
    };
    journal.publish(&event, at(n), |_| ())
}

pub fn fill(journal: &Journal, upto: u64) {
    for n in journal.last() + 1..=upto {
        assert_eq!(publish(journal, n).expect("it is written"), n);
    }
}

pub fn read_all(journal: &Journal, filter: &Filter) -> (Vec<JournalEntry>, Vec<SeqSpan>) {
    let (mut after, mut events, mut missing) = (0, Vec::new(), Vec::new());
    while after < journal.last() {
        let batch = journal.read(after, filter, ALL).expect("it reads");
        assert!(batch.scanned > after, "a read makes progress");
        after = batch.scanned;
        events.extend(batch.events);
        missing.extend(batch.missing);
    }
    (events, missing)
}

pub fn seqs(events: &[JournalEntry]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

/// Returns the number of an event, and the `n` in its text.
pub fn numbers(event: &JournalEntry) -> (u64, u64) {
    let text: Value = serde_json::from_str(event.json.get()).expect("JSON");
    assert_eq!(text["seq"], event.seq);
    assert_eq!(text["type"], event.kind.name());
    (event.seq, text["n"].as_u64().expect("its number"))
}

/// Returns the files of the segments, oldest first.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("it lists").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "log")).collect();
    files.sort();
    files
}
