//! Directories made ahead, so that a start finds one. To make them takes a file system 0.06 ms, and ten times that while it
//! remembers many deletions; to rename one takes it 0.02 ms.

use super::record::Record;
use crate::sys;
use rustix::fs::IFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use toold_format::slots::PAGE_LEN;

/// As many are kept, once half of them were used up: what a burst of starts needs is there before it.
const CAPACITY: usize = 64;
/// With so few left as many are made at once. Before that it can wait for a pause: in a burst it would take the time of the starts.
const LOW_WATER: usize = 8;
/// What the disk has of a record before its process is known: the slots and, most times, all of the spec. To write it again is
/// a third of what it takes to write it for the first time, and needs no commit of the file system's journal.
const PREALLOC_LEN: usize = 2 * PAGE_LEN;
/// One that takes so long is made where the file system has to look for a free inode among many that were deleted lately.
const SLOW_MKDIR: Duration = Duration::from_micros(250);
/// The first bytes of a record that the disk has, and that nobody used.
const UNUSED: &[u8; 8] = b"tooldnew";
/// As many starts wait for the disk at once when none is left: the others wait for their turn.
const MAX_CONCURRENT: usize = 4;
/// What reading a record says that is not there or not whole.
const INCOMPLETE_KINDS: [io::ErrorKind; 4] =
    [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData];

/// A directory with a record in it that says nothing.
#[derive(Debug)]
pub struct PreparedDir {
    pub dir: PathBuf,
    pub record: File,
}

/// Makes a directory and the record in it.
pub fn prepare(dir: PathBuf) -> io::Result<PreparedDir> {
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let options = File::options().read(true).write(true).create_new(true).mode(0o600).open(dir.join("record"));
    match options {
        Ok(record) => Ok(PreparedDir { dir, record }),
        Err(e) => {
            let _ = std::fs::remove_dir(&dir);
            Err(e)
        }
    }
}

/// Waits until the disk has a record, its name, and that of its directory.
pub fn to_disk(dir: &Path, record: &File) -> io::Result<()> {
    record.sync_all()?;
    File::open(dir)?.sync_all()?;
    dir.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
}

/// The directories that wait.
#[derive(Debug)]
pub struct DirPool {
    dir: PathBuf,
    /// The disk has them before they are used.
    durable: bool,
    dirs: Mutex<Vec<PreparedDir>>,
    next: AtomicU64,
    taken: AtomicU64,
    refilling: AtomicBool,
    preparing: Semaphore,
}

