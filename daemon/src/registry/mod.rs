//! All processes: starts, finds, lists, adopts and forgets them.

mod adopt;
mod confine;
mod end_session;
mod flush;
mod forget;
mod inside;
mod launch;
mod name_locks;
mod pending;
mod probe;
mod queue;
mod queues;
mod replacement;
mod request;
mod restart;
mod retry;
mod scan;
mod select;
mod set_aside;
mod spawn;
mod stage;
mod starter;
mod supervise;
mod table;

pub use adopt::JournalTail;
pub use inside::{Inside, UnknownClient};
pub use name_locks::{NameGuard, NameLocks};
pub use queues::QueueError;
pub use restart::RestartCall;
pub use select::{Selection, Selector};
pub use set_aside::SetAside;
pub use spawn::{NamePolicy, SpawnError, Spawned};

use crate::backend::Launcher;
use crate::config::Config;
use crate::log::Writer;
use crate::proc::Proc;
use crate::proc::event_sink::EventSink;
use crate::sandbox::resolve::{OwnPaths, Resolver};
use crate::sandbox::wall::Walls;
use crate::store::dir_pool;
use crate::store::queue_settings::StoredQueues;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use table::Table;
use tokio::sync::{Notify, watch};
use toold_proto::ProcId;
use toold_proto::sandbox_probe::SandboxProbeResult;

/// Number of ids that the error for an ambiguous prefix lists.
const MAX_LISTED_MATCHES: usize = 8;

/// The reason why a text names no process.
#[derive(Debug, PartialEq, Eq)]
pub enum FindError {
    /// The text is empty.
    Empty,
    NotFound(String),
    /// Its record is damaged, or cannot be read now.
    SetAside {
        id: ProcId,
        aside: SetAside,
    },
    /// The text is a prefix of several ids. `ids` lists the first of them.
    Ambiguous {
        text: String,
        ids: Vec<ProcId>,
    },
    /// The text is the name of one process and a prefix of the ids of others. `ids` has the named one first.
    NameOrPrefix {
        text: String,
        ids: Vec<ProcId>,
    },
}

pub struct Registry {
    pub config: Config,
    pub procs_dir: PathBuf,
    pub launcher: Arc<Launcher>,
    pub sink: Arc<EventSink>,
    /// Makes the plans of confined processes.
    pub resolver: Resolver,
    /// Confines processes.
    pub walls: Walls,
    /// The last check of the sandbox.
    probed: Mutex<Option<Arc<SandboxProbeResult>>>,
    /// Held during a check.
    probing: tokio::sync::Mutex<()>,
    table: Mutex<Table>,
    names: name_locks::NameLocks,
    /// The processes that wait for their turn, and the queues.
    scheduler: Mutex<queue::Queues<Arc<Proc>>>,
    /// Notified when a process was added that waits.
    pended: Notify,
    awaited: Mutex<pending::Awaited>,
    /// The queues as their file has them.
    stored_queues: Mutex<StoredQueues>,
    /// Number of programs that run or are starting.
    running: watch::Sender<usize>,
    seq: AtomicU64,
    boot: [u8; 16],
    /// Prepared directories for new processes.
    dir_pool: Arc<dir_pool::DirPool>,
    /// Notified when a process has finished, for retention.
    pub finished: Notify,
    ended: Mutex<forget::RetentionQueue>,
    /// The retention time of this start.
    opened_ms: u64,
    /// Directories of records that ended and may not be durable yet.
    unsynced: Mutex<Vec<PathBuf>>,
    ended_record: Notify,
    damaged: Mutex<Vec<String>>,
    set_aside: Mutex<set_aside::SetAsides>,
    /// Processes whose logs are compared with their checksums in the background.
    unverified: Mutex<Vec<(Weak<Proc>, Writer)>>,
    inside: inside::InsideState,
    stages: stage::StageQueue,
}

