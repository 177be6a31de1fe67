//! Appends output to a process's log and index, within a cap and through a full disk.
//!
//! It runs in the shim, forked from a zygote: no allocation, no locks, no panics, and it never fails. It counts the bytes
//! that it cannot store.

use super::counts::Counts;
use super::index::{IndexHeader, MAX_SPAN_LEN, RECORD_LEN, SegmentName};
use super::plan::{AppendPlan, LastRecord, MAX_BATCH_RECORDS};
use super::sums::{LogSums, SegmentSums, crc32};
use super::sys::{Dir, Files};
use crate::Stream;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The number of finished tail segments at one time. Eight hold half the cap; the others are for segments that ended
/// early.
const MAX_TAILS: usize = 16;

/// The length of the smallest tail segment, unless the cap itself is only a few times larger.
const MIN_SEGMENT_LEN: u64 = 4096;

/// The length of the index, at least, after which the first segment may end early: 32 Ki changes of stream, however small
/// the cap.
const MIN_HEAD_INDEX_LEN: u64 = 1024 * 1024;

/// The same for a tail segment. There are 16 of them.
const MIN_TAIL_INDEX_LEN: u64 = 64 * 1024;

/// The length of the index per byte of capacity: a record for every eight bytes. With a quarter byte, lines of nine bytes
/// that alternated between the streams filled the index long before the cap, and most of them were dropped.
const INDEX_LEN_PER_BYTE: u64 = 4;

/// An append of this length is part of a flood. In a segment of the second length, blocks are reserved for it.
const FLOOD_APPEND_LEN: usize = 60 * 1024;
const MIN_RESERVE_SEGMENT_LEN: u64 = 1024 * 1024;

/// The length of the blocks reserved at once. A filesystem that allocates at every write needs a third longer for them.
const RESERVE_LEN: u64 = 16 * 1024 * 1024;

/// The log of one running program.
#[derive(Debug)]
pub struct LogWriter<F: Files = Dir> {
    files: F,
    cap: u64,
    current: Option<Segment>,
    /// Finished tail segments, oldest first; `closed` of them.
    tails: [TailSegment; MAX_TAILS],
    closed: usize,
    /// Bytes in tail segments, with the current one.
    tail_bytes: u64,
    counts: Counts,
    /// The checksums of the last segment with bytes.
    sums: LogSums,
    /// Bytes from here on are kept for a reader. `u64::MAX`: none are.
    keep_from: u64,
}

/// The segment being written.
#[derive(Debug)]
struct Segment {
    log: OwnedFd,
    idx: OwnedFd,
    start: u64,
    len: u64,
    capacity: u64,
    idx_len: u64,
    /// The end of the reserved blocks, if that is beyond the length.
    reserved: u64,
    head: bool,
    /// The last record written.
    last_record: Option<LastRecord>,
    sums: SegmentSums,
}

#[derive(Debug, Clone, Copy)]
struct TailSegment {
    start: u64,
    len: u64,
}

/// The reason why not all bytes are stored.
enum NotStored {
    /// The disk refused. It stored this many.
    Refused(usize),
    /// More would drop bytes that are kept for a reader.
    Held,
}
use NotStored::{Held, Refused};

impl LogWriter {
    /// Opens a log in the directory `dir`. Nothing is created before the first byte.
    pub const fn new(dir: OwnedFd, cap: u64) -> LogWriter {
        LogWriter::with_files(Dir::new(dir), cap)
    }

    /// Returns the directory of the process.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.files.fd()
    }
}

impl<F: Files> LogWriter<F> {
    pub const fn with_files(files: F, cap: u64) -> LogWriter<F> {
        LogWriter {
            files,
            cap,
            current: None,
            tails: [TailSegment { start: 0, len: 0 }; MAX_TAILS],
            closed: 0,
            tail_bytes: 0,
            counts: Counts {
                end: 0,
                out_newlines: 0,
                err_newlines: 0,
                out_open: false,
                err_open: false,
                last_open: false,
                dropped: 0,
                unstored: 0,
            },
            sums: LogSums {
                start: 0,
                end: 0,
                idx_len: 0,
                last: SegmentSums { log: 0, idx: 0 },
                head: SegmentSums { log: 0, idx: 0 },
            },
            keep_from: u64::MAX,
        }
    }

