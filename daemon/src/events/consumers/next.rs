//! What a consumer is to be told next, without reading again what was not for it.

use super::super::filter::Filter;
use super::super::journal::Journal;
use super::super::read::{Entry, Limit};
use super::super::segment::hold;
use super::{ConsumerError, ConsumerName, Consumers};
use crate::events::Range;

/// Records looked at in one call: a few milliseconds of work on a thread that others need.
const SCAN: usize = 10_000;
/// Filters remembered for one consumer. Somebody with more of them reads some events twice.
const FILTERS: usize = 8;

/// What a consumer is told.
#[derive(Debug, Clone)]
pub struct Next {
    pub events: Vec<Entry>,
    pub position: u64,
    /// Numbers after the position, before the first event, that are not kept any more or were damaged.
    pub missing: Vec<Range>,
    /// Everything up to this number was looked at.
    pub scanned: u64,
    /// No: more may follow at once. Yes: the next one is still to happen.
    pub scanned_all: bool,
}

/// Where a filter has been held against the events after the position, in vain. In memory alone.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<(Filter, Stretch)>);

#[derive(Debug, Clone, Default)]
struct Stretch {
    /// Nothing up to here is wanted.
    upto: u64,
    /// What could not be looked at.
    missing: Vec<Range>,
}

impl Seen {
    fn get(&self, filter: &Filter, position: u64) -> Stretch {
        let known = self.0.iter().find(|(known, _)| known == filter);
        let known = known.map(|(_, stretch)| stretch.clone()).unwrap_or_default();
        let missing = known.missing.into_iter().filter(|range| *range.end() > position);
        let missing = missing.map(|range| (*range.start()).max(position + 1)..=*range.end()).collect();
        Stretch { upto: known.upto.max(position), missing }
    }

    fn set(&mut self, filter: &Filter, stretch: Stretch) {
        self.0.retain(|(known, _)| known != filter);
        self.0.push((filter.clone(), stretch));
        self.0.drain(..self.0.len().saturating_sub(FILTERS));
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
    ) -> Result<Next, ConsumerError> {
        let (view, known) = {
            let mut table = hold(&self.table);
            let consumer = table.known.get_mut(name).ok_or(ConsumerError::Unknown)?;
            consumer.kept.state.tidy(journal.oldest());
            let view = consumer.kept.state.view();
            let known = consumer.seen.get(filter, view.position);
            (view, known)
        };
        let last = journal.last();
        let limit = Limit { events: limit, bytes: max_bytes, scan: SCAN };
        let wanted = |header: &super::super::record::Header, kind| view.wants_seq(header.seq, kind, header.process);
        let batch = journal.read_where(known.upto, filter, &wanted, limit)?;
        let mut missing = known.missing;
        missing.extend(batch.missing);
        let upto = batch.events.first().map_or(batch.scanned, |event| event.seq - 1);
        if let Some(consumer) = hold(&self.table).known.get_mut(name)
            // Forgotten and made again in the meantime, it may have begun before what we know of.
            && consumer.kept.state.position >= view.position
        {
            consumer.seen.set(filter, Stretch { upto, missing: missing.clone() });
        }
        let scanned_all = batch.scanned >= last;
        Ok(Next { events: batch.events, position: view.position, missing, scanned: batch.scanned, scanned_all })
    }
}
