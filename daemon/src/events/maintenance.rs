//! Background work on the journal and its consumers: writes them to disk, drops old events, expires consumers.

use super::{Consumers, Journal};
use crate::disk;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time in which events are collected before their writeback is started.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// Starts the writeback of new events, at the latest a second after each. Does nothing while there are none.
pub async fn run_flush(journal: Arc<Journal>, consumers: Arc<Consumers>) {
    let mut published = journal.subscribe();
    while published.changed().await.is_ok() {
        tokio::time::sleep(FLUSH_DELAY).await;
        published.mark_unchanged();
        let (journal, consumers) = (journal.clone(), consumers.clone());
        write(move || journal.start_writeback().and_then(|()| consumers.start_writeback())).await;
    }
}

/// Waits until all events and positions are durable: for a daemon that stops.
pub async fn flush_all(journal: Arc<Journal>, consumers: Arc<Consumers>) {
    write(move || journal.sync().and_then(|()| consumers.sync())).await;
}

async fn write(work: impl FnOnce() -> io::Result<()> + Send + 'static) {
    if let Err(e) = disk::blocking(work).await.flatten() {
        tracing::warn!(%e, "failed to write events to disk");
    }
}

/// Drops events older than the journal keeps, and consumers unused for `consumer_ttl_ms`.
pub async fn run_retention(
    journal: Arc<Journal>,
    consumers: Arc<Consumers>,
    consumer_ttl_ms: u64,
    now_ms: impl Fn() -> u64,
) {
    // Rarely, and not at all while there are no consumers: an idle daemon has no timers.
    let interval = Duration::from_millis((consumer_ttl_ms / 10).clamp(1000, 3_600_000));
    let mut published = journal.subscribe();
    loop {
        journal.retain(now_ms());
        for name in consumers.expire(now_ms()) {
            tracing::info!(%name, "expired an unused consumer");
        }
        tokio::time::sleep(interval).await;
        if consumers.list().is_empty() && published.changed().await.is_err() {
            return;
        }
    }
}