    /// Keeps bytes from this offset on, whatever the cap. `u64::MAX`: none, and the cap drops the oldest.
    pub fn keep_from(&mut self, offset: u64) {
        self.keep_from = offset;
    }

    /// Appends `bytes`, and returns how many it took: all, unless more would drop some that are kept for a reader. Those
    /// that the disk refuses are taken, and counted as unstored.
    pub fn append(&mut self, stream: Stream, bytes: &[u8], now_ms: u64) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.store(stream, rest, now_ms) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(Refused(stored)) => {
                    self.counts.advance(stream, rest);
                    self.counts.unstored += (rest.len() - stored) as u64;
                    self.end_segment();
                    return bytes.len();
                }
                Err(Held) => break,
            }
        }
        bytes.len() - rest.len()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the checksums of what is stored.
    pub fn sums(&self) -> LogSums {
        self.sums
    }

    /// Appends a first part of `bytes` and returns its length; 0 when the segment is full and was ended.
    fn store(&mut self, stream: Stream, bytes: &[u8], now_ms: u64) -> Result<usize, NotStored> {
        let bytes = match self.free_len() {
            // With a small cap, this segment is all there is to drop.
            0 if self.current.as_ref().is_some_and(|segment| segment.start + segment.len <= self.keep_from) => {
                self.end_segment();
                return Ok(0);
            }
            0 => return Err(Held),
            free => bytes.get(..free).unwrap_or(bytes),
        };
        if self.current.is_none() {
            let dropped_ahead = self.dropped_ahead(bytes.len());
            if dropped_ahead > 0 {
                self.counts.advance(stream, bytes.get(..dropped_ahead).unwrap_or_default());
                self.counts.dropped += dropped_ahead as u64;
                return Ok(dropped_ahead);
            }
            self.start_segment()?;
        }
        let plan = match &self.current {
            Some(segment) => self.plan(segment, stream, bytes, now_ms),
            None => return Err(Refused(0)),
        };
        if plan.len == 0 {
            self.end_segment();
            return Ok(0);
        }
        self.make_room(plan.len as u64);
        self.write(&plan, bytes.get(..plan.len).unwrap_or_default())?;
        // `make_room` dropped bytes that the plan does not include.
        self.counts = Counts { dropped: self.counts.dropped, ..plan.counts };
        Ok(plan.len)
    }

    /// Counts how many of `len` new bytes would be dropped again before this append ends. They are whole segments, so the
    /// bytes that stay are those that would stay had the others been written; a small cap would otherwise create and
    /// remove a file per few bytes.
    fn dropped_ahead(&self, len: usize) -> usize {
        let room = usize::try_from(self.cap - self.head_capacity()).unwrap_or(usize::MAX);
        if room == 0 {
            return len;
        }
        if self.next_is_head() || len <= room {
            return 0;
        }
        let segment = usize::try_from(self.tail_capacity()).unwrap_or(usize::MAX);
        (len - room) / segment * segment
    }

    /// Counts the bytes that fit before some that are kept for a reader would be dropped.
    fn free_len(&self) -> usize {
        let in_head = || self.current.as_ref().map_or(self.next_is_head(), |segment| segment.head);
        if self.keep_from == u64::MAX || in_head() {
            return usize::MAX;
        }
        let tails = self.tails.iter().take(self.closed);
        let read = tails.take_while(|tail| tail.start + tail.len <= self.keep_from);
        let (count, len) = read.fold((0, 0), |(count, len), tail| (count + 1, len + tail.len));
        if self.current.is_none() && self.closed - count >= MAX_TAILS {
            return 0;
        }
        let room = self.cap - self.head_capacity() + len;
        usize::try_from(room.saturating_sub(self.tail_bytes)).unwrap_or(usize::MAX)
    }

    fn head_capacity(&self) -> u64 {
        self.cap / 2
    }

    fn tail_capacity(&self) -> u64 {
        (self.cap / 16).max(MIN_SEGMENT_LEN.min(self.cap / 4)).max(1)
    }

    fn next_is_head(&self) -> bool {
        self.counts.end == 0 && self.head_capacity() > 0
    }

    fn start_segment(&mut self) -> Result<(), NotStored> {
        let head = self.next_is_head();
        if !head && self.closed >= MAX_TAILS {
            self.drop_oldest();
        }
        let start = self.counts.end;
        // The index first: where there is a log there is its index.
        let idx = self.files.create(SegmentName::idx(start).as_c_str()).map_err(|_| Refused(0))?;
        let Ok(log) = self.files.create(SegmentName::log(start).as_c_str()) else {
            self.files.remove(SegmentName::idx(start).as_c_str());
            return Err(Refused(0));
        };
        let capacity = if head { self.head_capacity() } else { self.tail_capacity() };
        self.current = Some(Segment {
            log,
            idx,
            start,
            len: 0,
            capacity,
            idx_len: 0,
            reserved: 0,
            head,
            last_record: None,
            sums: SegmentSums::default(),
        });
        Ok(())
    }

    /// Plans the next write: as much of `bytes` as the segment takes at once, and its records.
    fn plan(&self, segment: &Segment, stream: Stream, bytes: &[u8], now_ms: u64) -> AppendPlan {
        let mut plan = AppendPlan {
            records: [0; RECORD_LEN * (MAX_BATCH_RECORDS + 1)],
            records_len: 0,
            len: 0,
            last_record: segment.last_record,
            counts: self.counts,
        };
        if segment.idx_len == 0 {
            let (start, unstored, previous) = (segment.start, self.counts.unstored, self.sums.last);
            plan.push(IndexHeader { start, unstored, previous }.encode());
        }
        let room = usize::try_from(segment.capacity.saturating_sub(segment.len)).unwrap_or(usize::MAX);
        let mut rest = bytes.get(..room).unwrap_or(bytes);
        let idx_capacity = segment.idx_capacity();
        while !rest.is_empty() {
            let at = plan.counts.end;
            let last_record = match plan.last_record {
                Some(last_record) if last_record.covers(at, stream, now_ms) => last_record,
                // The first byte of a segment, another stream, or too far from the last record.
                _ => {
                    if segment.idx_len + (plan.records_len + RECORD_LEN) as u64 > idx_capacity || plan.is_full() {
                        break;
                    }
                    let last_record = LastRecord { start: at, time_ms: now_ms, stream };
                    plan.push(last_record.record(&plan.counts).encode());
                    plan.last_record = Some(last_record);
                    last_record
                }
            };
            let span = usize::try_from(MAX_SPAN_LEN - (at - last_record.start)).unwrap_or(usize::MAX);
            let (piece, after) = rest.split_at_checked(span).unwrap_or((rest, &[]));
            plan.counts.advance(stream, piece);
            plan.len += piece.len();
            rest = after;
        }
        plan
    }

    /// Drops the oldest tail segments until `len` more bytes are within the cap.
    fn make_room(&mut self, len: u64) {
        let head = self.current.as_ref().is_some_and(|segment| segment.head);
        let room = self.cap - self.head_capacity();
        while !head && self.closed > 0 && self.tail_bytes + len > room {
            self.drop_oldest();
        }
    }

    /// Writes the records, then their bytes: a crash in between leaves a record at the log's end, which
    /// covers nothing, instead of bytes of an unknown stream.
    fn write(&mut self, plan: &AppendPlan, bytes: &[u8]) -> Result<(), NotStored> {
        let Some(segment) = &mut self.current else { return Err(Refused(0)) };
        let records = plan.records.get(..plan.records_len).unwrap_or_default();
        let indexed = match records {
            [] => 0,
            _ => self.files.write(&segment.idx, records).unwrap_or(0).min(records.len()),
        };
        segment.idx_len += indexed as u64;
        segment.sums.idx = crc32(segment.sums.idx, records.get(..indexed).unwrap_or_default());
        if indexed < records.len() {
            self.sums = segment.log_sums(self.sums);
            return Err(Refused(0));
        }
        segment.last_record = plan.last_record;
        segment.reserve(&mut self.files, bytes.len());
        let stored = self.files.write(&segment.log, bytes).unwrap_or(0).min(bytes.len());
        segment.len += stored as u64;
        segment.sums.log = crc32(segment.sums.log, bytes.get(..stored).unwrap_or_default());
        self.sums = segment.log_sums(self.sums);
        if !segment.head {
            self.tail_bytes += stored as u64;
        }
        if stored < bytes.len() { Err(Refused(stored)) } else { Ok(()) }
    }

    /// Releases reserved blocks: the flood is over, for now or for good.
    pub fn release_reserved(&mut self) {
        if let Some(segment) = &mut self.current {
            segment.release(&mut self.files);
        }
    }

    fn end_segment(&mut self) {
        self.release_reserved();
        let Some(segment) = self.current.take() else { return };
        if segment.len == 0 {
            self.remove(segment.start);
        } else if !segment.head
            && let Some(slot) = self.tails.get_mut(self.closed)
        {
            *slot = TailSegment { start: segment.start, len: segment.len };
            self.closed += 1;
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.tails[0];
        self.remove(oldest.start);
        self.tail_bytes = self.tail_bytes.saturating_sub(oldest.len);
        self.counts.dropped += oldest.len;
        self.tails.copy_within(1.., 0);
        self.closed = self.closed.saturating_sub(1);
    }

    fn remove(&mut self, start: u64) {
        self.files.remove(SegmentName::log(start).as_c_str());
        self.files.remove(SegmentName::idx(start).as_c_str());
    }
}

