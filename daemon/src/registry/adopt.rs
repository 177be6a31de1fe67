//! Loads all processes when a daemon starts: reads every record, and reconnects to every living shim.

use super::forget::finish_removal;
use super::scan::{Loaded, Scanned, StartChecks, scan_dir};
use super::set_aside::{SetAside, quarantined_id};
use super::spawn::RunningGuard;
use super::{Registry, RunningSlot};
use crate::backend::{MAX_HANDSHAKES, cgroup};
use crate::disk::{self, on_disk};
use crate::log::{Writer, verify};
use crate::proc::checkpoint::Checkpoint;
use crate::proc::handle::ProcInit;
use crate::proc::task::{Task, TaskStart};
use crate::proc::{Proc, tree, watcher};
use crate::store::remove_tree::remove_tree;
use crate::store::requests::Requests;
use crate::sys;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toold_proto::ProcId;
use toold_shim::hooks;

/// Number of tries, before the first request is served, to read what could not be read for a lack of resources.
const START_TRIES: u32 = 5;
/// Delay before the second try. It doubles with each one.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Maximum delay between two tries to read a record, while requests are served.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The end of the journal, which may be newer than the records: the newest state of each process in the last segment.
pub struct JournalTail {
    pub states: HashMap<u64, (u64, Vec<u8>)>,
    /// Number of the last event on disk.
    pub last: u64,
}

impl Registry {
    /// Reads all records in parallel, and starts tasks for those that are open. When it returns, every process that could
    /// be read is in the table, and the others are tried again; updates from living shims arrive while requests are
    /// served.
    pub async fn adopt(self: &Arc<Self>, tail: JournalTail) -> io::Result<usize> {
        let tail = Arc::new(tail);
        let mut dirs = self.list_dirs().await?;
        let count = dirs.len();
        let (mut all, mut delay) = (Vec::with_capacity(count), MIN_RETRY_DELAY);
        for attempt in 1..=START_TRIES {
            let (unread, read): (Vec<_>, Vec<_>) = scan_all(dirs, &tail).await?.into_iter().partition(
                |(scanned, _)| matches!(scanned, Scanned::Unread(e) if attempt < START_TRIES && sys::is_transient(e)),
            );
            all.extend(read);
            if unread.is_empty() {
                break;
            }
            tracing::warn!(count = unread.len(), "failed to read records for a lack of resources; trying again");
            dirs = unread.into_iter().map(|(_, dir)| dir).collect();
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
        let checkpoint = all.iter().filter_map(|(scanned, _)| scanned.loaded()?.checkpoint);
        let highest = checkpoint.map(|checkpoint| checkpoint.seq).max().unwrap_or(0);
        self.sink.journal.advance_past(highest).into_iter().for_each(|damage| self.report_damage(damage));
        // Connect to shims after all records are loaded, so that the first request does not wait for 1,000 handshakes.
        let permits = self.launcher.handshakes.acquire_many(MAX_HANDSHAKES).await;
        let groups = all.iter().filter_map(|(scanned, _)| Some(scanned.loaded()?.spec.cgroups.clone()));
        cgroup::sweep(cgroup::GroupOwner::new(&self.procs_dir), &groups.flatten().collect());
        let mut unread = Vec::new();
        for (scanned, dir) in all {
            unread.extend(self.adopt_one(scanned, dir, &tail));
        }
        drop(permits);
        self.verify_in_background();
        self.end_without_environment().await;
        self.supervise_adopted();
        self.finish_restarts();
        if !unread.is_empty() {
            tokio::spawn(on_disk(self.clone().retry_unread(unread, tail)));
        }
        Ok(count)
    }

    /// Has the log compared with its checksums in the background. `writer`: as it was when its files were first read.
    fn verify_later(&self, proc: &Arc<Proc>, writer: Writer) {
        if let Ok(mut all) = self.unverified.lock() {
            all.push((Arc::downgrade(proc), writer));
        }
    }

    fn verify_in_background(self: &Arc<Self>) {
        let registry = self.clone();
        tokio::spawn(disk::blocking(move || registry.verify_logs()));
    }

    /// Compares the logs with their checksums for which there was no time at the start, one after the other.
    fn verify_logs(&self) {
        let all = self.unverified.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
        for (proc, writer) in all.iter().filter_map(|(proc, writer)| Some((proc.upgrade()?, *writer))) {
            let Some(sums) = proc.state().progress.sums else { continue };
            match verify(&proc.dir, &sums, writer, u64::MAX) {
                Ok(changed) => {
                    let changed = changed.into_iter().flatten();
                    changed.for_each(|file| proc.report_damage(file.quarantine_and_describe(&proc.dir)));
                }
                // It was forgotten meanwhile, or a later read finds the same error.
                Err(e) => tracing::warn!(id = %proc.spec.id, %e, "failed to compare a log with its checksums"),
            }
        }
    }

    /// Lists the process directories. Waits a moment if the system has no descriptor left.
    async fn list_dirs(&self) -> io::Result<Vec<PathBuf>> {
        let mut delay = MIN_RETRY_DELAY;
        for _ in 1..START_TRIES {
            match self.try_list_dirs() {
                Err(e) if sys::is_transient(&e) => tokio::time::sleep(delay).await,
                listed => return listed,
            }
            delay *= 2;
        }
        self.try_list_dirs()
    }

    fn try_list_dirs(&self) -> io::Result<Vec<PathBuf>> {
        let mut dirs = Vec::new();
        for entry in std::fs::read_dir(&self.procs_dir)? {
            let path = entry?.path();
            match path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<ProcId>().ok()) {
                Some(_) => dirs.push(path),
                None if finish_removal(&path) => {}
                None => {
                    // Anything else is not a process directory.
                    if let Some(id) = quarantined_id(&path) {
                        let text = format!("{}: quarantined by an earlier daemon", path.display());
                        self.set_asides().insert(id, SetAside::Damaged(text));
                    }
                }
            }
        }
        Ok(dirs)
    }

