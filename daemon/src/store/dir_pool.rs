//! A pool of prepared process directories, so that a start finds one. Preparing one takes a file system 0.06 ms, and ten
//! times that while it remembers many deletions; renaming one takes 0.02 ms.

use super::record::{self, Record, is_damage, open_regular};
use crate::disk;
use crate::sys;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use toold_format::slots::PAGE_LEN;

/// Number of directories in a full pool. A refill starts when half of them are used, so a burst of starts finds enough.
const CAPACITY: usize = 64;
/// At or below this number a refill does not wait for a pause between starts. It is also the number prepared at a time.
/// Above it a refill waits: during a burst it would take time from the starts.
const LOW_WATER: usize = 8;
/// Time without a start after which a burst counts as over.
const REFILL_PAUSE: Duration = Duration::from_millis(5);
/// Bytes of a record that are allocated on disk ahead: the slots and usually the whole spec. Overwriting them takes a third
/// of the time of writing them first, and needs no commit of the file system's journal.
const PREALLOC_LEN: usize = 2 * PAGE_LEN;
/// First bytes of a durable record that no process has used.
const UNUSED: &[u8; 8] = b"tooldnew";
/// Number of starts that wait for the disk at the same time when the pool is empty. The others queue.
const MAX_CONCURRENT: usize = 4;

/// A directory with an unused record.
#[derive(Debug)]
pub struct PreparedDir {
    pub dir: PathBuf,
    pub record: File,
}

/// Creates a directory and the record in it.
pub fn prepare(dir: PathBuf) -> io::Result<PreparedDir> {
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let record = File::options().read(true).write(true).create_new(true).mode(0o600).open(dir.join("record"));
    match record {
        Ok(record) => Ok(PreparedDir { dir, record }),
        Err(e) => {
            let _ = std::fs::remove_dir(&dir);
            Err(e)
        }
    }
}