impl Registry {
    pub fn new(
        config: Config,
        procs_dir: PathBuf,
        launcher: Arc<Launcher>,
        sink: Arc<EventSink>,
        own: OwnPaths,
    ) -> Arc<Registry> {
        let ready = procs_dir.with_file_name("ready");
        let (stored_queues, damaged_queues) = queues::open(&procs_dir);
        let (dir_pool, mut damaged) = dir_pool::DirPool::open(ready, &procs_dir, config.survive_power_cut);
        damaged.extend(damaged_queues);
        let registry = Arc::new(Registry {
            walls: Walls::new(launcher.clone(), config.sandbox.mechanism),
            config,
            dir_pool: Arc::new(dir_pool),
            procs_dir,
            launcher,
            sink,
            resolver: Resolver::new(own),
            probed: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
            table: Mutex::new(Table::default()),
            names: name_locks::NameLocks::default(),
            scheduler: Mutex::default(),
            pended: Notify::new(),
            awaited: Mutex::default(),
            stored_queues: Mutex::new(StoredQueues::new()),
            running: watch::Sender::new(0),
            seq: AtomicU64::new(1),
            boot: crate::clock::boot_id(),
            finished: Notify::new(),
            ended: Mutex::new(forget::RetentionQueue::default()),
            opened_ms: crate::clock::retention_ms(),
            unsynced: Mutex::new(Vec::new()),
            ended_record: Notify::new(),
            damaged: Mutex::new(damaged),
            set_aside: Mutex::default(),
            unverified: Mutex::default(),
            inside: inside::InsideState::default(),
            stages: stage::StageQueue::default(),
        });
        registry.load_queues(&stored_queues);
        if let Ok(mut stored) = registry.stored_queues.lock() {
            *stored = stored_queues;
        }
        registry
    }

    /// Locks the table for look-ups and inserts only, never across an await.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Finds the process that `text` names: an id, a name, or a prefix of exactly one id. A name that is also the start of
    /// another's id is ambiguous: to choose one of them could kill the wrong process. A whole id, with `proc_`, never is.
    pub fn find(&self, text: &str) -> Result<Arc<Proc>, FindError> {
        if text.is_empty() {
            return Err(FindError::Empty);
        }
        let table = self.table();
        if let Some(proc) = text.parse().ok().and_then(|id: ProcId| table.get(id)) {
            return Ok(proc);
        }
        let mut ids: Vec<ProcId> = match ProcId::prefix_range(text) {
            Some((low, high)) => table.range(low, high).take(MAX_LISTED_MATCHES).collect(),
            None => Vec::new(),
        };
        if let Some(proc) = table.named(text) {
            ids.retain(|id| *id != proc.spec.id);
            if ids.is_empty() {
                return Ok(proc);
            }
            ids.insert(0, proc.spec.id);
            return Err(FindError::NameOrPrefix { text: text.into(), ids });
        }
        match ids.as_slice() {
            [] => Err(self.not_found(text)),
            [id] => table.get(*id).ok_or_else(|| FindError::NotFound(text.into())),
            _ => Err(FindError::Ambiguous { text: text.into(), ids }),
        }
    }

    /// Returns every process, newest first.
    pub fn newest_first(&self) -> Vec<Arc<Proc>> {
        self.table().newest_first().cloned().collect()
    }

    /// Returns the newest `limit` processes and the number of all.
    pub fn newest(&self, limit: usize) -> (Vec<Arc<Proc>>, usize) {
        let table = self.table();
        (table.newest_first().take(limit).cloned().collect(), table.len())
    }

    /// Returns the number of programs that run or are starting.
    pub fn running(&self) -> usize {
        *self.running.borrow()
    }
}

/// Counts one running program until it is dropped.
struct RunningSlot {
    registry: Arc<Registry>,
}

impl RunningSlot {
    /// Returns None if `limit` programs run already.
    fn take(registry: &Arc<Registry>, limit: usize) -> Option<RunningSlot> {
        let taken = registry.running.send_if_modified(|running| {
            let free = *running < limit;
            *running += usize::from(free);
            free
        });
        taken.then(|| RunningSlot { registry: registry.clone() })
    }
}

impl Drop for RunningSlot {
    fn drop(&mut self) {
        self.registry.running.send_modify(|running| *running -= 1);
        // A pending process may have waited for this.
        self.registry.sink.ends.ended.notify_one();
    }
}
