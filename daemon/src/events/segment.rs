//! One file of the journal, as readers and the writer share it. The writer alone changes it.

use super::disk::open_regular;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place is remembered about every so many bytes: a reader walks half of it in vain, and the memory is a
/// thousandth of the disk.
pub const MARK_INTERVAL_BYTES: u64 = 16 << 10;

/// Where a record begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub seq: u64,
    pub at: u64,
}

#[derive(Debug)]
pub struct Segment {
    /// The number that its first record has or would have.
    pub first: u64,
    pub path: PathBuf,
    /// Up to here there are whole records.
    len: AtomicU64,
    /// When its newest record was written, by the wall clock.
    newest_ms: AtomicU64,
    marks: Mutex<Vec<Mark>>,
    /// Open while it is written to.
    file: Mutex<Option<Arc<File>>>,
    /// How much of it has been pushed to the disk: begun, and finished.
    writeback_started: AtomicU64,
    synced: AtomicU64,
}

/// What a scan of a segment's file found.
#[derive(Debug, Default)]
pub struct SegmentStats {
    pub len: u64,
    pub newest_ms: u64,
    pub marks: Vec<Mark>,
}

impl SegmentStats {
    pub fn add_record(&mut self, seq: u64, at: u64, len: usize, wall_ms: u64) {
        add_mark(&mut self.marks, seq, at);
        self.len = at + len as u64;
        self.newest_ms = self.newest_ms.max(wall_ms);
    }
}

fn add_mark(marks: &mut Vec<Mark>, seq: u64, at: u64) {
    if marks.last().is_none_or(|mark| at >= mark.at + MARK_INTERVAL_BYTES) {
        marks.push(Mark { seq, at });
    }
}

/// A lock whose holder panicked still guards whole values: each is changed in one go.
pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `<first as 16 hex digits>.log`
pub fn file_name(first: u64) -> String {
    format!("{first:016x}.log")
}

pub fn parse_name(name: &str) -> Option<u64> {
    let hex = name.strip_suffix(".log").filter(|hex| hex.len() == 16)?;
    let first = u64::from_str_radix(hex, 16).ok()?;
    (file_name(first) == name && first > 0).then_some(first)
}

impl Segment {
    pub fn new(dir: &Path, first: u64, stats: SegmentStats) -> Segment {
        Segment {
            first,
            path: dir.join(file_name(first)),
            len: AtomicU64::new(stats.len),
            newest_ms: AtomicU64::new(stats.newest_ms),
            marks: Mutex::new(stats.marks),
            file: Mutex::new(None),
            writeback_started: AtomicU64::new(stats.len),
            synced: AtomicU64::new(stats.len),
        }
    }

    /// The same, to be written to. What an earlier daemon wrote in it may not be on the disk yet.
    pub fn writable(self, file: File) -> Segment {
        let (writeback_started, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        Segment { file: Mutex::new(Some(Arc::new(file))), writeback_started, synced, ..self }
    }

    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub fn newest_ms(&self) -> u64 {
        self.newest_ms.load(Ordering::Relaxed)
    }

    /// A record of `len` bytes has been written at the end.
    pub fn record_appended(&self, seq: u64, len: usize, wall_ms: u64) {
        let at = self.len();
        add_mark(&mut lock_ignoring_poison(&self.marks), seq, at);
        self.newest_ms.fetch_max(wall_ms, Ordering::Relaxed);
        // Last: who sees the length sees whole records.
        self.len.store(at + len as u64, Ordering::Release);
    }

    /// A reader came by a record: one that was not looked through at the start gets its marks from who reads it.
    pub fn add_mark(&self, seq: u64, at: u64) {
        add_mark(&mut lock_ignoring_poison(&self.marks), seq, at);
    }

    /// The place to start reading at for the record `seq`.
    pub fn offset_before(&self, seq: u64) -> u64 {
        let marks = lock_ignoring_poison(&self.marks);
        let after = marks.partition_point(|mark| mark.seq <= seq);
        after.checked_sub(1).and_then(|i| marks.get(i)).map_or(0, |mark| mark.at)
    }

    /// Its file, to read.
    pub fn open(&self) -> io::Result<Arc<File>> {
        match &*lock_ignoring_poison(&self.file) {
            Some(file) => Ok(file.clone()),
            None => Ok(Arc::new(open_regular(&self.path, File::options().read(true))?)),
        }
    }

    /// The file to write to; none when nothing may be added any more.
    pub fn writer(&self) -> Option<Arc<File>> {
        lock_ignoring_poison(&self.file).clone()
    }

    /// Nothing is added from now on.
    pub fn seal(&self) {
        lock_ignoring_poison(&self.file).take();
    }

    /// Begins to write to the disk what is not begun yet, without waiting.
    pub fn start_writeback(&self) -> io::Result<()> {
        let len = self.len();
        if self.writeback_started.load(Ordering::Relaxed) < len {
            crate::sys::start_writeback(&*self.open()?)?;
            self.writeback_started.fetch_max(len, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits until it is on the disk. Says whether there was anything to wait for.
    pub fn sync(&self) -> io::Result<bool> {
        let len = self.len();
        if self.synced.load(Ordering::Relaxed) >= len {
            return Ok(false);
        }
        self.open()?.sync_data()?;
        self.synced.fetch_max(len, Ordering::Relaxed);
        Ok(true)
    }
}
