//! Loads all processes when a daemon starts: reads every record, and reconnects to every living shim.

use super::forget::finish_removal;
use super::{Registry, RunningSlot};
use crate::backend::{MAX_HANDSHAKES, cgroup};
use crate::log::check;
use crate::proc::checkpoint::Checkpoint;
use crate::proc::handle::ProcInit;
use crate::proc::state::{Phase, State, Update};
use crate::proc::task::{Task, TaskStart};
use crate::proc::{Proc, lost, tree, watcher};
use crate::store::record::{LockOwner, Record, Spec};
use crate::store::requests::{self, Requests};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::slots::Progress;
use toold_proto::ProcId;
use toold_shim::hooks;

/// The content of one process directory.
enum Scanned {
    /// A process in its final state, with the damage found in its log.
    Finished(Box<Loaded>, Vec<String>),
    /// A shim lives, or died without recording an end: a task finds out.
    Open {
        loaded: Box<Loaded>,
        record: Arc<Record>,
        nonce: [u8; 16],
    },
    /// Nothing was started, and the call that created it was never answered: it is removed. Its lock is held until
    /// then, or a late shim could still start it.
    NeverStarted(Option<Record>),
    Damaged(io::Error),
}

/// A process as its directory describes it.
struct Loaded {
    spec: Spec,
    dir: PathBuf,
    state: State,
    checkpoint: Option<Checkpoint>,
    requests: io::Result<Requests>,
}

/// The end of the journal, which may be newer than the records: the newest state of each process in the last segment.
pub struct JournalTail {
    pub states: HashMap<u64, (u64, Vec<u8>)>,
    /// Number of the last event on disk.
    pub last: u64,
}

impl Registry {
    /// Reads all records in parallel, and starts tasks for those that are open. When it returns, every process is in
    /// the table; updates from living shims arrive while requests are served.
    pub async fn adopt(self: &Arc<Self>, tail: &JournalTail) -> io::Result<usize> {
        let mut dirs = Vec::new();
        for entry in std::fs::read_dir(&self.procs_dir)? {
            let path = entry?.path();
            match path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<ProcId>().ok()) {
                Some(_) => dirs.push(path),
                None if finish_removal(&path) => {}
                // Quarantined earlier, or not a process directory.
                None => continue,
            }
        }
        let count = dirs.len();
        let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        let share = count.div_ceil(workers).max(1);
        let mut readers = Vec::new();
        for part in dirs.chunks(share) {
            let part = part.to_vec();
            readers.push(tokio::task::spawn_blocking(move || {
                part.into_iter().map(|dir| (scan_dir(&dir), dir)).collect::<Vec<_>>()
            }));
        }
        let mut all = Vec::with_capacity(count);
        for reader in readers {
            all.extend(reader.await.map_err(io::Error::other)?);
        }
        let checkpoint = all.iter().filter_map(|(scanned, _)| scanned.loaded()?.checkpoint);
        let highest = checkpoint.map(|checkpoint| checkpoint.seq).max().unwrap_or(0);
        self.sink.journal.advance_past(highest).into_iter().for_each(|damage| self.report_damage(damage));
        // Connect to shims after all records are loaded, so that the first request does not wait for 1,000 handshakes.
        let permits = self.launcher.handshakes.acquire_many(MAX_HANDSHAKES).await;
        for (scanned, dir) in all {
            self.adopt_one(scanned, &dir, tail);
        }
        drop(permits);
        Ok(count)
    }

    fn adopt_one(self: &Arc<Self>, scanned: Scanned, dir: &Path, tail: &JournalTail) {
        match scanned {
            Scanned::Finished(mut loaded, damage) => {
                let requests = self.checked_requests(&mut loaded);
                for damage in damage {
                    self.report_damage(format!("{}: {damage}", loaded.dir.display()));
                }
                cgroup::remove(&loaded.spec.cgroups);
                let proc = Arc::new(Proc::without_task(self.init_of(*loaded, tail)));
                self.queue_retention(&proc);
                self.insert_adopted(&proc, requests);
                proc.scan_tail(&proc.published_state());
                proc.publish_due(&proc.published_state());
                if !proc.is_scanned(&proc.published_state()) {
                    tokio::spawn(watcher::run(proc));
                }
            }
            Scanned::NeverStarted(locked) => {
                hooks::at("recovery.discard");
                if let Err(e) = std::fs::remove_dir_all(dir) {
                    tracing::warn!(dir = %dir.display(), %e, "failed to remove a record that was never started");
                }
                drop(locked);
            }
            Scanned::Damaged(error) => {
                let quarantine = dir.with_extension(format!("damaged-{}", std::process::id()));
                let moved = std::fs::rename(dir, &quarantine);
                let path = if moved.is_ok() { quarantine } else { dir.to_path_buf() };
                let id = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                let alive = match tree::shim_of(id) {
                    Some(shim) => {
                        let pids: Vec<String> = tree::descendants(shim).iter().map(ToString::to_string).collect();
                        format!("; its shim, pid {shim}, still runs pid {}: kill them yourself", pids.join(", "))
                    }
                    None => String::new(),
                };
                self.report_damage(format!("{}: {error}{alive}", path.display()));
            }
            Scanned::Open { mut loaded, record, nonce } => {
                let requests = self.checked_requests(&mut loaded);
                let running = !loaded.state.has_ended();
                let (proc, inbox) = Proc::new(self.init_of(*loaded, tail));
                proc.set_record(record.clone());
                let proc = Arc::new(proc);
                self.insert_adopted(&proc, requests);
                // Publish what the record already shows: the shim does not report it again.
                proc.scan_tail(&proc.published_state());
                proc.publish_due(&proc.published_state());
                let slot = if running { RunningSlot::take(self, usize::MAX) } else { None };
                let task = Task::new(proc.clone(), inbox, self.launcher.clone(), record, nonce);
                self.run_task(task, TaskStart::Adopt, proc, slot);
            }
        }
    }
}