impl Segment {
    /// Returns the checksums after a write. An empty segment is about to be removed and has none.
    fn log_sums(&self, before: LogSums) -> LogSums {
        if self.len == 0 {
            return before;
        }
        let (start, end, idx_len, last) = (self.start, self.start + self.len, self.idx_len, self.sums);
        LogSums { start, end, idx_len, last, head: if self.head { last } else { before.head } }
    }

    /// Reserves blocks when `len` more bytes need some and the program floods.
    fn reserve(&mut self, files: &mut impl Files, len: usize) {
        let end = self.len.saturating_add(len as u64);
        if len < FLOOD_APPEND_LEN || self.len < MIN_RESERVE_SEGMENT_LEN || end <= self.reserved {
            return;
        }
        let from = self.reserved.max(self.len);
        let ahead = RESERVE_LEN.min(self.capacity.saturating_sub(from));
        // A full disk refuses, or a filesystem that cannot: then not again in this segment.
        let taken = ahead > 0 && files.reserve(&self.log, from, ahead).is_ok();
        self.reserved = if taken { from + ahead } else { u64::MAX };
    }

    fn release(&mut self, files: &mut impl Files) {
        if self.reserved > self.len && self.reserved < u64::MAX {
            files.release(&self.log);
            self.reserved = self.len;
        }
    }

    /// Returns the length of the index after which the segment ends, full or not. The header, and the record of a run that
    /// started in the segment before, are not counted: they would cost the last bytes of a segment that is otherwise within
    /// bounds.
    fn idx_capacity(&self) -> u64 {
        let least = if self.head { MIN_HEAD_INDEX_LEN } else { MIN_TAIL_INDEX_LEN };
        self.capacity.saturating_mul(INDEX_LEN_PER_BYTE).max(least).saturating_add(2 * RECORD_LEN as u64)
    }
}