impl DirPool {
    /// Takes over what an earlier daemon left unused in `dir`, and clears away what it had begun to use. What was used, and has
    /// its name here because a power cut undid the new one, gets that again: below `procs`.
    pub fn open(dir: PathBuf, procs: &Path, durable: bool) -> DirPool {
        let (mut dirs, mut next) = (Vec::new(), 0);
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Some(number) = number(&path) {
                next = next.max(number + 1);
            }
            match unused(&path, durable) {
                Some(record) if dirs.len() < CAPACITY => dirs.push(PreparedDir { dir: path, record }),
                Some(_) => clear(&path),
                None => restore_or_remove(&path, procs),
            }
        }
        let (dirs, next) = (Mutex::new(dirs), AtomicU64::new(next));
        let (taken, refilling, preparing) = (AtomicU64::new(0), AtomicBool::new(false), Semaphore::new(MAX_CONCURRENT));
        DirPool { dir, durable, dirs, next, taken, refilling, preparing }
    }

    /// One of them, or one that is made now. Waits for the disk without keeping others from anything.
    pub async fn take_or_prepare(self: &Arc<Self>) -> Option<PreparedDir> {
        if let dirs @ Some(_) = self.take() {
            return dirs;
        }
        let _turn = self.preparing.acquire().await;
        let pool = self.clone();
        tokio::task::spawn_blocking(move || pool.take().or_else(|| pool.prepare_up_to(1).ok()?.pop())).await.ok()?
    }

    /// One of them. None: there is none.
    pub fn take(&self) -> Option<PreparedDir> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.dirs.lock().ok()?.pop()
    }

    /// It was not needed.
    pub fn give_back(&self, one: PreparedDir) {
        if let Ok(mut dirs) = self.dirs.lock() {
            dirs.push(one);
        }
    }

    /// How often one was asked for.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether more are needed without delay.
    pub fn is_nearly_empty(&self) -> bool {
        self.dirs.lock().is_ok_and(|dirs| dirs.len() <= LOW_WATER)
    }

    /// Whether it is time to make more. True for one caller, who then makes them.
    pub fn begin_refill(&self) -> bool {
        self.dirs.lock().is_ok_and(|dirs| dirs.len() <= CAPACITY / 2) && !self.refilling.swap(true, Ordering::AcqRel)
    }

    /// Makes a few, or as many as the disk allows. False: there are enough, or there is no place for more.
    pub fn refill_some(&self) -> bool {
        let room = self.dirs.lock().map_or(0, |dirs| CAPACITY.saturating_sub(dirs.len()));
        if room == 0 {
            return false;
        }
        let Ok(some) = self.prepare_up_to(room.min(LOW_WATER)) else { return false };
        let more = some.len() == LOW_WATER;
        if let Ok(mut dirs) = self.dirs.lock() {
            dirs.extend(some);
        }
        more
    }

    fn prepare_up_to(&self, count: usize) -> io::Result<Vec<PreparedDir>> {
        // Where there is no place for them a start makes its own directory, and says what is wrong.
        let _ = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.dir);
        let first = self.next.fetch_add(count as u64, Ordering::Relaxed);
        let (mut some, began) = (Vec::new(), Instant::now());
        let dirs = (first..).take(count).try_for_each(|number| {
            some.push(prepare(self.dir.join(number.to_string()))?);
            Ok(())
        });
        if began.elapsed() > SLOW_MKDIR * count as u32 {
            self.spread();
        }
        match dirs.and_then(|()| if self.durable { self.to_disk(&some) } else { Ok(()) }) {
            Ok(()) => Ok(some),
            Err(e) => {
                some.iter().for_each(|dirs| clear(&dirs.dir));
                Err(e)
            }
        }
    }

    /// Asks for directories all over the disk, not beside each other. Where there is no such thing all stays as it is.
    fn spread(&self) {
        if let Ok(dir) = File::open(&self.dir)
            && let Ok(flags) = rustix::fs::ioctl_getflags(&dir)
        {
            let _ = rustix::fs::ioctl_setflags(&dir, flags | IFlags::TOPDIR);
        }
    }

    fn to_disk(&self, some: &[PreparedDir]) -> io::Result<()> {
        for dirs in some {
            // All of them are on their way before the first is waited for.
            dirs.record.write_all_at(&[0; PREALLOC_LEN], 0)?;
            let _ = sys::start_writeback(&dirs.record);
        }
        some.iter().try_for_each(|dirs| dirs.record.sync_all().and_then(|()| File::open(&dirs.dir)?.sync_all()))?;
        File::open(&self.dir)?.sync_all()?;
        some.iter().try_for_each(|dirs| dirs.record.write_all_at(UNUSED, 0))
    }

    /// Who was told that they are low has made what was to be made.
    pub fn end_refill(&self) {
        self.refilling.store(false, Ordering::Release);
    }
}

fn number(dir: &Path) -> Option<u64> {
    dir.file_name()?.to_str()?.parse().ok()
}

/// A directory that was made and never used. One that is to be durable says that it is.
fn unused(dir: &Path, durable: bool) -> Option<File> {
    number(dir)?;
    let record = File::options().read(true).write(true).open(dir.join("record")).ok()?;
    let alone = std::fs::read_dir(dir).ok()?.count() == 1;
    let mut first = [0; UNUSED.len()];
    let marked = record.read_exact_at(&mut first, 0).is_ok() && first == *UNUSED;
    let empty = !durable && record.metadata().ok()?.len() == 0;
    (alone && (marked || empty)).then_some(record)
}