/// Waits until a record, its name and its directory's name are durable.
pub fn sync_all(dir: &Path, record: &File) -> io::Result<()> {
    record.sync_all()?;
    File::open(dir)?.sync_all()?;
    dir.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// The prepared directories of one daemon.
#[derive(Debug)]
pub struct DirPool {
    dir: PathBuf,
    /// Directories are durable before they enter the pool.
    durable: bool,
    dirs: Mutex<Vec<PreparedDir>>,
    /// Name of the next directory.
    next: AtomicU64,
    /// Number of `take` calls.
    takes: AtomicU64,
    refilling: AtomicBool,
    /// Permits to wait for the disk.
    preparing: Semaphore,
}

impl DirPool {
    /// Takes over the unused directories that an earlier daemon left in `dir`, and removes those it had started to use.
    /// A used directory that is back here because a power cut undid its rename is renamed into `procs` again. Returns
    /// descriptions of damaged directories, which are quarantined in `procs`.
    pub fn open(dir: PathBuf, procs: &Path, durable: bool) -> (DirPool, Vec<String>) {
        let (mut dirs, mut next, mut damaged) = (Vec::new(), 0, Vec::new());
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Some(number) = number(&path) {
                next = next.max(number + 1);
            }
            match open_unused(&path, durable) {
                Some(record) if dirs.len() < CAPACITY => dirs.push(PreparedDir { dir: path, record }),
                Some(_) => remove(&path),
                None => damaged.extend(restore_or_remove(&path, procs)),
            }
        }
        let pool = DirPool {
            dir,
            durable,
            dirs: Mutex::new(dirs),
            next: AtomicU64::new(next),
            takes: AtomicU64::new(0),
            refilling: AtomicBool::new(false),
            preparing: Semaphore::new(MAX_CONCURRENT),
        };
        (pool, damaged)
    }

    /// Takes a directory, or prepares one. Does not block the runtime while it waits for the disk.
    pub async fn take_or_prepare(self: &Arc<Self>) -> Option<PreparedDir> {
        if let Some(prepared) = self.take() {
            return Some(prepared);
        }
        let _permit = self.preparing.acquire().await;
        let pool = self.clone();
        disk::blocking(move || pool.take().or_else(|| pool.prepare_up_to(1).ok()?.pop())).await.ok()?
    }

    /// Takes a directory, or None if the pool is empty.
    pub fn take(&self) -> Option<PreparedDir> {
        self.takes.fetch_add(1, Ordering::Relaxed);
        self.dirs.lock().ok()?.pop()
    }

    /// Returns an unused directory to the pool.
    pub fn give_back(&self, prepared: PreparedDir) {
        if let Ok(mut dirs) = self.dirs.lock() {
            dirs.push(prepared);
        }
    }

    /// Starts a task that refills the pool, if it is half empty and no such task runs.
    pub fn refill_in_background(self: &Arc<Self>) {
        if self.begin_refill() {
            tokio::spawn(self.clone().run_refill());
        }
    }

    /// Prepares a few directories at a time: in pauses between starts, or at once when the pool is nearly empty.
    async fn run_refill(self: Arc<Self>) {
        loop {
            let takes = self.takes.load(Ordering::Relaxed);
            if !self.is_nearly_empty() {
                tokio::time::sleep(REFILL_PAUSE).await;
                if self.takes.load(Ordering::Relaxed) != takes {
                    continue;
                }
            }
            let pool = self.clone();
            if !disk::blocking(move || pool.refill_some()).await.unwrap_or(false) {
                break;
            }
        }
        self.end_refill();
    }

    /// Returns true if a refill is due and the caller has to do it. The caller calls `end_refill` afterwards.
    fn begin_refill(&self) -> bool {
        self.dirs.lock().is_ok_and(|dirs| dirs.len() <= CAPACITY / 2) && !self.refilling.swap(true, Ordering::AcqRel)
    }

    fn end_refill(&self) {
        self.refilling.store(false, Ordering::Release);
    }

    fn is_nearly_empty(&self) -> bool {
        self.dirs.lock().is_ok_and(|dirs| dirs.len() <= LOW_WATER)
    }

    /// Prepares up to `LOW_WATER` directories. Returns false when the pool is full or the disk refuses more.
    fn refill_some(&self) -> bool {
        let free = self.dirs.lock().map_or(0, |dirs| CAPACITY.saturating_sub(dirs.len()));
        if free == 0 {
            return false;
        }
        let Ok(some) = self.prepare_up_to(free.min(LOW_WATER)) else { return false };
        let more = some.len() == LOW_WATER;
        if let Ok(mut dirs) = self.dirs.lock() {
            dirs.extend(some);
        }
        more
    }

    fn prepare_up_to(&self, count: usize) -> io::Result<Vec<PreparedDir>> {
        // If this fails, a start creates its own directory and reports the reason.
        let _ = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.dir);
        let first = self.next.fetch_add(count as u64, Ordering::Relaxed);
        let mut some = Vec::new();
        let prepared = (first..).take(count).try_for_each(|number| {
            some.push(prepare(self.dir.join(number.to_string()))?);
            Ok(())
        });
        match prepared.and_then(|()| if self.durable { self.sync(&some) } else { Ok(()) }) {
            Ok(()) => Ok(some),
            Err(e) => {
                some.iter().for_each(|prepared| remove(&prepared.dir));
                Err(e)
            }
        }
    }

    /// Makes directories durable. They are marked as unused only after that.
    fn sync(&self, some: &[PreparedDir]) -> io::Result<()> {
        for prepared in some {
            // Start the writeback of all before waiting for the first.
            prepared.record.write_all_at(&[0; PREALLOC_LEN], 0)?;
            let _ = sys::start_writeback(&prepared.record);
        }
        for prepared in some {
            prepared.record.sync_all()?;
            File::open(&prepared.dir)?.sync_all()?;
        }
        File::open(&self.dir)?.sync_all()?;
        some.iter().try_for_each(|prepared| prepared.record.write_all_at(UNUSED, 0))
    }
}

fn number(dir: &Path) -> Option<u64> {
    dir.file_name()?.to_str()?.parse().ok()
}

/// Opens the record of a directory that no process used. A durable one carries the mark.
fn open_unused(dir: &Path, durable: bool) -> Option<File> {
    number(dir)?;
    if !std::fs::symlink_metadata(dir).ok()?.is_dir() {
        return None;
    }
    let record = open_regular(&dir.join("record")).ok()?;
    let alone = std::fs::read_dir(dir).ok()?.count() == 1;
    let mut first = [0; UNUSED.len()];
    let marked = record.read_exact_at(&mut first, 0).is_ok() && first == *UNUSED;
    let empty = !durable && record.metadata().ok()?.len() == 0;
    (alone && (marked || empty)).then_some(record)
}