    /// Reads records that could not be read, until none is left. This is a poll: the kernel has no event for a free
    /// descriptor, a changed mode or a disk that works again.
    async fn retry_unread(self: Arc<Self>, mut dirs: Vec<PathBuf>, tail: Arc<JournalTail>) {
        let mut delay = MIN_RETRY_DELAY;
        while !dirs.is_empty() {
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(MAX_RETRY_DELAY);
            match scan_all(dirs.clone(), &tail).await {
                Ok(all) => {
                    dirs.clear();
                    for (scanned, dir) in all {
                        dirs.extend(self.adopt_one(scanned, dir, &tail));
                    }
                    self.verify_in_background();
                    self.end_without_environment().await;
                    self.supervise_adopted();
                    self.finish_restarts();
                    // A pending process may have waited for one of these.
                    self.pended.notify_one();
                }
                Err(e) => tracing::warn!(%e, "failed to read records; trying again"),
            }
        }
    }

    /// Puts one process into the table. Returns the directory of one that has to be tried again.
    fn adopt_one(self: &Arc<Self>, scanned: Scanned, dir: PathBuf, tail: &JournalTail) -> Option<PathBuf> {
        let id = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let set_aside = |aside: SetAside| {
            if let Ok(id) = id.parse() {
                self.set_asides().insert(id, aside);
            }
        };
        match scanned {
            Scanned::Finished(mut loaded) => {
                let requests = std::mem::take(&mut loaded.requests);
                cgroup::remove(&loaded.spec.cgroups);
                let (restored, unreadable) = (loaded.lost_checkpoint, loaded.unreadable.clone());
                let (unverified, started_ms) = (loaded.unverified, loaded.started_ms);
                let proc = Arc::new(Proc::without_task(self.init_of(*loaded, tail)));
                proc.set_started_ms(started_ms);
                proc.set_unreadable(unreadable);
                self.insert_adopted(&proc, requests, restored);
                self.queue_found(&proc);
                self.queue_ended_stage(&proc);
                if unverified {
                    self.verify_later(&proc, Writer::Ended);
                }
                proc.scan_adopted_tail(&proc.published_state());
                proc.publish_due(&proc.published_state());
                if !proc.is_scanned(&proc.published_state()) {
                    tokio::spawn(on_disk(watcher::run(proc)));
                }
            }
            Scanned::Pending { mut loaded, locked, nonce } => {
                let requests = std::mem::take(&mut loaded.requests);
                let restored = loaded.lost_checkpoint;
                let proc = Arc::new(Proc::without_task(self.init_of(*loaded, tail)));
                self.insert_adopted(&proc, requests, restored);
                self.adopt_pending(&proc, locked, nonce);
            }
            Scanned::NeverStarted(locked) => {
                hooks::at("recovery.discard");
                if let Err(e) = remove_tree(&dir) {
                    tracing::warn!(dir = %dir.display(), %e, "failed to remove a record that was never started");
                }
                drop(locked);
            }
            Scanned::Damaged(error) => {
                let text = quarantine(&dir, &id, &error);
                tracing::error!(damage = text, "found damaged state");
                set_aside(SetAside::Damaged(text));
            }
            Scanned::Unread(error) => {
                let text = format!("{}: the record cannot be read: {error}; it is tried again", dir.display());
                tracing::error!(text, "a record cannot be read");
                set_aside(SetAside::Unread(text));
                return Some(dir);
            }
            Scanned::Open { mut loaded, record, nonce } => {
                let requests = std::mem::take(&mut loaded.requests);
                let (running, restored) = (!loaded.state.has_ended(), loaded.lost_checkpoint);
                let (unverified, started_ms) = (loaded.unverified, loaded.started_ms);
                let (proc, inbox) = Proc::new(self.init_of(*loaded, tail));
                proc.set_record(record.clone());
                proc.set_started_ms(started_ms);
                let proc = Arc::new(proc);
                self.insert_adopted(&proc, requests, restored);
                if unverified {
                    self.verify_later(&proc, Writer::MayRun);
                }
                // Publish what the record already shows: the shim does not report it again.
                proc.scan_adopted_tail(&proc.published_state());
                proc.publish_due(&proc.published_state());
                if running {
                    self.scheduler().add_started(proc.clone());
                }
                let slot = if running { RunningSlot::take(self, usize::MAX) } else { None };
                let task = Task::new(proc.clone(), inbox, self.launcher.clone(), record, nonce);
                let guard = slot.map(|slot| Box::new(slot) as RunningGuard);
                self.run_task(task, TaskStart::Adopt, proc.clone(), guard);
                proc.fetch_secrets();
            }
        }
        None
    }

