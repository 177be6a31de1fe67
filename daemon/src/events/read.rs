//! Reads the events after a number that match a filter, and reports the missing ones before them.

use super::SeqSpan;
use super::disk::can_pass;
use super::filter::{Filter, HashedFilter};
use super::journal::Journal;
use super::record::{CANCELLED, EventHeader, EventRecord};
use super::record_reader::{ReadStep, RecordReader};
use super::segment::{MARK_INTERVAL_BYTES, Segment};
use serde_json::value::RawValue;
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use toold_proto::{EventType, ProcId};

/// Bounds of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    pub events: usize,
    /// The length of all texts. One event is returned even if it is longer.
    pub bytes: usize,
    /// The number of records read, matching or not.
    pub scan: usize,
}

/// An event as clients receive it, with its most used fields.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    pub seq: u64,
    pub kind: EventType,
    pub id: Option<ProcId>,
    /// Never pushed to subscribers.
    pub cancelled: bool,
    pub json: Box<RawValue>,
}

/// The result of one read.
#[derive(Debug, Clone, Default)]
pub struct EventBatch {
    pub events: Vec<JournalEntry>,
    /// The last number that was read: continue after it.
    pub scanned: u64,
    /// Numbers before the first returned event that retention removed or damage destroyed.
    pub missing: Vec<SeqSpan>,
}

/// An additional condition on the header of an event.
pub(super) type HeaderFilter<'a> = &'a dyn Fn(&EventHeader, EventType) -> bool;

impl Journal {
    /// Returns the events after `after` that match the filter, in order.
    pub fn read(&self, after: u64, filter: &Filter, limit: ReadLimit) -> io::Result<EventBatch> {
        self.read_where(after, filter, &|_, _| true, limit)
    }

    pub(super) fn read_where(
        &self,
        after: u64,
        filter: &Filter,
        wanted: HeaderFilter<'_>,
        limit: ReadLimit,
    ) -> io::Result<EventBatch> {
        // Load the number before the list: an event with a number is in a segment that is listed later.
        let last = self.last();
        let segments = self.segments();
        let batch = EventBatch { scanned: after, ..EventBatch::default() };
        let mut read =
            JournalRead { journal: self, batch, filter: filter.hashed(), wanted, limit, scanned_records: 0, bytes: 0 };
        if after >= last || limit.events == 0 {
            return Ok(read.batch);
        }
        let start = segments.partition_point(|segment| segment.first <= after + 1).saturating_sub(1);
        for (i, segment) in segments.iter().enumerate().skip(start) {
            let bound = segments.get(i + 1).map_or(last + 1, |next| next.first.min(last + 1));
            if read.segment(segment, bound)?.is_break() {
                return Ok(read.batch);
            }
        }
        if read.batch.scanned < last {
            let _ = read.skip_missing(last + 1);
        }
        Ok(read.batch)
    }
}

/// A read in progress. `batch.scanned` is its position.
struct JournalRead<'a> {
    journal: &'a Journal,
    batch: EventBatch,
    filter: HashedFilter<'a>,
    wanted: HeaderFilter<'a>,
    limit: ReadLimit,
    scanned_records: usize,
    bytes: usize,
}

impl JournalRead<'_> {
    /// Reads the records below `bound`.
    fn segment(&mut self, segment: &Segment, bound: u64) -> io::Result<ControlFlow<()>> {
        let next = self.batch.scanned + 1;
        if next >= bound {
            return Ok(Continue(()));
        }
        let file = match segment.open() {
            // Dropped since it was listed, or removed: the next record reveals the gap.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.journal.report_unreadable(segment, &e);
                return Ok(Continue(()));
            }
            Err(e) if can_pass(&e) => return Err(e),
            Err(e) => {
                self.journal.report_unreadable(segment, &e);
                return Ok(Continue(()));
            }
            Ok(file) => file,
        };
        let mut reader = RecordReader::new(&file, segment.offset_before(next), segment.len());
        let (mut above, mut mark) = (segment.first - 1, 0);
        while let Some(step) = reader.next(above)? {
            let ReadStep::Record { record, at } = step else {
                self.journal.report_unreadable(segment, &"some records are damaged");
                continue;
            };
            above = record.header.seq;
            if above >= bound {
                break;
            }
            if at >= mark {
                segment.add_mark(above, at);
                mark = at + MARK_INTERVAL_BYTES;
            }
            if above > self.batch.scanned && self.record(&record).is_break() {
                return Ok(Break(()));
            }
        }
        Ok(Continue(()))
    }

    fn record(&mut self, record: &EventRecord<'_>) -> ControlFlow<()> {
        let header = &record.header;
        if header.seq > self.batch.scanned + 1 {
            self.skip_missing(header.seq)?;
        }
        if self.scanned_records >= self.limit.scan {
            return Break(());
        }
        self.scanned_records += 1;
        // An event type of a later version is skipped.
        let kind = EventType::from_code(header.kind);
        if let Some(kind) = kind.filter(|kind| self.filter.matches(*kind, record) && (self.wanted)(header, *kind)) {
            return self.take(kind, record);
        }
        self.batch.scanned = header.seq;
        Continue(())
    }

    fn take(&mut self, kind: EventType, record: &EventRecord<'_>) -> ControlFlow<()> {
        let header = &record.header;
        let text = str::from_utf8(record.text).ok().map(String::from);
        let Some(json) = text.and_then(|text| RawValue::from_string(text).ok()) else {
            return self.skip_missing(header.seq + 1);
        };
        self.bytes += record.text.len();
        if self.bytes > self.limit.bytes && !self.batch.events.is_empty() {
            return Break(());
        }
        let id = (header.process != 0).then(|| ProcId::from_bits(header.process));
        let cancelled = header.flags & CANCELLED != 0;
        self.batch.events.push(JournalEntry { seq: header.seq, kind, id, cancelled, json });
        self.batch.scanned = header.seq;
        if self.batch.events.len() >= self.limit.events { Break(()) } else { Continue(()) }
    }

    /// Reports the numbers from the position to `seq` as missing, or ends the read if it has events already.
    fn skip_missing(&mut self, seq: u64) -> ControlFlow<()> {
        if !self.batch.events.is_empty() {
            return Break(());
        }
        self.batch.missing.push(self.batch.scanned + 1..=seq - 1);
        self.batch.scanned = seq - 1;
        Continue(())
    }
}