/// Whether a record was made ahead, and never got to say anything.
pub fn is_unused(head: &[u8]) -> bool {
    let after = head.strip_prefix(UNUSED).unwrap_or(head);
    after.iter().all(|byte| *byte == 0)
}

/// Gives a process that somebody began to start its name again, and clears away what nobody began.
fn restore_or_remove(dir: &Path, procs: &Path) {
    match started_id(dir).and_then(|id| id.map_or(Ok(false), |id| std::fs::rename(dir, procs.join(id)).map(|()| true)))
    {
        Ok(true) => tracing::info!(dir = %dir.display(), "found a process that a power cut put back"),
        Ok(false) => clear(dir),
        // It may tell of a process: the next daemon tries again.
        Err(e) => tracing::error!(dir = %dir.display(), %e, "left as it is"),
    }
}

/// The id of a process that somebody began to start. None: nobody did, or the disk had not all of it, so that nothing was started.
fn started_id(dir: &Path) -> io::Result<Option<String>> {
    let read = Record::open(dir).and_then(|record| {
        let facts = record.facts()?;
        Ok(if facts.launch.is_some() { Some(record.spec(&facts.head)?.id.to_string()) } else { None })
    });
    match read {
        Err(e) if INCOMPLETE_KINDS.contains(&e.kind()) => Ok(None),
        read => read,
    }
}

