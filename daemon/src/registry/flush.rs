//! Writes exits to disk. Written data survives the end of any process at once, but not a power cut: see
//! `docs/durability.md`.

use super::Registry;
use crate::disk;
use crate::store::record::Record;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time in which exits are collected before their writeback is started.
const FLUSH_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of queued records. The kernel's own writeback takes care of the rest.
const MAX_QUEUED: usize = 4096;

/// The way a record is flushed.
#[derive(Clone, Copy)]
enum Flush {
    /// Start the writeback and do not wait.
    Start,
    /// Wait until the record is durable.
    Wait,
}

impl Registry {
    /// Queues a record that got its last fact.
    pub(super) fn queue_flush(&self, dir: &Path) {
        if self.config.survive_power_cut {
            // Its exit was durable before it was published.
            return;
        }
        if let Ok(mut unsynced) = self.unsynced.lock()
            && unsynced.len() < MAX_QUEUED
        {
            unsynced.push(dir.to_path_buf());
        }
        self.ended_record.notify_one();
    }

    /// Starts the writeback of records, at the latest a second after their end. Never returns.
    pub async fn run_flush(self: Arc<Self>) {
        loop {
            self.ended_record.notified().await;
            tokio::time::sleep(FLUSH_DELAY).await;
            self.flush(Flush::Start).await;
        }
    }

    /// Waits until all queued records are durable: for a daemon that stops.
    pub async fn flush_all(&self) {
        self.flush(Flush::Wait).await;
    }

    async fn flush(&self, how: Flush) {
        let dirs = self.unsynced.lock().map(|mut dirs| std::mem::take(&mut *dirs)).unwrap_or_default();
        if dirs.is_empty() {
            return;
        }
        // One record that cannot be opened does not keep the others from the disk.
        let flush_all = move || dirs.iter().filter_map(|dir| flush(dir, how).err()).next_back();
        if let Ok(Some(e)) = disk::blocking(flush_all).await {
            tracing::warn!(%e, "failed to write records to disk");
        }
    }
}

fn flush(dir: &Path, how: Flush) -> std::io::Result<()> {
    let pushed = Record::open(dir).and_then(|record| match how {
        Flush::Start => record.start_writeback(),
        Flush::Wait => record.sync(),
    });
    match pushed {
        // The process was forgotten meanwhile.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
