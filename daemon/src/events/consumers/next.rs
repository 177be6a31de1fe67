//! Finds the next events of a consumer, without reading events again that did not match.

use super::super::filter::Filter;
use super::super::journal::Journal;
use super::super::read::{JournalEntry, ReadLimit};
use super::super::segment::lock_ignoring_poison;
use super::{ConsumerError, ConsumerName, Consumers};
use crate::events::SeqSpan;

/// The number of records read in one call: a few milliseconds on a thread that other tasks need.
const MAX_SCANNED_RECORDS: usize = 10_000;
/// The number of filters cached for one consumer. With more filters some events are read twice.
const MAX_CACHED_FILTERS: usize = 8;

/// The next events of a consumer.
#[derive(Debug, Clone)]
pub struct NextEvents {
    pub events: Vec<JournalEntry>,
    pub position: u64,
    /// The newest event when the journal was read.
    pub last: u64,
    /// Numbers between the position and the first event that retention removed or damage destroyed.
    pub missing: Vec<SeqSpan>,
    /// The last number that was read.
    pub scanned: u64,
    /// The journal was read to its end: the next event has not happened yet.
    pub scanned_all: bool,
}

/// For each filter, the events after the position that do not match it. Only in memory.
#[derive(Debug, Default)]
pub(super) struct ScanCache(Vec<(Filter, ScannedRange)>);

#[derive(Debug, Clone, Default)]
struct ScannedRange {
    /// No event up to this number matches.
    scanned_to: u64,
    /// Events that could not be read.
    missing: Vec<SeqSpan>,
}

impl ScanCache {
    fn get(&self, filter: &Filter, position: u64) -> ScannedRange {
        let known = self.0.iter().find(|(known, _)| known == filter);
        let known = known.map(|(_, range)| range.clone()).unwrap_or_default();
        let missing = known.missing.into_iter().filter(|range| *range.end() > position);
        let missing = missing.map(|range| (*range.start()).max(position + 1)..=*range.end()).collect();
        ScannedRange { scanned_to: known.scanned_to.max(position), missing }
    }

    fn set(&mut self, filter: &Filter, range: ScannedRange) {
        self.0.retain(|(known, _)| known != filter);
        self.0.push((filter.clone(), range));
        self.0.drain(..self.0.len().saturating_sub(MAX_CACHED_FILTERS));
    }
}

impl Consumers {
    /// Returns the events after the consumer's position that match the filter, in order, without exits that a call
    /// returned to it. Events that are not acknowledged are returned again.
    pub fn next(
        &self,
        journal: &Journal,
        name: &ConsumerName,
        filter: &Filter,
        limit: usize,
        max_bytes: usize,
    ) -> Result<NextEvents, ConsumerError> {
        let (view, known) = {
            let mut table = lock_ignoring_poison(&self.table);
            let consumer = table.active.get_mut(name).ok_or(ConsumerError::Unknown)?;
            consumer.file.state.tidy(journal.oldest());
            let view = consumer.file.state.view();
            let known = consumer.scan_cache.get(filter, view.position);
            (view, known)
        };
        let last = journal.last();
        let limit = ReadLimit { events: limit, bytes: max_bytes, scan: MAX_SCANNED_RECORDS };
        let wanted =
            |header: &super::super::record::EventHeader, kind| view.wants_seq(header.seq, kind, header.process);
        let batch = journal.read_where(known.scanned_to, filter, &wanted, limit)?;
        let mut missing = known.missing;
        missing.extend(batch.missing);
        let scanned_to = batch.events.first().map_or(batch.scanned, |event| event.seq - 1);
        if let Some(consumer) = lock_ignoring_poison(&self.table).active.get_mut(name)
            // If it expired and was created again in the meantime, its position may be before the cached range.
            && consumer.file.state.position >= view.position
        {
            consumer.scan_cache.set(filter, ScannedRange { scanned_to, missing: missing.clone() });
        }
        let scanned_all = batch.scanned >= last;
        Ok(NextEvents {
            events: batch.events,
            position: view.position,
            last,
            missing,
            scanned: batch.scanned,
            scanned_all,
        })
    }
}
