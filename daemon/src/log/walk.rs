//! Walks over the kept bytes of a log, of one stream or both, forwards or back from the end, and counts newlines.

use super::reader::{Location, Log, MAX_PAGE_INDEX_BYTES};
use std::io;
use toold_format::Stream;
use toold_format::log::{IndexRecord, RECORD_LEN};
use toold_proto::process::Gap;

/// The maximum length of a read.
const MAX_READ_LEN: u64 = 64 * 1024;

/// The minimum length of a read: if streams alternate, the next wanted bytes are likely near.
const MIN_READ_LEN: u64 = 4 * 1024;

/// A walk from an offset to the log's end.
pub struct LogWalk<'a> {
    log: &'a Log,
    at: u64,
    stream: Option<Stream>,
    window: Vec<u8>,
    window_at: u64,
    skipped: u64,
}

/// An item of a walk.
pub enum WalkItem<'s> {
    /// Bytes of the selected stream, from offset `at` on.
    Bytes {
        at: u64,
        bytes: &'s [u8],
    },
    Gap(Gap),
    End,
}

impl<'a> LogWalk<'a> {
    pub fn new(log: &'a Log, at: u64, stream: Option<Stream>) -> LogWalk<'a> {
        LogWalk { log, at, stream, window: Vec::new(), window_at: 0, skipped: 0 }
    }

    /// Returns the current offset.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the next bytes of the stream, or gap. Returns no bytes after `index_bytes` of index without any.
    pub fn next(&mut self, index_bytes: u64) -> io::Result<WalkItem<'_>> {
        let stop = self.skipped.saturating_add(index_bytes);
        let (from, to) = loop {
            let (slot, end) = match self.log.locate(self.at)? {
                Location::End => return Ok(WalkItem::End),
                Location::Gap { to } => return Ok(WalkItem::Gap(self.skip_to(to))),
                Location::In { slot, end } => (slot, end),
            };
            let to = match self.stream {
                None => end,
                // Output of an unknown stream may be of the other one.
                Some(_) if !self.log.has_streams(slot)? => return Ok(WalkItem::Gap(self.skip_to(end))),
                Some(stream) => {
                    let (record, to) = self.log.record_at(slot, self.at)?;
                    if record.stream != stream {
                        self.at = to.min(end);
                        self.skipped += RECORD_LEN as u64;
                        if self.skipped >= stop {
                            return Ok(WalkItem::Bytes { at: self.at, bytes: &[] });
                        }
                        continue;
                    }
                    to.min(end)
                }
            };
            self.fill(slot, to, end)?;
            let here = to.min(self.window_at + self.window.len() as u64);
            if here > self.at {
                break (self.at, here);
            }
            // The file became shorter meanwhile.
            return Ok(WalkItem::Gap(self.skip_to(end)));
        };
        self.at = to;
        let window = (from - self.window_at) as usize..(to - self.window_at) as usize;
        Ok(WalkItem::Bytes { at: from, bytes: self.window.get(window).unwrap_or_default() })
    }

    fn skip_to(&mut self, to: u64) -> Gap {
        let gap = Gap { from: self.at, to };
        self.at = to;
        gap
    }

    fn fill(&mut self, slot: usize, to: u64, end: u64) -> io::Result<()> {
        let window_end = self.window_at + self.window.len() as u64;
        if (self.window_at..window_end).contains(&self.at) {
            return Ok(());
        }
        let len = (to - self.at).clamp(MIN_READ_LEN, MAX_READ_LEN).min(end - self.at);
        self.window.resize(len as usize, 0);
        self.window_at = self.at;
        let n = self.log.fill(slot, self.at, &mut self.window)?;
        self.window.truncate(n);
        Ok(())
    }
}

/// The start of the last bytes.
pub struct TailStart {
    pub from: u64,
    /// The dropped range before `from`, if it limits the tail.
    pub gap_before: Option<Gap>,
    /// The dropped range at the end.
    pub gap_after: Option<Gap>,
}

impl Log {
    /// Returns the start of the last `max` bytes, or of those after the last gap.
    pub(super) fn tail_start(&self, max: u64, stream: Option<Stream>) -> io::Result<TailStart> {
        let mut tail = TailStart { from: self.end(), gap_before: None, gap_after: None };
        let (mut left, mut looked) = (max, 0);
        for slot in (0..self.slot_count()).rev() {
            let Some(end) = self.slot_end(slot)?.filter(|_| self.start(slot) < self.end()) else { continue };
            if end < tail.from {
                let gap = Gap { from: end, to: tail.from };
                if tail.from < self.end() {
                    tail.gap_before = Some(gap);
                    return Ok(tail);
                }
                (tail.gap_after, tail.from) = (Some(gap), end);
            }
            while tail.from > self.start(slot) {
                if left == 0 || looked > MAX_PAGE_INDEX_BYTES {
                    return Ok(tail);
                }
                let (start, wanted) = match stream {
                    None => (self.start(slot), true),
                    Some(_) if !self.has_streams(slot)? => (self.start(slot), false),
                    Some(stream) => {
                        looked += RECORD_LEN as u64;
                        let (record, _) = self.record_at(slot, tail.from - 1)?;
                        (record.start.clamp(self.start(slot), tail.from - 1), record.stream == stream)
                    }
                };
                let len = if wanted { left.min(tail.from - start) } else { tail.from - start };
                tail.from -= len;
                left -= if wanted { len } else { 0 };
            }
        }
        if tail.from > 0 && left > 0 {
            tail.gap_before = Some(Gap { from: 0, to: tail.from });
        }
        Ok(tail)
    }

