//! The state of a consumer as accumulated facts. Pure: bytes in, facts out.

use super::super::read::JournalEntry;
use super::ConsumerName;
use std::collections::HashMap;
use std::sync::Arc;
use toold_proto::{EventType, ProcId};

/// The length of one fact on disk.
pub const FACT_LEN: usize = 32;
const MAGIC: &[u8; 8] = b"toolcon1";
const FILE_HEADER_LEN: usize = 16;

/// The number of events within which an exit is published that a call returned before: the process's task publishes it
/// next, or the next start of the daemon before anything else.
const MAX_EXIT_DELAY_EVENTS: u64 = 100_000;
/// The maximum number of exit marks of one consumer. The oldest are dropped, and those exits may be delivered twice.
const MAX_SEEN_EXITS: usize = 16_384;

/// A fact in a consumer's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    Created {
        position: u64,
        at_ms: u64,
    },
    Ack {
        seq: u64,
        at_ms: u64,
    },
    ExitSeen {
        process: u64,
        mark: ExitMark,
    },
    Used {
        at_ms: u64,
    },
    /// A part of the file was lost. The consumer is informed until it acknowledges: then `reported` is true.
    Damaged {
        at_ms: u64,
        reported: bool,
    },
    /// The sum of the position facts and the number of facts after this one. It is the first fact and is overwritten in place,
    /// so a file that was cut is noticed and its position is known.
    Summary {
        position: u64,
        count: u64,
        used_ms: u64,
    },
}

/// Marks an exit that a call returned to the consumer: its events are not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitMark {
    /// The newest event when the call returned.
    pub newest_seq: u64,
    /// The last event about the exit; 0 if it is not published yet.
    pub exit_seq: u64,
}

impl ExitMark {
    /// Returns the highest number that an event about the exit can have.
    pub fn max_seq(self) -> u64 {
        if self.exit_seq != 0 { self.exit_seq } else { self.newest_seq.saturating_add(MAX_EXIT_DELAY_EVENTS) }
    }
}

/// The sum of the facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsumerState {
    pub position: u64,
    pub exit_marks: Arc<HashMap<u64, ExitMark>>,
    pub used_ms: u64,
    /// The time at which damage to its file was found, until the consumer acknowledges the report.
    pub damaged_ms: Option<u64>,
    /// The lowest number at which a mark can be dropped.
    min_mark_seq: Option<u64>,
}

/// A snapshot of a consumer that decides which events it receives.
#[derive(Debug, Clone)]
pub struct ConsumerView {
    /// The last acknowledged event.
    pub position: u64,
    exit_marks: Arc<HashMap<u64, ExitMark>>,
}

impl ConsumerView {
    /// Returns true if the consumer still has to receive this event.
    pub fn wants(&self, event: &JournalEntry) -> bool {
        self.wants_seq(event.seq, event.kind, event.id.map_or(0, ProcId::bits))
    }

    pub(super) fn wants_seq(&self, seq: u64, kind: EventType, process: u64) -> bool {
        let exit = matches!(kind, EventType::Exited | EventType::Completion);
        let is_seen = exit && self.exit_marks.get(&process).is_some_and(|mark| seq <= mark.max_seq());
        seq > self.position && !is_seen
    }
}

impl ConsumerState {
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Created { position: seq, at_ms } | Fact::Ack { seq, at_ms } => {
                self.position = self.position.max(seq);
                self.used_ms = self.used_ms.max(at_ms);
            }
            Fact::Used { at_ms } => self.used_ms = self.used_ms.max(at_ms),
            Fact::Damaged { at_ms, reported } => self.damaged_ms = (!reported).then_some(at_ms),
            Fact::Summary { position, used_ms, .. } => {
                self.position = self.position.max(position);
                self.used_ms = self.used_ms.max(used_ms);
            }
            Fact::ExitSeen { process, mark } => {
                self.min_mark_seq =
                    Some(self.min_mark_seq.map_or(mark.max_seq(), |min_mark_seq| min_mark_seq.min(mark.max_seq())));
                Arc::make_mut(&mut self.exit_marks).insert(process, mark);
            }
        }
    }

    /// Drops marks that no event can match any more: their events are acknowledged or removed by retention.
    pub fn tidy(&mut self, oldest: u64) {
        let position = self.position;
        let live = |bound: u64| position < bound && oldest <= bound;
        let too_many = self.exit_marks.len() > MAX_SEEN_EXITS;
        if self.min_mark_seq.is_none_or(live) && !too_many {
            return;
        }
        let exit_marks = Arc::make_mut(&mut self.exit_marks);
        exit_marks.retain(|_, mark| live(mark.max_seq()));
        if exit_marks.len() > MAX_SEEN_EXITS {
            // Drop many at once, so that not every further mark pays for this.
            let mut newest_seq: Vec<u64> = exit_marks.values().map(|mark| mark.newest_seq).collect();
            let (_, from, _) = newest_seq.select_nth_unstable(MAX_SEEN_EXITS / 8);
            exit_marks.retain(|_, mark| mark.newest_seq >= *from);
        }
        self.min_mark_seq = exit_marks.values().map(|mark| mark.max_seq()).min();
    }

    pub fn view(&self) -> ConsumerView {
        ConsumerView { position: self.position, exit_marks: self.exit_marks.clone() }
    }

    /// Returns the highest event number that the consumer knows.
    pub fn highest_seq(&self) -> u64 {
        let seen = self.exit_marks.values().map(|mark| mark.newest_seq.max(mark.exit_seq));
        seen.max().unwrap_or(0).max(self.position)
    }

    /// Returns the summary of a file with this state and this many other facts.
    pub fn summary(&self, count: u64) -> Fact {
        Fact::Summary { position: self.position, count, used_ms: self.used_ms }
    }

    /// Returns the shortest file with this state, and the number of its facts after the summary.
    pub fn file(&self, name: &ConsumerName) -> (Vec<u8>, u64) {
        let mut facts = vec![Fact::Created { position: self.position, at_ms: self.used_ms }];
        facts.extend(self.damaged_ms.map(|at_ms| Fact::Damaged { at_ms, reported: false }));
        facts.extend(self.exit_marks.iter().map(|(process, mark)| Fact::ExitSeen { process: *process, mark: *mark }));
        let count = facts.len() as u64;
        let mut out = head(name);
        for fact in std::iter::once(self.summary(count)).chain(facts) {
            out.extend_from_slice(&fact.bytes());
        }
        (out, count)
    }

    pub fn file_len(&self, name: &ConsumerName) -> u64 {
        (head_len(name.as_str().len()) + FACT_LEN * (3 + self.exit_marks.len())) as u64
    }
}

