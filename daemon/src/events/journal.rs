//! The journal: one writer at a time, any number of readers, and segments that are started and dropped.

use super::disk::{Disk, RealDisk, ignore_not_found, quarantine_path};
use super::manifest::ManifestFile;
use super::new_event::{EventTime, NewEvent};
use super::record::{self, EventHeader, MAX_RECORD_LEN};
use super::recover::{self, RecoveryReport};
use super::segment::{Segment, SegmentStats, lock_ignoring_poison};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::watch;
use toold_shim::hooks;

/// The interval at which publishing applies the retention limits.
const RETENTION_INTERVAL_MS: u64 = 60_000;
/// An upper bound for the length of a record's number and header.
const RECORD_OVERHEAD_LEN: usize = 128;
/// The highest plausible number. A higher one is a mistake, and accepting it would leave no numbers.
const MAX_SEQ: u64 = 1 << 62;

/// The retention limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLimits {
    /// The size of a segment, which is dropped as a whole. Lowered to a quarter of `max_bytes`.
    pub segment_bytes: u64,
    pub max_bytes: u64,
    pub max_age_ms: u64,
}

impl Default for JournalLimits {
    fn default() -> JournalLimits {
        JournalLimits { segment_bytes: 4 << 20, max_bytes: 64 << 20, max_age_ms: 7 * 86_400_000 }
    }
}

/// The numbers of the oldest kept and of the newest event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqBounds {
    pub oldest: u64,
    pub last: u64,
}

/// The segments in order. Replaced as a whole, so that a reader keeps the list it started with.
pub(super) type Segments = Arc<Vec<Arc<Segment>>>;

#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    limits: JournalLimits,
    disk: Box<dyn Disk>,
    writer: Mutex<Writer>,
    segments: RwLock<Segments>,
    last: AtomicU64,
    tail: watch::Sender<u64>,
    /// Damage that readers found, by the first number of its segment.
    found_damage: Mutex<BTreeMap<u64, String>>,
}

/// State that only publishing uses.
#[derive(Debug)]
struct Writer {
    manifest: ManifestFile,
    record: Vec<u8>,
    retention_checked_ms: u64,
}

impl Journal {
    /// Opens the journal in `dir`, or creates one. `at_least` is the highest number known elsewhere: events that the
    /// journal lacks up to it are missing, and their numbers are not reused.
    pub fn open(
        dir: &Path,
        limits: JournalLimits,
        now_ms: u64,
        at_least: u64,
    ) -> io::Result<(Journal, RecoveryReport)> {
        Journal::open_on(Box::new(RealDisk), dir, limits, now_ms, at_least)
    }

    pub(super) fn open_on(
        disk: Box<dyn Disk>,
        dir: &Path,
        limits: JournalLimits,
        now_ms: u64,
        at_least: u64,
    ) -> io::Result<(Journal, RecoveryReport)> {
        let found = recover::recover(dir)?;
        found.segments.iter().for_each(|segment| segment.count_age(now_ms, limits.max_age_ms));
        let segment_bytes = limits.segment_bytes.min(limits.max_bytes / 4);
        let journal = Journal {
            dir: dir.to_path_buf(),
            limits: JournalLimits { segment_bytes, ..limits },
            disk,
            writer: Mutex::new(Writer {
                manifest: ManifestFile::new(dir),
                record: Vec::new(),
                retention_checked_ms: now_ms,
            }),
            segments: RwLock::new(Arc::new(found.segments)),
            last: AtomicU64::new(found.last),
            tail: watch::Sender::new(found.last),
            found_damage: Mutex::default(),
        };
        journal.skip_to(at_least.max(found.at_least));
        if journal.last() > 0 && journal.segments().last().is_none_or(|segment| segment.writer().is_none()) {
            // The last segment could not be read. The name of the new one stores the number durably.
            let _ = journal.start_segment(&mut lock_ignoring_poison(&journal.writer), journal.last() + 1);
        }
        journal.retain(now_ms);
        journal.store_manifest(&mut lock_ignoring_poison(&journal.writer));
        Ok((journal, found.opened))
    }

