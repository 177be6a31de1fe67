//! One file of the journal, shared by readers and the writer. Only the writer changes it.

use super::disk::open_regular;
use crate::retention::counted_from;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The distance between two marks: a reader skips half of it on average, and the marks take a thousandth of the file's
/// size in memory.
pub const MARK_INTERVAL_BYTES: u64 = 16 << 10;

/// The offset of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub seq: u64,
    pub at: u64,
}

#[derive(Debug)]
pub struct Segment {
    /// The number of its first record, present or future.
    pub first: u64,
    pub path: PathBuf,
    /// The end of the complete records.
    len: AtomicU64,
    /// The retention time of its newest record.
    newest_ms: AtomicU64,
    marks: Mutex<Vec<Mark>>,
    /// The open file while records are appended.
    file: Mutex<Option<Arc<File>>>,
    /// The length whose writeback was started, and the length that is durable.
    writeback_started: AtomicU64,
    synced: AtomicU64,
}

/// Properties of a segment that a scan of its file found.
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

/// Locks a mutex even if a holder panicked: each guarded value is changed in one step, so it is consistent.
pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of a segment's file: `<first as 16 hex digits>.log`.
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

    /// Makes the segment writable. Records of an earlier daemon may not be durable yet.
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

    /// Counts the age of what an earlier daemon wrote, whose time is that of the wall clock then.
    pub fn count_age(&self, now_ms: u64, max_age_ms: u64) {
        let age = now_ms.saturating_sub(self.newest_ms());
        self.newest_ms.store(counted_from(age, now_ms, max_age_ms), Ordering::Relaxed);
    }

    /// Accounts for a record of `len` bytes that was appended.
    pub fn record_appended(&self, seq: u64, len: usize, now_ms: u64) {
        let at = self.len();
        add_mark(&mut lock_ignoring_poison(&self.marks), seq, at);
        self.newest_ms.fetch_max(now_ms, Ordering::Relaxed);
        // Last: a reader that sees the length sees complete records.
        self.len.store(at + len as u64, Ordering::Release);
    }

    /// Adds the offset of a record that a reader passed: a segment that was not verified at start gets its marks this way.
    pub fn add_mark(&self, seq: u64, at: u64) {
        add_mark(&mut lock_ignoring_poison(&self.marks), seq, at);
    }

    /// Returns the offset at which to start reading for the record `seq`.
    pub fn offset_before(&self, seq: u64) -> u64 {
        let marks = lock_ignoring_poison(&self.marks);
        let after = marks.partition_point(|mark| mark.seq <= seq);
        after.checked_sub(1).and_then(|i| marks.get(i)).map_or(0, |mark| mark.at)
    }

    /// Opens its file for reading.
    pub fn open(&self) -> io::Result<Arc<File>> {
        match &*lock_ignoring_poison(&self.file) {
            Some(file) => Ok(file.clone()),
            None => Ok(Arc::new(open_regular(&self.path, File::options().read(true))?)),
        }
    }

    /// Returns the file to append to, or None if the segment is sealed.
    pub fn writer(&self) -> Option<Arc<File>> {
        lock_ignoring_poison(&self.file).clone()
    }

    /// Ends appending.
    pub fn seal(&self) {
        lock_ignoring_poison(&self.file).take();
    }

    /// Starts the writeback of new records, without waiting.
    pub fn start_writeback(&self) -> io::Result<()> {
        let len = self.len();
        if self.writeback_started.load(Ordering::Relaxed) < len {
            crate::sys::start_writeback(&*self.open()?)?;
            self.writeback_started.fetch_max(len, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Waits until the segment is durable. Returns false if it was already.
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
