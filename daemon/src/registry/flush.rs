//! Exits on stable storage. What is written survives the end of any process at once; a power cut is
//! another matter, and this is what is done about it: see `docs/durability.md`.

use super::Registry;
use crate::proc::task::now_ms;
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

    /// The same for events, while there are any. Never returns.
    pub async fn make_events_durable(self: Arc<Self>) {
        let mut news = self.sink.journal.subscribe();
        loop {
            if news.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(TOGETHER).await;
            news.mark_unchanged();
            self.push_events(Push::Begin).await;
        }
    }

    async fn push_events(self: &Arc<Self>, how: Push) {
        let registry = self.clone();
        let pushed = tokio::task::spawn_blocking(move || match how {
            Push::Begin => registry.sink.journal.begin_sync().and_then(|()| registry.consumers.begin_sync()),
            Push::Finish => registry.sink.journal.sync().and_then(|()| registry.consumers.sync()),
        });
        if let Ok(Err(e)) = pushed.await {
            tracing::warn!(%e, "write events to the disk");
        }
    }

    /// Drops events that are too old, and forgets consumers that nobody used for long. Never returns.
    pub async fn forget_consumers(self: Arc<Self>) {
        // Seldom, and not at all while there are none: an idle daemon sleeps.
        let pause = Duration::from_millis((self.config.events.consumer_ttl_ms / 10).clamp(1000, 3_600_000));
        let mut news = self.sink.journal.subscribe();
        loop {
            self.sink.journal.retain(now_ms());
            for name in self.consumers.expire(now_ms()) {
                tracing::info!(%name, "forgot a consumer that was not used for long");
            }
            tokio::time::sleep(pause).await;
            if self.consumers.list().is_empty() && news.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until everything that ended lately is on the disk: the last act of a daemon that stops.
    pub async fn finish_writing(self: &Arc<Self>) {
        self.push(Push::Finish).await;
        self.push_events(Push::Finish).await;
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
