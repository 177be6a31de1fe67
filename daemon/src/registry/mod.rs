//! All processes: spawn, look up, list, adopt, forget.

mod adopt;
mod end_session;
mod flush;
mod forget;
mod name_locks;
mod select;
mod single;
mod spawn;
mod table;

pub use adopt::JournalTail;
pub use select::{Selection, Selector};
pub use single::{NamePolicy, Spawned};
pub use spawn::{SpawnError, SpawnRequest, spawn_failed};

use crate::backend::Launcher;
use crate::config::Config;
use crate::proc::Proc;
use crate::proc::event_sink::EventSink;
use crate::store::dir_pool;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use table::Table;
use tokio::sync::Notify;
use toold_proto::{ErrorKind, ProcId, RpcError};

/// How many ids an ambiguous prefix names in its error.
const SHOWN_MATCHES: usize = 8;

pub struct Registry {
    pub config: Config,
    pub procs_dir: PathBuf,
    pub launcher: Arc<Launcher>,
    pub sink: Arc<EventSink>,
    table: Mutex<Table>,
    names: name_locks::NameLocks,
    running: AtomicUsize,
    seq: AtomicU64,
    boot: [u8; 16],
    /// Directories for processes to come.
    dir_pool: Arc<dir_pool::DirPool>,
    /// Something finished: retention has a look.
    pub finished: Notify,
    ended: Mutex<forget::RetentionQueue>,
    /// Directories of records that ended and may not be on the disk yet.
    unsynced: Mutex<Vec<PathBuf>>,
    ended_record: Notify,
    damaged: Mutex<Vec<String>>,
}

impl Registry {
    pub fn new(config: Config, procs_dir: PathBuf, launcher: Arc<Launcher>, sink: Arc<EventSink>) -> Arc<Registry> {
        let dir_pool = dir_pool::DirPool::open(procs_dir.with_file_name("ready"), &procs_dir, config.survive_power_cut);
        Arc::new(Registry {
            config,
            dir_pool: Arc::new(dir_pool),
            procs_dir,
            launcher,
            sink,
            table: Mutex::new(Table::default()),
            names: name_locks::NameLocks::default(),
            running: AtomicUsize::new(0),
            seq: AtomicU64::new(1),
            boot: crate::clock::boot_id(),
            finished: Notify::new(),
            ended: Mutex::new(forget::RetentionQueue::default()),
            unsynced: Mutex::new(Vec::new()),
            ended_record: Notify::new(),
            damaged: Mutex::new(Vec::new()),
        })
    }

    /// The table. Held for look-ups and inserts only, never across an await.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The process that `text` names: an id, a name, or a prefix that fits only one.
    pub fn find(&self, param: &str, text: &str) -> Result<Arc<Proc>, RpcError> {
        if text.is_empty() {
            return Err(RpcError::param(param, "must name a process"));
        }
        let table = self.table();
        if let Some(proc) = text.parse().ok().and_then(|id: ProcId| table.get(id)) {
            return Ok(proc);
        }
        if let Some(proc) = table.named(text) {
            return Ok(proc);
        }
        let matches: Vec<ProcId> = match ProcId::prefix_range(text) {
            Some((low, high)) => table.range(low, high).take(SHOWN_MATCHES).collect(),
            None => Vec::new(),
        };
        match matches.as_slice() {
            [] => {
                let short = match ProcId::is_short_prefix(text) {
                    true => ", and the start of an id needs at least 4 digits",
                    false => "",
                };
                let message = format!("no process {text:?}{short}; `list` shows what there is");
                Err(RpcError::new(ErrorKind::NotFound, message).with("id", text))
            }
            [one] => table.get(*one).ok_or_else(|| RpcError::new(ErrorKind::NotFound, format!("no process {text:?}"))),
            many => {
                let shown: Vec<String> = many.iter().map(ToString::to_string).collect();
                let message = format!("{text:?} fits more than one process: {}; give more digits", shown.join(", "));
                Err(RpcError::new(ErrorKind::AmbiguousId, message).with("matches", shown))
            }
        }
    }

    /// Every process, newest first.
    pub fn newest_first(&self) -> Vec<Arc<Proc>> {
        self.table().newest_first().cloned().collect()
    }

    /// The newest `most` of them, and how many there are.
    pub fn newest(&self, most: usize) -> (Vec<Arc<Proc>>, usize) {
        let table = self.table();
        (table.newest_first().take(most).cloned().collect(), table.len())
    }

    /// Programs that run or are starting.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Records that were set aside since the start.
    pub fn damaged(&self) -> Vec<String> {
        self.damaged.lock().map(|d| d.clone()).unwrap_or_default()
    }

    pub fn report_damage(&self, what: String) {
        tracing::error!(what, "set aside as damaged");
        if let Ok(mut damaged) = self.damaged.lock() {
            damaged.push(what);
        }
    }
}

/// Counts one running program until it ends.
struct RunningSlot {
    registry: Arc<Registry>,
}

impl RunningSlot {
    /// None when `max_running` do.
    fn take(registry: &Arc<Registry>, limit: usize) -> Option<RunningSlot> {
        let more = |n: usize| (n < limit).then_some(n + 1);
        registry.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(RunningSlot { registry: registry.clone() })
    }
}

impl Drop for RunningSlot {
    fn drop(&mut self) {
        self.registry.running.fetch_sub(1, Ordering::AcqRel);
    }
}