/// Returns true for the first bytes of a record that was prepared and never written.
pub fn is_unused(head: &[u8]) -> bool {
    let rest = head.strip_prefix(UNUSED).unwrap_or(head);
    rest.iter().all(|byte| *byte == 0)
}

/// The use of a directory that is not unused.
enum Used {
    /// Nothing was started there.
    Never,
    By(String),
}

/// Renames the directory of a started process back into `procs`, and removes one in which nothing was started. Returns
/// the description of a damaged one, which may have been started: it is quarantined in `procs`.
fn restore_or_remove(dir: &Path, procs: &Path) -> Option<String> {
    let restored = match use_of(dir) {
        Ok(Used::By(id)) => std::fs::rename(dir, procs.join(id)).map(|()| true),
        Ok(Used::Never) => Ok(false),
        Err(e) if is_damage(&e) => {
            let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let quarantine = procs.join(format!("ready-{name}.damaged-{}", std::process::id()));
            let moved = std::fs::rename(dir, &quarantine);
            let path = if moved.is_ok() { &quarantine } else { dir };
            return Some(format!("{}: {e}", path.display()));
        }
        Err(e) => Err(e),
    };
    match restored {
        Ok(true) => tracing::info!(dir = %dir.display(), "restored a process whose rename a power cut undid"),
        Ok(false) => remove(dir),
        // It may belong to a process, so the next daemon tries again.
        Err(e) => tracing::error!(dir = %dir.display(), %e, "failed to restore a process directory; it stays in place"),
    }
    None
}