    /// Puts a process into the table, from where it can be found from now on.
    fn insert_adopted(&self, proc: &Arc<Proc>, requests: Requests, restored_checkpoint: bool) {
        for damage in proc.damage() {
            tracing::error!(dir = %proc.dir.display(), damage, "found damaged state");
        }
        if !proc.published_state().is_final() {
            self.note_sandbox(proc);
        }
        {
            let mut table = self.table();
            table.insert(proc.clone());
            table.load_aliases(proc.spec.id, requests);
        }
        self.set_asides().remove(&proc.spec.id);
        if restored_checkpoint {
            proc.update_checkpoint(|_| {});
        }
    }

    fn init_of(&self, loaded: Loaded, tail: &JournalTail) -> ProcInit {
        let Loaded { spec, dir, state, checkpoint, lost_checkpoint, damage, .. } = loaded;
        let id = spec.id.bits();
        let mut newest = tail.states.get(&id).cloned();
        if checkpoint.is_none() && spec.journaled && newest.is_none() {
            // Zeros in the record of an earlier version may be damage too.
            newest = self.sink.journal.newest_state(id).unwrap_or_default();
        }
        let checkpoint = match checkpoint {
            Some(checkpoint) => checkpoint,
            None if newest.is_some() => Checkpoint::default(),
            None if lost_checkpoint => Checkpoint::all_published(&state),
            None if spec.journaled => Checkpoint::default(),
            None => Checkpoint::for_legacy_record(&state),
        };
        let checkpoint = checkpoint.merge_journal(newest.as_ref(), tail.last);
        ProcInit { spec, dir, state, checkpoint, sink: self.sink.clone(), patterns: None, damage }
    }
}

/// Reads directories in parallel.
async fn scan_all(dirs: Vec<PathBuf>, tail: &Arc<JournalTail>) -> io::Result<Vec<(Scanned, PathBuf)>> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let share = dirs.len().div_ceil(workers).max(1);
    let checks = Arc::new(StartChecks::default());
    let mut readers = Vec::new();
    for part in dirs.chunks(share) {
        let (part, tail, checks) = (part.to_vec(), tail.clone(), checks.clone());
        readers.push(tokio::spawn(disk::blocking(move || {
            let scan = |dir: PathBuf| (scan_dir(&dir, tail.has_events(&dir), &checks), dir);
            part.into_iter().map(scan).collect::<Vec<_>>()
        })));
    }
    let mut all = Vec::with_capacity(dirs.len());
    for reader in readers {
        all.extend(reader.await.map_err(io::Error::other)??);
    }
    Ok(all)
}

impl JournalTail {
    /// Returns true if the last segment has events of the process in this directory.
    fn has_events(&self, dir: &Path) -> bool {
        let id = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<ProcId>().ok());
        id.is_some_and(|id| self.states.contains_key(&id.bits()))
    }
}

/// Moves a damaged directory aside and describes it.
fn quarantine(dir: &Path, id: &str, error: &io::Error) -> String {
    let quarantine = dir.with_extension(format!("damaged-{}", std::process::id()));
    let moved = std::fs::rename(dir, &quarantine);
    let path = if moved.is_ok() { quarantine } else { dir.to_path_buf() };
    let alive = match tree::shim_of(id) {
        Some(shim) => {
            let pids: Vec<String> = tree::descendants(shim).iter().map(ToString::to_string).collect();
            format!("; its shim, pid {shim}, still runs pid {}: kill them yourself", pids.join(", "))
        }
        None => String::new(),
    };
    format!("{}: {error}{alive}", path.display())
}