/// Content of a consumer's file.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedFile {
    pub name: ConsumerName,
    pub state: ConsumerState,
    /// The length up to the last valid fact. A torn write may follow.
    pub len: u64,
    /// The number of facts after the summary. None for a file of a version without summaries.
    pub count: Option<u64>,
    /// The number of damaged or lost parts: the head, and facts before the last one that was written.
    pub damaged: u64,
}

/// Decodes a file. A file whose head is damaged is that of `listed`, if a consumer of that name is known. Returns None if
/// there is no valid name or no valid fact.
pub fn decode(bytes: &[u8], listed: Option<&ConsumerName>) -> Option<DecodedFile> {
    let own = own_name(bytes);
    let mut damaged = u64::from(own.is_none());
    let name = own.or_else(|| listed.cloned())?;
    let head_len = head_len(name.as_str().len());
    let facts: Vec<Option<Fact>> = bytes.get(head_len..)?.as_chunks().0.iter().map(Fact::read).collect();
    let whole = facts.iter().rposition(Option::is_some)? + 1;
    let mut state = ConsumerState::default();
    facts.iter().flatten().for_each(|fact| state.apply(*fact));
    damaged += facts[..whole].iter().filter(|fact| fact.is_none()).count() as u64;
    let written = whole as u64 - 1;
    let count = match facts.first().copied().flatten() {
        Some(Fact::Summary { count, .. }) => {
            damaged += count.saturating_sub(written);
            Some(written)
        }
        Some(Fact::Created { .. } | Fact::Ack { .. } | Fact::ExitSeen { .. } | Fact::Used { .. }) => None,
        // The summary itself is damaged.
        Some(Fact::Damaged { .. }) | None => Some(written),
    };
    Some(DecodedFile { name, state, len: (head_len + whole * FACT_LEN) as u64, count, damaged })
}

/// Returns the name in a file whose head is intact.
fn own_name(bytes: &[u8]) -> Option<ConsumerName> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
    let name = bytes.get(FILE_HEADER_LEN..FILE_HEADER_LEN.checked_add(len)?)?;
    let name = ConsumerName::parse(str::from_utf8(name).ok()?).ok()?;
    bytes.starts_with(&head(&name)).then_some(name)
}

/// Returns the offset of the summary in a consumer's file.
pub fn summary_at(name: &ConsumerName) -> u64 {
    head_len(name.as_str().len()) as u64
}

fn head_len(name: usize) -> usize {
    (FILE_HEADER_LEN + name).next_multiple_of(FACT_LEN)
}

fn head(name: &ConsumerName) -> Vec<u8> {
    let text = name.as_str().as_bytes();
    let mut out = Vec::with_capacity(head_len(text.len()));
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(text).to_le_bytes());
    out.extend_from_slice(text);
    out.resize(head_len(text.len()), 0);
    out
}

impl Fact {
    pub fn bytes(self) -> [u8; FACT_LEN] {
        let (kind, numbers) = match self {
            Fact::Created { position, at_ms } => (1u32, [position, at_ms, 0]),
            Fact::Ack { seq, at_ms } => (2, [seq, at_ms, 0]),
            Fact::ExitSeen { process, mark } => (3, [process, mark.newest_seq, mark.exit_seq]),
            Fact::Used { at_ms } => (4, [at_ms, 0, 0]),
            Fact::Damaged { at_ms, reported } => (5, [at_ms, u64::from(reported), 0]),
            Fact::Summary { position, count, used_ms } => (6, [position, count, used_ms]),
        };
        let mut out = [0; FACT_LEN];
        out[4..8].copy_from_slice(&kind.to_le_bytes());
        for (place, number) in out[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&out[4..]).to_le_bytes();
        out[..4].copy_from_slice(&sum);
        out
    }

    fn read(bytes: &[u8; FACT_LEN]) -> Option<Fact> {
        if crc32fast::hash(&bytes[4..]).to_le_bytes() != bytes[..4] {
            return None;
        }
        let number = |i: usize| bytes[8 * i..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        match bytes[4] {
            1 => Some(Fact::Created { position: number(1), at_ms: number(2) }),
            2 => Some(Fact::Ack { seq: number(1), at_ms: number(2) }),
            3 => Some(Fact::ExitSeen {
                process: number(1),
                mark: ExitMark { newest_seq: number(2), exit_seq: number(3) },
            }),
            4 => Some(Fact::Used { at_ms: number(1) }),
            5 => Some(Fact::Damaged { at_ms: number(1), reported: number(2) != 0 }),
            6 => Some(Fact::Summary { position: number(1), count: number(2), used_ms: number(3) }),
            // A fact of a later version counts as damaged.
            _ => None,
        }
    }
}