/// Returns the use of a directory. Fails if it cannot be read now, or is damaged.
fn use_of(dir: &Path) -> io::Result<Used> {
    if number(dir).is_none() || !std::fs::symlink_metadata(dir)?.is_dir() {
        // Not made by a daemon: it never held a process.
        return Ok(Used::Never);
    }
    let mut has_output = false;
    for entry in std::fs::read_dir(dir)? {
        has_output |= entry?.file_name() != "record";
    }
    let record = match Record::open(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && !has_output => return Ok(Used::Never),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(record::bad("the record is missing")),
        opened => opened?,
    };
    let start = record.start()?;
    let facts = record.facts_from(&start)?;
    // A directory is renamed before a shim gets it, so a record that was written only in part has no launch.
    if !has_output && (start.is_blank() || record.is_unlaunched() || facts.is_unlaunched) {
        return Ok(Used::Never);
    }
    let head = facts.head.ok_or_else(|| record::bad("the head of the record is damaged"))?;
    Ok(Used::By(record.spec_from(&start, &head)?.id.to_string()))
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(e) = removed {
        tracing::warn!(path = %path.display(), %e, "failed to remove a prepared directory");
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, DirPool, LOW_WATER, PREALLOC_LEN, prepare};
    use crate::store::record::{NewRecord, Record, Spec, create_in};
    use std::os::unix::fs::FileExt;
    use toold_format::slots::{CHECKPOINT_LEN, Launch, Progress, Stage};
    use toold_proto::ProcId;

    #[test]
    fn the_next_daemon_uses_unused_directories_and_removes_the_rest() {
        for durable in [false, true] {
            let root = tempfile::tempdir().expect("a directory");
            let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
            let (pool, _) = DirPool::open(dir.clone(), &procs, durable);
            assert!(pool.take().is_none());
            assert!(pool.begin_refill());
            assert!(!pool.begin_refill(), "one task refills, not two");
            assert!(pool.is_nearly_empty());
            while pool.refill_some() {}
            pool.end_refill();
            assert!(!pool.is_nearly_empty() && !pool.begin_refill(), "the pool is full");
            let used = pool.take().expect("a directory");
            used.record.write_all_at(b"in use", 0).expect("written");
            std::fs::write(dir.join("stray"), "x").expect("written");
            std::fs::create_dir(&procs).expect("a directory");
            let (next, damaged) = DirPool::open(dir.clone(), &procs, durable);
            assert!(!used.dir.exists() && !dir.join("stray").exists());
            // The durable one has an empty launch slot. The other ends before that, which proves nothing, and it was removed.
            let quarantined = std::fs::read_dir(&procs).expect("readable").count();
            assert_eq!((damaged.len(), quarantined), (usize::from(!durable), usize::from(!durable)), "{damaged:?}");
            std::fs::remove_dir_all(&procs).expect("removed");
            let all: Vec<_> = std::iter::from_fn(|| next.take()).collect();
            assert_eq!(all.len(), CAPACITY - 1);
            assert!(all.iter().all(|prepared| prepared.dir.join("record").exists()));
            while next.refill_some() {}
            assert_eq!(std::iter::from_fn(|| next.take()).count(), CAPACITY, "no number is used twice");
            while next.refill_some() {}
            (0..CAPACITY / 2).for_each(|_| drop(next.take()));
            assert!(next.begin_refill() && !next.is_nearly_empty(), "a refill is due, and can wait for a pause");
        }
    }

    #[test]
    fn a_full_pool_prepares_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("ready");
        let (pool, _) = DirPool::open(dir.clone(), &root.path().join("procs"), true);
        (0..CAPACITY / LOW_WATER).for_each(|_| assert!(pool.refill_some(), "there is room"));
        assert!(!pool.refill_some());
        assert_eq!(std::fs::read_dir(dir).expect("readable").count(), CAPACITY);
    }

    #[test]
    fn a_durable_pool_does_not_take_over_a_directory_that_may_not_be_durable() {
        let root = tempfile::tempdir().expect("a directory");
        let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
        while DirPool::open(dir.clone(), &procs, false).0.refill_some() {}
        // Its daemon died before the directory was durable.
        let unsynced = prepare(dir.join("1000")).expect("a directory");
        unsynced.record.write_all_at(&[0; PREALLOC_LEN], 0).expect("written");
        assert!(DirPool::open(dir.clone(), &procs, true).0.take().is_none());
        assert_eq!(std::fs::read_dir(&dir).expect("readable").count(), 0, "all are removed");
    }

    fn spec(id: ProcId) -> Spec {
        let spec = format!(
            r#"{{"id": "{id}", "command": "true", "argv": ["true"], "program": "/bin/true", "cwd": "/", "backend": "local",
            "env_names": [], "stdin_pipe": false, "timeout_grace_ms": 0, "log_max_bytes": 0, "labels": {{}},
            "notify": false, "watch": [], "limits": {{}}, "created_ms": 0, "seq": 0}}"#
        );
        serde_json::from_str(&spec).expect("a spec")
    }

    #[test]
    fn a_started_process_whose_rename_a_power_cut_undid_is_restored() {
        let root = tempfile::tempdir().expect("a directory");
        let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
        std::fs::create_dir_all(&procs).expect("a directory");
        let (pool, _) = DirPool::open(dir.clone(), &procs, true);
        assert!(pool.refill_some());
        let (stage, stdin_inode) = (Stage::Launching, 0);
        let launch = Launch { stage, shim_pid: 1, pid: 0, ticks: 0, step: 0, errno: 0, at_ms: 1, stdin_inode };
        let (started, never_started) = (ProcId::from_bits(1), ProcId::from_bits(2));
        for id in [started, never_started] {
            let (spec, progress) = (spec(id), Progress::default());
            let checkpoint = &[0; CHECKPOINT_LEN];
            let new = NewRecord { spec: &spec, progress: &progress, nonce: [7; 16], boot: [1; 16], checkpoint };
            let prepared = pool.take().expect("a directory");
            let (before, named) = (prepared.dir.clone(), procs.join(id.to_string()));
            let record = create_in(prepared, &named, &new).expect("a record");
            if id == started {
                record.set_launch(&launch).expect("written");
            }
            std::fs::rename(named, before).expect("renamed");
        }
        DirPool::open(dir, &procs, true);
        let restored: Vec<_> = std::fs::read_dir(&procs).expect("readable").flatten().map(|e| e.file_name()).collect();
        assert_eq!(restored, [started.to_string().as_str()]);
        let record = Record::open(&procs.join(started.to_string())).expect("a record");
        let start = record.start().expect("a whole record");
        let head = record.facts_from(&start).expect("a whole record").head.expect("a whole head");
        assert_eq!(record.spec_from(&start, &head).expect("a whole spec").id, started);
    }
}
