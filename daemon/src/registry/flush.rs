//! Exits on stable storage. What is written survives the end of any process at once; a power cut is
//! another matter, and this is what is done about it: see `docs/durability.md`.

use super::Registry;
use crate::store::record::Record;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long exits are collected before their writing is begun together.
const FLUSH_DELAY: Duration = Duration::from_secs(1);
/// Records that are remembered. Beyond that the kernel's own writeback has to do.
const MAX_QUEUED: usize = 4096;

/// How hard a record is pushed to the disk.
#[derive(Clone, Copy)]
enum Flush {
    /// The writing is begun and not waited for: nobody is slowed down.
    Start,
    /// It is on the disk when this is done.
    Wait,
}

impl Registry {
    /// Notes that a record has got its last fact.
    pub(super) fn queue_flush(&self, dir: &Path) {
        if self.config.survive_power_cut {
            // Its exit was there before it was told.
            return;
        }
        if let Ok(mut unsynced) = self.unsynced.lock()
            && unsynced.len() < MAX_QUEUED
        {
            unsynced.push(dir.to_path_buf());
        }
        self.ended_record.notify_one();
    }

    /// Begins to write records to the disk, a second after they ended at the latest. Never returns.
    pub async fn run_flush(self: Arc<Self>) {
        loop {
            self.ended_record.notified().await;
            tokio::time::sleep(FLUSH_DELAY).await;
            self.flush(Flush::Start).await;
        }
    }

    /// Waits until everything that ended lately is on the disk: the last act of a daemon that stops.
    pub async fn flush_all(&self) {
        self.flush(Flush::Wait).await;
    }

    async fn flush(&self, how: Flush) {
        let dirs = self.unsynced.lock().map(|mut dirs| std::mem::take(&mut *dirs)).unwrap_or_default();
        if dirs.is_empty() {
            return;
        }
        let pushed = tokio::task::spawn_blocking(move || dirs.iter().try_for_each(|dir| flush(dir, how))).await;
        if let Ok(Err(e)) = pushed {
            tracing::warn!(%e, "write records to the disk");
        }
    }
}

fn flush(dir: &Path, how: Flush) -> std::io::Result<()> {
    let pushed = Record::open(dir).and_then(|record| match how {
        Flush::Start => record.start_writeback(),
        Flush::Wait => record.sync(),
    });
    match pushed {
        // Forgotten in the meantime.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
