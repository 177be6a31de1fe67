//! The queues by name: their settings from the config and from `queues.set`.

use super::Registry;
use super::queue::QueueSettings;
use crate::config::Config;
use crate::disk;
use crate::store::queue_settings::{self, StoredQueue, StoredQueues};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_proto::results;

/// Maximum number of queues that `queues.set` makes.
const MAX_QUEUES: usize = 1024;
const FILE_NAME: &str = "queues";

/// The reason why a queue was not changed.
pub enum QueueError {
    /// There are this many queues already.
    TooMany(usize),
    Store {
        path: PathBuf,
        source: io::Error,
    },
}

/// Reads the queues beside `procs_dir`. Returns a description of damage: then the config counts.
pub fn open(procs_dir: &Path) -> (StoredQueues, Option<String>) {
    let path = procs_dir.with_file_name(FILE_NAME);
    match queue_settings::read(&path) {
        Ok(stored) => (stored, None),
        Err(e) => {
            let away = path.with_extension(format!("damaged-{}", std::process::id()));
            let moved = std::fs::rename(&path, &away).is_ok();
            let place = if moved { &away } else { &path };
            let text = format!("the queues in {}: {e}; they are as the config has them", place.display());
            (StoredQueues::new(), Some(text))
        }
    }
}

/// Returns the settings in force.
fn effective(name: &str, config: &Config, stored: Option<&StoredQueue>) -> QueueSettings {
    let configured = config.queues.get(name).map(|queue| queue.slots);
    let slots = stored.and_then(|queue| queue.slots).or(configured).unwrap_or(QueueSettings::default().slots);
    QueueSettings { slots, paused: stored.is_some_and(|queue| queue.paused) }
}

impl Registry {
    /// Applies the settings of the config and of earlier daemons.
    pub(super) fn load_queues(&self, stored: &StoredQueues) {
        let mut scheduler = self.scheduler();
        for name in self.config.queues.keys().chain(stored.keys()) {
            scheduler.settings.insert(name.clone(), effective(name, &self.config, stored.get(name)));
        }
    }

    /// Lists every queue that is configured, was set, or has processes, by name.
    pub fn list_queues(&self) -> Vec<results::Queue> {
        let all = self.scheduler().list();
        let row = |(name, (QueueSettings { slots, paused }, running, pending))| results::Queue {
            name,
            slots,
            paused,
            running,
            pending,
        };
        all.into_iter().map(row).collect()
    }

    /// Changes a queue: on disk, then in force.
    pub async fn set_queue(
        self: &Arc<Self>,
        name: String,
        slots: Option<u64>,
        paused: Option<bool>,
    ) -> Result<results::Queue, QueueError> {
        let registry = self.clone();
        let path = self.procs_dir.with_file_name(FILE_NAME);
        let shown = path.clone();
        let changed = disk::blocking(move || registry.store_queue(&path, &name, slots, paused).map(|()| name));
        let failed = |source| QueueError::Store { path: shown, source };
        let name = changed.await.map_err(failed)??;
        self.schedule();
        let row = self.list_queues().into_iter().find(|queue| queue.name == name);
        let none = || results::Queue { name, slots: 1, paused: false, running: 0, pending: 0 };
        Ok(row.unwrap_or_else(none))
    }

    fn store_queue(&self, path: &Path, name: &str, slots: Option<u64>, paused: Option<bool>) -> Result<(), QueueError> {
        // Held while the file is written: two changes come one after the other. Nothing else waits for this lock.
        let mut stored = self.stored_queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut next = stored.clone();
        let queue = next.entry(name.into()).or_default();
        queue.slots = slots.or(queue.slots);
        queue.paused = paused.unwrap_or(queue.paused);
        if next.len() > MAX_QUEUES {
            return Err(QueueError::TooMany(MAX_QUEUES));
        }
        queue_settings::write(path, &next).map_err(|source| QueueError::Store { path: path.into(), source })?;
        self.scheduler().settings.insert(name.into(), effective(name, &self.config, next.get(name)));
        *stored = next;
        Ok(())
    }
}
