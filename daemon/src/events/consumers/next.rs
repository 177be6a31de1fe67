//! What a consumer is to be told next, without reading again what was not for it.

use super::super::filter::Filter;
use super::super::journal::Journal;
use super::super::read::{JournalEntry, ReadLimit};
use super::super::segment::lock_ignoring_poison;
use super::{ConsumerError, ConsumerName, Consumers};
use crate::events::SeqSpan;

/// Records looked at in one call: a few milliseconds of work on a thread that others need.
const MAX_SCANNED_RECORDS: usize = 10_000;
/// Filters remembered for one consumer. Somebody with more of them reads some events twice.
const MAX_CACHED_FILTERS: usize = 8;

/// What a consumer is told.
#[derive(Debug, Clone)]
pub struct NextEvents {
    pub events: Vec<JournalEntry>,
    pub position: u64,
    /// The newest event when the journal was read.
    pub last: u64,
    /// Numbers after the position, before the first event, that are not kept any more or were damaged.
    pub missing: Vec<SeqSpan>,
    /// Everything up to this number was looked at.
    pub scanned: u64,
    /// No: more may follow at once. Yes: the next one is still to happen.
    pub scanned_all: bool,
}

/// Where a filter has been held against the events after the position, in vain. In memory alone.
#[derive(Debug, Default)]
pub(super) struct ScanCache(Vec<(Filter, ScannedRange)>);

#[derive(Debug, Clone, Default)]
struct ScannedRange {
    /// Nothing up to here is wanted.
    scanned_to: u64,
    /// What could not be looked at.
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
    /// The events after the consumer's position that fit the filter and were not told it by a call, in order.
    /// What is not acknowledged comes again.
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
            // Expired and made again in the meantime, it may have begun before what we know of.
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
