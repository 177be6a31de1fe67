//! Exits on stable storage. What is written survives the end of any process at once; a power cut is
//! another matter, and this is what is done about it: see `docs/durability.md`.

use super::Registry;
use crate::store::record::Record;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long exits are collected before they are forced to the disk together.
const TOGETHER: Duration = Duration::from_secs(1);
/// Records that are forced one by one. When more ended, the whole file system is.
const ONE_BY_ONE: usize = 256;

impl Registry {
    /// Notes that a record has got its last fact.
    pub(super) fn note_ended(&self, dir: &Path) {
        if let Ok(mut unsafe_yet) = self.unsynced.lock()
            && unsafe_yet.len() <= ONE_BY_ONE
        {
            unsafe_yet.push(dir.to_path_buf());
        }
        self.ended_record.notify_one();
    }

    /// Forces records to the disk, a second after they ended at the latest. Never returns.
    pub async fn make_durable(self: Arc<Self>) {
        loop {
            self.ended_record.notified().await;
            tokio::time::sleep(TOGETHER).await;
            self.sync_now().await;
        }
    }

    /// Forces everything that ended so far. Also the last act of a daemon that stops.
    pub async fn sync_now(&self) {
        let dirs = self.unsynced.lock().map(|mut dirs| std::mem::take(&mut *dirs)).unwrap_or_default();
        if dirs.is_empty() {
            return;
        }
        let procs_dir = self.procs_dir.clone();
        let synced = tokio::task::spawn_blocking(move || sync(&dirs, &procs_dir)).await;
        if let Ok(Err(e)) = synced {
            tracing::warn!(%e, "force records to the disk");
        }
    }
}

fn sync(dirs: &[PathBuf], procs_dir: &Path) -> std::io::Result<()> {
    let parent = std::fs::File::open(procs_dir)?;
    if dirs.len() > ONE_BY_ONE {
        return Ok(rustix::fs::syncfs(&parent)?);
    }
    for dir in dirs {
        match Record::open(dir).and_then(|record| record.sync()) {
            Ok(()) => {}
            // Forgotten in the meantime.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    parent.sync_all()
}