    /// Returns true if it is known which stream wrote the bytes of a segment.
    pub(super) fn has_streams(&self, slot: usize) -> io::Result<bool> {
        Ok(self.only().is_some() || self.index(slot)?.covers_start(self.start(slot))?)
    }

    /// Returns the record that contains `at`, and its end.
    pub(super) fn record_at(&self, slot: usize, at: u64) -> io::Result<(IndexRecord, u64)> {
        let index = self.index(slot)?;
        let n = index.until(at)?;
        let next = if n < index.len() { index.get(n)? } else { None };
        // In a damaged index the next record may be anywhere; always advance by at least one byte.
        let to = next.map_or(u64::MAX, |next| next.start.max(at.saturating_add(1)));
        let record = match n.checked_sub(1) {
            Some(i) => index.get(i)?,
            None => None,
        };
        let record = match record {
            Some(record) => record,
            None => self.first_record(slot)?,
        };
        Ok((record, to.min(self.slot_end(slot)?.unwrap_or(to))))
    }

    /// Returns a segment's first record. A lost one is inferred from the counts after the segment, or else from the segment
    /// before: across a gap that counts too few lines, and the last lines were not found.
    pub(super) fn first_record(&self, slot: usize) -> io::Result<IndexRecord> {
        let start = self.start(slot);
        if let Some(record) = self.index(slot)?.get(0)?.filter(|record| record.start == start) {
            return Ok(record);
        }
        let mut record = IndexRecord {
            start,
            out_newlines: 0,
            err_newlines: 0,
            time_ms: 0,
            stream: self.only().unwrap_or(Stream::Stdout),
            out_open: false,
            err_open: false,
        };
        if start == 0 {
            return Ok(record);
        }
        if let Some((out_newlines, err_newlines)) = self.infer_newlines(slot)? {
            return Ok(IndexRecord { out_newlines, err_newlines, ..record });
        }
        for before in (0..slot).rev() {
            if let Some(end) = self.slot_end(before)? {
                record.out_newlines = self.newlines_before(before, end, Some(Stream::Stdout))?;
                record.err_newlines = self.newlines_before(before, end, Some(Stream::Stderr))?;
                break;
            }
        }
        Ok(record)
    }

    /// Infers the newlines of stdout and stderr before a segment without an index: the next known counts, minus the newlines
    /// between. These are attributed to stdout, as far as its count allows.
    fn infer_newlines(&self, slot: usize) -> io::Result<Option<(u64, u64)>> {
        let (mut at, mut between) = (self.start(slot), 0_u64);
        for here in slot..self.slot_count() {
            let Some(end) = self.slot_end(here)?.filter(|_| self.start(here) == at) else { return Ok(None) };
            let known = match self.index(here)?.get(0)?.filter(|record| record.start == at) {
                Some(record) => Some((record.out_newlines, record.err_newlines)),
                None => {
                    between = between.saturating_add(self.count_newlines(here, end)?);
                    at = end;
                    let counts = self.counts().filter(|_| end >= self.end());
                    counts.map(|counts| (counts.out_newlines, counts.err_newlines))
                }
            };
            if let Some((out, err)) = known {
                let before = out.saturating_add(err).checked_sub(between);
                return Ok(before.map(|before| (before - err.min(before), err.min(before))));
            }
        }
        Ok(None)
    }

    /// Counts the newlines in a segment, up to the end of this view.
    fn count_newlines(&self, slot: usize, end: u64) -> io::Result<u64> {
        let counted = self.slot(slot).map(|slot| &slot.newlines).filter(|_| end <= self.end());
        if let Some(newlines) = counted.and_then(|counted| counted.get()) {
            return Ok(*newlines);
        }
        let mut newlines = 0;
        let mut count = |bytes: &[u8]| newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.for_each_chunk(slot, self.start(slot), end.min(self.end()), &mut count)?;
        if let Some(counted) = counted {
            let _ = counted.set(newlines);
        }
        Ok(newlines)
    }

    /// Counts the newlines before `at`, which is in the segment or at its end.
    pub(super) fn newlines_before(&self, slot: usize, at: u64, stream: Option<Stream>) -> io::Result<u64> {
        if at <= self.start(slot) {
            return Ok(self.first_record(slot)?.newlines(stream));
        }
        let (record, _) = self.record_at(slot, at - 1)?;
        let mut newlines = record.newlines(stream);
        if stream.is_none_or(|stream| stream == record.stream) {
            let mut count = |bytes: &[u8]| newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            self.for_each_chunk(slot, record.start, at, &mut count)?;
        }
        Ok(newlines)
    }

    /// Passes the bytes `from..to` of one segment to `take`, in chunks.
    pub(super) fn for_each_chunk(
        &self,
        slot: usize,
        from: u64,
        to: u64,
        take: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut window = vec![0; to.saturating_sub(from).min(MAX_READ_LEN) as usize];
        let mut at = from;
        while at < to {
            let len = (to - at).min(MAX_READ_LEN) as usize;
            let n = self.fill(slot, at, window.get_mut(..len).unwrap_or_default())?;
            if n == 0 {
                break;
            }
            take(window.get(..n).unwrap_or_default());
            at += n as u64;
        }
        Ok(())
    }
}
