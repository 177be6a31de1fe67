//! Waits for the next events of a consumer.

use super::super::filter::Filter;
use super::super::journal::Journal;
use super::{ConsumerError, ConsumerName, Consumers, NextEvents};
use crate::clock::retention_ms;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The events that a consumer asks for.
#[derive(Debug, Clone, Copy)]
pub struct NextQuery<'a> {
    pub name: &'a ConsumerName,
    pub filter: &'a Filter,
    pub max_events: usize,
    pub max_bytes: usize,
}

impl Consumers {
    /// Returns the next events of a consumer, or none at the deadline. Events that are missing end the wait too.
    pub async fn wait_next(
        &self,
        journal: &Journal,
        query: NextQuery<'_>,
        deadline: Instant,
    ) -> Result<NextEvents, ConsumerError> {
        let mut updates = journal.subscribe();
        loop {
            updates.mark_unchanged();
            let next = self.scan_next(journal, query).await?;
            if !next.events.is_empty() || !next.missing.is_empty() || Instant::now() >= deadline {
                return Ok(next);
            }
            self.wait_for_publish(&mut updates, query.name, deadline).await?;
        }
    }

    /// Scans up to the first event for the consumer, or to the end of the journal. Yields between the parts of a long scan.
    async fn scan_next(&self, journal: &Journal, query: NextQuery<'_>) -> Result<NextEvents, ConsumerError> {
        loop {
            let next = self.next(journal, query.name, query.filter, query.max_events, query.max_bytes)?;
            if next.scanned_all || !next.events.is_empty() {
                return Ok(next);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Waits for a new event in the journal or the deadline. Touches the consumer in the meantime: one that waits does
    /// not expire.
    async fn wait_for_publish(
        &self,
        updates: &mut watch::Receiver<u64>,
        name: &ConsumerName,
        deadline: Instant,
    ) -> Result<(), ConsumerError> {
        let touch_interval = Duration::from_millis(self.ttl_ms / 3 + 1);
        while timeout_at(deadline.min(Instant::now() + touch_interval), updates.changed()).await.is_err() {
            if Instant::now() >= deadline {
                break;
            }
            self.touch(name, retention_ms())?;
        }
        Ok(())
    }
}