impl Registry {
    fn insert_adopted(&self, proc: &Arc<Proc>, requests: Requests) {
        let mut table = self.table();
        table.insert(proc.clone());
        table.load_aliases(proc.spec.id, requests);
    }

    /// Takes the remembered requests of a process, and reports those that cannot be read.
    fn checked_requests(&self, loaded: &mut Loaded) -> Requests {
        match std::mem::replace(&mut loaded.requests, Ok(Requests::default())) {
            Ok(requests) => {
                if requests.damaged > 0 {
                    let (dir, count) = (loaded.dir.display(), requests.damaged);
                    self.report_damage(format!("{dir}/requests: {count} request ids cannot be read"));
                }
                requests
            }
            Err(e) => {
                self.report_damage(format!("{}/requests: {e}", loaded.dir.display()));
                Requests::default()
            }
        }
    }

    fn init_of(&self, loaded: Loaded, tail: &JournalTail) -> ProcInit {
        let Loaded { spec, dir, state, checkpoint, requests: _ } = loaded;
        let checkpoint = match checkpoint {
            Some(checkpoint) => checkpoint,
            None if spec.journaled => Checkpoint::default(),
            None => Checkpoint::for_legacy_record(&state),
        };
        let checkpoint = checkpoint.merge_journal(tail.states.get(&spec.id.bits()), tail.last);
        ProcInit { spec, dir, state, checkpoint, sink: self.sink.clone(), patterns: None }
    }
}

impl Scanned {
    fn loaded(&self) -> Option<&Loaded> {
        match self {
            Scanned::Finished(loaded, _) | Scanned::Open { loaded, .. } => Some(loaded),
            Scanned::NeverStarted(_) | Scanned::Damaged(_) => None,
        }
    }
}

/// Reads one directory. The owner of the lock decides how the process is resolved.
fn scan_dir(dir: &Path) -> Scanned {
    hooks::at("recovery.look");
    match read(dir) {
        Ok(scanned) => scanned,
        Err(e) => Scanned::Damaged(e),
    }
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

fn read(dir: &Path) -> io::Result<Scanned> {
    let record = match Record::open(dir) {
        // The daemon died between creating the directory and the record.
        Err(e) if e.kind() == io::ErrorKind::NotFound && is_empty(dir) => return Ok(Scanned::NeverStarted(None)),
        opened => opened?,
    };
    let lock = record.lock();
    if lock == LockOwner::Daemon && record.is_empty()? {
        // The daemon died between creating the record and writing it.
        return Ok(Scanned::NeverStarted(Some(record)));
    }
    // Read after trying the lock: if we hold it, no shim writes any more.
    let facts = record.facts()?;
    if lock == LockOwner::Daemon && facts.launch.is_none() && facts.exit.is_none() {
        // Nothing was started, so it does not matter whether the whole spec was written.
        return Ok(Scanned::NeverStarted(Some(record)));
    }
    let spec = record.spec(&facts.head)?;
    if spec.id.to_string() != dir.file_name().and_then(|n| n.to_str()).unwrap_or_default() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the record belongs to another process"));
    }
    let mut state = State::from_facts(&facts);
    if state.progress == Progress::default()
        && let Some(size) = spec.pty
    {
        state.progress.rows = size.rows as u16;
        state.progress.cols = size.cols as u16;
    }
    if lock == LockOwner::Daemon && matches!(state.phase, Phase::Exited { .. }) && state.closed {
        state.step(&Update::Gone);
    }
    // The shim is dead, and so is the program, unless a task has to kill it and to wait for the kernel's wait status.
    if lock == LockOwner::Daemon
        && !state.is_final()
        && (state.has_ended() || tree::pin(state.pid, state.ticks).is_none())
    {
        lost::kill_orphans(Some(&facts), lost::PidIdentity::Unverified);
        for update in lost::final_updates(dir, &record, None) {
            state.step(&update);
        }
    }
    let checkpoint = Checkpoint::read(&facts.checkpoint);
    if state.has_ended() && spec.journaled && !checkpoint.is_some_and(|checkpoint| checkpoint.exited) {
        // The exit was never published. The shim may still be waiting for the disk, or died before that.
        lost::to_disk(dir, &record);
    }
    let loaded = Box::new(Loaded { spec, dir: dir.to_path_buf(), state, checkpoint, requests: requests::read(dir) });
    if state.is_final() {
        return Ok(Scanned::Finished(loaded, check(dir, &state.progress.counts)));
    }
    record.unlock();
    Ok(Scanned::Open { loaded, record: Arc::new(record), nonce: facts.head.nonce })
}
