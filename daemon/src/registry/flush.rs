//! Exits on stable storage. What is written survives the end of any process at once; a power cut is
//! another matter, and this is what is done about it: see `docs/durability.md`.

use super::Registry;
use crate::store::record::Record;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long exits are collected before their writing is begun together.
const TOGETHER: Duration = Duration::from_secs(1);
/// Records that are remembered. Beyond that the kernel's own writeback has to do.
const REMEMBERED: usize = 4096;

/// How hard a record is pushed to the disk.
#[derive(Clone, Copy)]
enum Push {
    /// The writing is begun and not waited for: nobody is slowed down.
    Begin,
    /// It is on the disk when this is done.
    Finish,
}

impl Registry {
    /// Notes that a record has got its last fact.
    pub(super) fn note_ended(&self, dir: &Path) {
        if self.config.survive_power_cut {
            // Its exit was there before it was told.
            return;
        }
        if let Ok(mut unsynced) = self.unsynced.lock()
            && unsynced.len() < REMEMBERED
        {
            unsynced.push(dir.to_path_buf());
        }
        self.ended_record.notify_one();
    }

    /// Begins to write records to the disk, a second after they ended at the latest. Never returns.
    pub async fn make_durable(self: Arc<Self>) {
        loop {
            self.ended_record.notified().await;
            tokio::time::sleep(TOGETHER).await;
            self.push(Push::Begin).await;
        }
    }

    /// Waits until everything that ended lately is on the disk: the last act of a daemon that stops.
    pub async fn finish_writing(&self) {
        self.push(Push::Finish).await;
    }

    async fn push(&self, how: Push) {
        let dirs = self.unsynced.lock().map(|mut dirs| std::mem::take(&mut *dirs)).unwrap_or_default();
        if dirs.is_empty() {
            return;
        }
        let pushed = tokio::task::spawn_blocking(move || dirs.iter().try_for_each(|dir| push(dir, how))).await;
        if let Ok(Err(e)) = pushed {
            tracing::warn!(%e, "write records to the disk");
        }
    }
}

fn push(dir: &Path, how: Push) -> std::io::Result<()> {
    let pushed = Record::open(dir).and_then(|record| match how {
        Push::Begin => record.begin_sync(),
        Push::Finish => record.sync(),
    });
    match pushed {
        // Forgotten in the meantime.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