    /// Assigns the next number to the event and writes it; then calls `applied` with the number, before any other event
    /// can be published. On error no number is used and nothing is left on disk.
    pub fn publish(&self, event: &NewEvent<'_>, now: EventTime, applied: impl FnOnce(u64)) -> io::Result<u64> {
        let rendered = event.render(now)?;
        if rendered.rest.len() + event.state.len() + RECORD_OVERHEAD_LEN > MAX_RECORD_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the event is longer than 4 MiB"));
        }
        let seq = {
            let mut writer = lock_ignoring_poison(&self.writer);
            if now.retention_ms.abs_diff(writer.retention_checked_ms) >= RETENTION_INTERVAL_MS {
                writer.retention_checked_ms = now.retention_ms;
                self.drop_old(&mut writer, now.retention_ms);
            }
            let seq = self.last() + 1;
            let header = EventHeader { seq, ..rendered.header };
            record::encode(&mut writer.record, &header, event.state, &rendered.rest);
            let segment = self.segment_for(&mut writer, seq, now.retention_ms)?;
            hooks::at("journal.write");
            self.append(&segment, &writer.record)?;
            segment.record_appended(seq, writer.record.len(), now.retention_ms);
            hooks::at("journal.written");
            applied(seq);
            // Readers see the event only now, when its effect can be seen too.
            self.last.store(seq, Ordering::Release);
            hooks::at("journal.applied");
            seq
        };
        self.wake(seq);
        Ok(seq)
    }

    /// Returns the number of the newest event; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Returns the number of the oldest kept event; if there is none, the next number.
    pub fn oldest(&self) -> u64 {
        let next = self.last() + 1;
        self.segments().first().map_or(next, |segment| segment.first.min(next))
    }

    pub fn bounds(&self) -> SeqBounds {
        SeqBounds { oldest: self.oldest(), last: self.last() }
    }

    /// Returns the size of the journal on disk.
    pub fn bytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.len()).sum()
    }

    /// Returns a receiver of changes to the number of the newest event.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.tail.subscribe()
    }

    /// Continues after a number that a consumer or process has seen: it is never reused. Returns a description if the
    /// journal has lost that event, to damage or a power cut.
    pub fn advance_past(&self, seq: u64) -> Option<String> {
        let last = self.last();
        self.skip_to(seq);
        (seq > last && self.last() >= seq)
            .then(|| format!("events {} to {seq} are not in {} any more", last + 1, self.dir.display()))
    }

    /// Marks all numbers up to `seq` as used: events that the journal lacks up to it are missing.
    pub fn skip_to(&self, seq: u64) {
        let mut writer = lock_ignoring_poison(&self.writer);
        if seq <= self.last() || seq >= MAX_SEQ {
            return;
        }
        tracing::warn!(from = self.last() + 1, to = seq, "events are missing");
        if let Some(active) = self.segments().last() {
            active.seal();
        }
        self.last.store(seq, Ordering::Release);
        // After a failure the next publish starts the segment.
        let _ = self.start_segment(&mut writer, seq + 1);
        drop(writer);
        self.wake(seq);
    }

    /// Applies the retention limits.
    pub fn retain(&self, now_ms: u64) {
        let mut writer = lock_ignoring_poison(&self.writer);
        writer.retention_checked_ms = now_ms;
        self.drop_old(&mut writer, now_ms);
    }

    /// Returns descriptions of the damage that readers found since the start.
    pub fn found_damage(&self) -> Vec<String> {
        lock_ignoring_poison(&self.found_damage).values().cloned().collect()
    }

    /// Reports a segment that cannot be read as it was, once. One that retention dropped meanwhile is not damaged.
    pub(super) fn report_unreadable(&self, segment: &Segment, why: &dyn std::fmt::Display) {
        if self.segments().iter().all(|kept| kept.first != segment.first) {
            return;
        }
        lock_ignoring_poison(&self.found_damage).entry(segment.first).or_insert_with(|| {
            let damage = format!("events from {} on in {}: {why}", segment.first, segment.path.display());
            tracing::error!(damage, "found damaged events");
            damage
        });
    }

    /// Starts the writeback of new events, without waiting. Stores the newest number beside them.
    pub fn start_writeback(&self) -> io::Result<()> {
        self.store_last();
        self.segments().iter().try_for_each(|segment| ignore_not_found(segment.start_writeback()))
    }

    /// Waits until all published events are durable.
    pub fn sync(&self) -> io::Result<()> {
        self.store_last();
        let mut any = false;
        for segment in self.segments().iter() {
            ignore_not_found(segment.sync().map(|waited| any |= waited))?;
        }
        if any { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }

    fn store_last(&self) {
        let mut writer = lock_ignoring_poison(&self.writer);
        writer.manifest.store_last(self.last(), &self.segments());
    }

    fn store_manifest(&self, writer: &mut Writer) {
        writer.manifest.store(self.last(), &self.segments());
    }

    pub(super) fn segments(&self) -> Segments {
        self.segments.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_segments(&self, segments: Vec<Arc<Segment>>) {
        *self.segments.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(segments);
    }

    fn wake(&self, seq: u64) {
        // Publishers arrive here in any order: the number never decreases.
        self.tail.send_if_modified(|last| {
            let newer = seq > *last;
            *last = seq.max(*last);
            newer
        });
    }

    /// Returns the segment for the writer's record.
    fn segment_for(&self, writer: &mut Writer, seq: u64, now_ms: u64) -> io::Result<Arc<Segment>> {
        let len = writer.record.len();
        let Some(active) = self.segments().last().filter(|segment| segment.writer().is_some()).cloned() else {
            return self.start_segment(writer, seq);
        };
        if active.len() == 0 || active.len() + len as u64 <= self.limits.segment_bytes {
            return Ok(active);
        }
        match self.start_segment(writer, seq) {
            Ok(next) => {
                active.seal();
                self.drop_old(writer, now_ms);
                Ok(next)
            }
            // A segment that is too long is better than a lost event.
            Err(e) => {
                tracing::debug!(%e, "failed to start a journal segment");
                Ok(active)
            }
        }
    }

    /// Starts a segment. It is listed after it exists: a crash between the two loses nothing.
    fn start_segment(&self, writer: &mut Writer, first: u64) -> io::Result<Arc<Segment>> {
        let mut segments = self.segments().as_ref().clone();
        let segment = Segment::new(&self.dir, first, SegmentStats::default());
        let path = &segment.path;
        let file = match self.disk.create(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // A known segment has no complete record, or it would not have this number.
                let ours = segments.iter().any(|known| known.first == first);
                if ours { std::fs::remove_file(path) } else { std::fs::rename(path, quarantine_path(path)) }?;
                self.disk.create(path)?
            }
            created => created?,
        };
        let segment = Arc::new(segment.writable(file));
        segments.retain(|known| known.first != first);
        segments.push(segment.clone());
        self.set_segments(segments);
        hooks::at("segment.created");
        self.store_manifest(writer);
        hooks::at("segment.listed");
        Ok(segment)
    }

    /// Writes the whole record with one call, or nothing.
    fn append(&self, segment: &Segment, record: &[u8]) -> io::Result<()> {
        let file = segment.writer().ok_or(io::ErrorKind::NotFound)?;
        let refused = match self.disk.write(&file, record) {
            Ok(n) if n == record.len() => return Ok(()),
            Ok(_) => io::Error::from(io::ErrorKind::StorageFull),
            Err(e) => e,
        };
        if let Err(e) = self.disk.truncate(&file, segment.len()) {
            // The torn record stays at the end. Readers stop before it, and the next record starts a segment.
            tracing::warn!(%e, path = %segment.path.display(), "failed to truncate a torn record; starting a new journal segment");
            segment.seal();
        }
        Err(refused)
    }

    /// Drops whole segments, oldest first.
    fn drop_old(&self, writer: &mut Writer, now_ms: u64) {
        let aged = |segment: &Segment| segment.newest_ms().saturating_add(self.limits.max_age_ms) < now_ms;
        if let Some(active) = self.segments().last()
            && active.len() > 0
            && aged(active)
            && self.start_segment(writer, self.last() + 1).is_ok()
        {
            active.seal();
        }
        let segments = self.segments();
        // The active segment counts as full: it may grow to that size before the next check.
        let active = segments.last().map_or(0, |segment| self.limits.segment_bytes.saturating_sub(segment.len()));
        let mut total = segments.iter().map(|segment| segment.len()).sum::<u64>() + active;
        let mut kept = segments.as_slice();
        while let [oldest, rest @ ..] = kept
            && !rest.is_empty()
            && (total > self.limits.max_bytes || aged(oldest))
        {
            total -= oldest.len();
            kept = rest;
        }
        let dropped = segments.len() - kept.len();
        if dropped > 0 {
            self.set_segments(kept.to_vec());
            // A segment leaves the list before the disk: one that is listed and gone is damage.
            self.store_manifest(writer);
            hooks::at("segment.unlisted");
        }
        for segment in &segments[..dropped] {
            if let Err(e) = std::fs::remove_file(&segment.path) {
                tracing::warn!(%e, path = %segment.path.display(), "failed to remove a journal segment");
            }
        }
    }
}