fn clear(path: &Path) {
    let cleared = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(e) = cleared {
        tracing::warn!(path = %path.display(), %e, "clear away what was made ahead");
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, DirPool, LOW_WATER, PREALLOC_LEN, prepare};
    use crate::store::record::{NewRecord, Record, Spec, create_in};
    use rustix::fs::IFlags;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use toold_format::slots::{Launch, Progress, Stage};
    use toold_proto::ProcId;

    #[test]
    fn what_was_made_and_not_used_is_used_by_the_next_daemon() {
        for durable in [false, true] {
            let root = tempfile::tempdir().expect("the disk takes it");
            let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
            let pool = DirPool::open(dir.clone(), &procs, durable);
            assert!(pool.take().is_none());
            assert!(pool.begin_refill());
            assert!(!pool.begin_refill(), "one makes them, not two");
            assert!(pool.is_nearly_empty(), "there is none");
            while pool.refill_some() {}
            pool.end_refill();
            assert!(!pool.is_nearly_empty() && !pool.begin_refill(), "a burst can come");
            let used = pool.take().expect("the disk takes it");
            used.record.write_all_at(b"begun to use it", 0).expect("the disk takes it");
            std::fs::write(dir.join("stray"), "x").expect("the disk takes it");
            let again = DirPool::open(dir.clone(), &procs, durable);
            assert!(!used.dir.exists() && !dir.join("stray").exists());
            let all: Vec<_> = std::iter::from_fn(|| again.take()).collect();
            assert_eq!(all.len(), CAPACITY - 1);
            assert!(all.iter().all(|dirs| dirs.dir.join("record").exists()));
            while again.refill_some() {}
            assert_eq!(std::iter::from_fn(|| again.take()).count(), CAPACITY, "no number is used twice");
            while again.refill_some() {}
            (0..CAPACITY / 2).for_each(|_| drop(again.take()));
            assert!(again.begin_refill() && !again.is_nearly_empty(), "it is time, and it can wait for a pause");
        }
    }

    #[test]
    fn where_they_are_dear_they_are_spread_over_the_disk() {
        let root = tempfile::tempdir().expect("the disk takes it");
        let pool = DirPool::open(root.path().join("ready"), &root.path().join("procs"), true);
        pool.spread();
        assert!(pool.refill_some(), "without a directory there is nothing to ask for");
        pool.spread();
        let flags = rustix::fs::ioctl_getflags(File::open(root.path().join("ready")).expect("it is there"));
        let ext4 = rustix::fs::statfs(root.path()).is_ok_and(|fs| fs.f_type as u64 == 0xEF53);
        assert!(!ext4 || flags.is_ok_and(|flags| flags.contains(IFlags::TOPDIR)));
        assert!(pool.refill_some());
    }

    #[test]
    fn where_there_are_enough_nothing_is_asked_of_the_file_system() {
        let root = tempfile::tempdir().expect("the disk takes it");
        let pool = DirPool::open(root.path().join("ready"), &root.path().join("procs"), true);
        (0..CAPACITY / LOW_WATER).for_each(|_| assert!(pool.refill_some(), "there is room"));
        let dir = File::open(root.path().join("ready")).expect("it is there");
        let flags = || rustix::fs::ioctl_getflags(&dir).unwrap_or(IFlags::empty());
        // They may have been dear.
        let _ = rustix::fs::ioctl_setflags(&dir, flags() - IFlags::TOPDIR);
        assert!(!pool.refill_some(), "there are enough");
        assert!(!flags().contains(IFlags::TOPDIR));
    }

    #[test]
    fn one_that_the_disk_may_not_have_is_not_taken_for_one_that_it_has() {
        let root = tempfile::tempdir().expect("the disk takes it");
        let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
        while DirPool::open(dir.clone(), &procs, false).refill_some() {}
        // Made, and its daemon died before it had waited for the disk.
        let half = prepare(dir.join("1000")).expect("the disk takes it");
        half.record.write_all_at(&[0; PREALLOC_LEN], 0).expect("the disk takes it");
        assert!(DirPool::open(dir.clone(), &procs, true).take().is_none());
        assert_eq!(std::fs::read_dir(&dir).expect("it is there").count(), 0, "and all are cleared away");
    }

    fn spec(id: ProcId) -> Spec {
        let spec = serde_json::json!({
            "id": id, "command": "true", "argv": ["true"], "program": "/bin/true", "cwd": "/", "backend": "local",
            "env_names": [], "stdin_pipe": false, "timeout_grace_ms": 0, "log_max_bytes": 0, "labels": {},
            "notify": false, "watch": [], "limits": {}, "created_ms": 0, "seq": 0
        });
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn one_that_a_power_cut_put_back_is_a_process_again() {
        let root = tempfile::tempdir().expect("the disk takes it");
        let (dir, procs) = (root.path().join("ready"), root.path().join("procs"));
        std::fs::create_dir_all(&procs).expect("the disk takes it");
        let pool = DirPool::open(dir.clone(), &procs, true);
        assert!(pool.refill_some());
        let launch = Launch { stage: Stage::Launching, shim_pid: 1, pid: 0, ticks: 0, step: 0, errno: 0, at_ms: 1 };
        let (started_id, never) = (ProcId::from_bits(1), ProcId::from_bits(2));
        for id in [started_id, never] {
            let (spec, progress) = (spec(id), Progress::default());
            let new = NewRecord { spec: &spec, progress: &progress, nonce: [7; 16], boot: [1; 16] };
            let dirs = pool.take().expect("it was made");
            let (from, named) = (dirs.dir.clone(), procs.join(id.to_string()));
            let record = create_in(dirs, &named, &new).expect("the disk takes it");
            if id == started_id {
                record.set_launch(&launch).expect("the disk takes it");
            }
            std::fs::rename(named, from).expect("the disk takes it");
        }
        DirPool::open(dir, &procs, true);
        let found: Vec<_> = std::fs::read_dir(&procs).expect("it is there").flatten().map(|e| e.file_name()).collect();
        assert_eq!(found, [started_id.to_string().as_str()], "the other was not begun, and is as if it never was");
        let record = Record::open(&procs.join(started_id.to_string())).expect("it is there");
        let facts = record.facts().expect("it is whole");
        assert_eq!(record.spec(&facts.head).expect("it is whole").id, started_id);
    }
}
