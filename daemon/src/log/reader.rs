//! Reads a log by offset. No state is kept between calls: a cursor is a number of the caller.
//!
//! The log may grow and lose old segments while it is read. A `Log` is a view up to a fixed end, so its content does not
//! change; a segment that is dropped meanwhile reads as a gap.

use super::cached;
use super::segments::{Index, SegmentSlot};
use super::stream::to_wire;
use super::walk::{LogWalk, WalkItem};
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use toold_format::Stream;
use toold_format::log::Counts;
use toold_format::log::parse_log_name;
use toold_proto::process::{Gap, Span};

/// The bytes of index read for a page of one stream, after which the page ends early: 128 Ki changes of stream.
pub(super) const MAX_PAGE_INDEX_BYTES: u64 = 4 * 1024 * 1024;

/// The bytes that a program wrote, up to an end.
#[derive(Debug)]
pub struct Log {
    dir: PathBuf,
    slots: Vec<SegmentSlot>,
    end: u64,
    /// The counts at the end, if the caller knows them. They replace a missing index.
    counts: OnceCell<Counts>,
    /// The only stream that wrote, if the caller knows that there is one: then no index is needed.
    only: Option<Stream>,
}

/// A page of output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub bytes: Vec<u8>,
    /// The start of the page: the cursor, or the end of the gap at the cursor.
    pub from: u64,
    /// The cursor for the next page.
    pub next: u64,
    /// The dropped range between the cursor and the page. A page contains no gap.
    pub gap: Option<Gap>,
    /// A gap follows: an incomplete character at the page's end stays incomplete.
    pub before_gap: bool,
    /// For one stream, the runs of adjacent bytes: position in `bytes` and offset.
    runs: Vec<(usize, u64)>,
}

/// The range `from..next` that was read into the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    pub from: u64,
    pub next: u64,
    /// The dropped range between the cursor and `from`.
    pub gap: Option<Gap>,
}

impl Page {
    /// Returns the cursor after the first `len` bytes of the page, for a caller that did not use all of them.
    pub fn cursor(&self, len: usize) -> u64 {
        if len >= self.bytes.len() {
            return self.next;
        }
        let run = self.runs.partition_point(|(position, _)| *position <= len);
        let (position, at) = run.checked_sub(1).and_then(|i| self.runs.get(i)).copied().unwrap_or((0, self.from));
        at + (len - position) as u64
    }
}

/// The location of an offset.
pub(super) enum Location {
    /// Inside a segment. `end` is the first offset after the segment or the view.
    In {
        slot: usize,
        end: u64,
    },
    Gap {
        to: u64,
    },
    End,
}

impl Log {
    /// Opens the log in `dir` as a view up to `end`. An empty view opens no file; while the first segment contains
    /// everything, this is one `open`.
    pub fn open(dir: &Path, end: u64) -> io::Result<Log> {
        let mut log = Log { dir: dir.to_owned(), slots: Vec::new(), end, counts: OnceCell::new(), only: None };
        if end == 0 {
            return Ok(log);
        }
        log.slots.push(SegmentSlot::named(0));
        if log.slot_end(0)?.is_none_or(|head| head < end) {
            log.slots = list(dir)?;
        }
        Ok(log)
    }

    /// Opens the whole log in `dir`, if its end is not known. The shim must have exited.
    pub fn open_all(dir: &Path) -> io::Result<Log> {
        let slots = list(dir)?;
        let mut log = Log { dir: dir.to_owned(), slots, end: u64::MAX, counts: OnceCell::new(), only: None };
        log.end = log.last_segment()?.map_or(0, |(_, end)| end);
        Ok(log)
    }

    /// Returns a log of one segment in unnamed files.
    pub fn of_files(start: u64, log: File, idx: Option<File>) -> io::Result<Log> {
        let slots = vec![SegmentSlot::of_files(start, log, idx)?];
        let mut log = Log { dir: PathBuf::new(), slots, end: u64::MAX, counts: OnceCell::new(), only: None };
        log.end = log.last_segment()?.map_or(0, |(_, end)| end);
        Ok(log)
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the same log with the knowledge of its only stream.
    pub fn with_only(self, only: Option<Stream>) -> Log {
        Log { only, ..self }
    }

    pub(super) fn only(&self) -> Option<Stream> {
        self.only
    }

    /// Returns the same log with an earlier end.
    pub fn until(self, end: u64) -> Log {
        Log { end: end.min(self.end), counts: OnceCell::new(), ..self }
    }

    /// Reads up to `max` bytes from the cursor `from` on, of one stream or both. A page of one stream may be short or empty
    /// before the end, if the other stream wrote all that was scanned. It always makes progress.
    pub fn read(&self, from: u64, max: usize, stream: Option<Stream>) -> io::Result<Page> {
        match stream {
            None => self.read_merged(from, max),
            Some(stream) => self.read_stream(from, max, stream),
        }
    }

    /// Reads the bytes of both streams from the cursor `from` on into the caller's buffer, for callers that read many pages.
    pub fn read_into(&self, from: u64, buf: &mut [u8]) -> io::Result<Filled> {
        let page = self.page_at(from)?;
        let mut filled = Filled { from: page.from, next: page.next, gap: page.gap };
        let mut len = 0;
        while let (Location::In { slot, end }, Some(room)) = (self.locate(filled.next)?, buf.get_mut(len..))
            && !room.is_empty()
        {
            let wanted = room.len().min(usize::try_from(end - filled.next).unwrap_or(usize::MAX));
            let n = self.fill(slot, filled.next, &mut room[..wanted])?;
            (len, filled.next) = (len + n, filled.next + n as u64);
            if n < wanted {
                break;
            }
        }
        Ok(filled)
    }

    /// Reads the last `max` bytes before the end, or those after the last gap; `next` is the end.
    pub fn tail(&self, max: usize, stream: Option<Stream>) -> io::Result<Page> {
        let tail = self.tail_start(max as u64, stream)?;
        let mut page = self.read(tail.from, max, stream)?;
        page.next = self.end;
        page.gap = tail.gap_after.or(tail.gap_before);
        page.before_gap = tail.gap_after.is_some();
        Ok(page)
    }

    /// Returns stream and time of the bytes `from..to`.
    pub fn spans(&self, from: u64, to: u64) -> io::Result<Vec<Span>> {
        let (mut spans, mut at) = (Vec::new(), from);
        while at < to {
            match self.locate(at)? {
                Location::End => break,
                Location::Gap { to } => at = to,
                Location::In { slot, end } if !self.has_streams(slot)? => at = end,
                Location::In { slot, end } => {
                    let (record, record_end) = self.record_at(slot, at)?;
                    let until = record_end.min(end).min(to);
                    spans.push(Span { stream: to_wire(record.stream), from: at, to: until, at_ms: record.time_ms });
                    at = until;
                }
            }
        }
        Ok(spans)
    }

    /// Returns the first dropped range from `from` on.
    pub fn first_gap(&self, from: u64) -> io::Result<Option<Gap>> {
        let mut at = from;
        loop {
            match self.locate(at)? {
                Location::End => return Ok(None),
                Location::In { end, .. } => at = end,
                Location::Gap { to } => return Ok(Some(Gap { from: at, to })),
            }
        }
    }

    /// Computes the counts from the files, after a shim that died before it stored them. Bytes that the disk rejected after
    /// the last stored one are unknown.
    pub fn recount(&self) -> io::Result<Counts> {
        let Some((slot, end)) = self.last_segment()? else { return Ok(Counts::default()) };
        let (record, _) = self.record_at(slot, end - 1)?;
        let mut counts = Counts {
            end: record.start,
            out_newlines: record.out_newlines,
            err_newlines: record.err_newlines,
            out_open: record.out_open,
            err_open: record.err_open,
            ..Counts::default()
        };
        self.for_each_chunk(slot, record.start, end, &mut |bytes| counts.advance(record.stream, bytes))?;
        let mut kept = 0;
        for i in 0..self.slots.len() {
            kept += self.slot_end(i)?.map_or(0, |end| end - self.start(i));
        }
        let gaps = end.saturating_sub(kept);
        counts.unstored = self.index(slot)?.header.map_or(0, |header| header.unstored).min(gaps);
        counts.dropped = gaps - counts.unstored;
        Ok(counts)
    }

    fn read_merged(&self, from: u64, max: usize) -> io::Result<Page> {
        let mut page = self.page_at(from)?;
        while page.bytes.len() < max {
            let Location::In { slot, end } = self.locate(page.next)? else { break };
            let filled = page.bytes.len();
            let wanted = (max - filled).min(usize::try_from(end - page.next).unwrap_or(usize::MAX));
            page.bytes.resize(filled + wanted, 0);
            let n = self.fill(slot, page.next, page.bytes.get_mut(filled..).unwrap_or_default())?;
            page.bytes.truncate(filled + n);
            page.next += n as u64;
            if n < wanted {
                break;
            }
        }
        page.before_gap = matches!(self.locate(page.next)?, Location::Gap { .. });
        Ok(page)
    }

    fn read_stream(&self, from: u64, max: usize, stream: Stream) -> io::Result<Page> {
        let mut page = self.page_at(from)?;
        let mut walk = LogWalk::new(self, page.from, Some(stream));
        while page.bytes.len() < max {
            match walk.next(MAX_PAGE_INDEX_BYTES)? {
                WalkItem::End => break,
                WalkItem::Bytes { bytes: [], .. } => break,
                WalkItem::Gap(gap) if page.bytes.is_empty() && page.gap.is_none() => {
                    (page.gap, page.from) = (Some(gap), gap.to);
                }
                WalkItem::Gap(gap) => {
                    (page.next, page.before_gap) = (gap.from, true);
                    return Ok(page);
                }
                WalkItem::Bytes { at, bytes } => {
                    let taken = bytes.get(..max - page.bytes.len()).unwrap_or(bytes);
                    page.runs.push((page.bytes.len(), at));
                    page.bytes.extend_from_slice(taken);
                    page.next = at + taken.len() as u64;
                }
            }
        }
        if page.bytes.len() < max {
            page.next = walk.at();
        }
        Ok(page)
    }

    /// Returns an empty page at the cursor, or after the gap at the cursor.
    fn page_at(&self, from: u64) -> io::Result<Page> {
        let from = from.min(self.end);
        let (at, gap) = match self.locate(from)? {
            Location::Gap { to } => (to, Some(Gap { from, to })),
            Location::In { .. } | Location::End => (from, None),
        };
        Ok(Page { from: at, next: at, gap, ..Page::default() })
    }

    pub(super) fn locate(&self, at: u64) -> io::Result<Location> {
        if at >= self.end {
            return Ok(Location::End);
        }
        let after = self.slots.partition_point(|slot| slot.start <= at);
        if let Some(slot) = after.checked_sub(1)
            && let Some(end) = self.slot_end(slot)?
            && at < end
        {
            return Ok(Location::In { slot, end: end.min(self.end) });
        }
        for slot in after..self.slots.len() {
            if self.slot_end(slot)?.is_some() {
                return Ok(Location::Gap { to: self.start(slot).min(self.end) });
            }
        }
        Ok(Location::Gap { to: self.end })
    }

    /// Returns the last segment with bytes, and its end.
    pub(super) fn last_segment(&self) -> io::Result<Option<(usize, u64)>> {
        for slot in (0..self.slots.len()).rev() {
            if let Some(end) = self.slot_end(slot)? {
                return Ok(Some((slot, end)));
            }
        }
        Ok(None)
    }

    /// Sets the counts at this view's end.
    pub(super) fn set_counts(&self, counts: &Counts) {
        if counts.end == self.end {
            let _ = self.counts.set(*counts);
        }
    }

    pub(super) fn counts(&self) -> Option<&Counts> {
        self.counts.get()
    }

    pub(super) fn slot(&self, slot: usize) -> Option<&SegmentSlot> {
        self.slots.get(slot)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn start(&self, slot: usize) -> u64 {
        self.slots.get(slot).map_or(u64::MAX, |slot| slot.start)
    }

    /// Returns the first offset after a segment, or None if it is empty or dropped.
    pub(super) fn slot_end(&self, slot: usize) -> io::Result<Option<u64>> {
        let Some(here) = self.slots.get(slot) else { return Ok(None) };
        Ok(here.segment(&self.dir)?.map(|segment| segment.end.min(self.start(slot + 1))))
    }

    pub(super) fn index(&self, slot: usize) -> io::Result<&Index> {
        self.slots.get(slot).ok_or(io::ErrorKind::NotFound)?.index(&self.dir)
    }

    /// Fills `buf` with the bytes from `at` on, up to the end of the segment.
    pub(super) fn fill(&self, slot: usize, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        match self.slots.get(slot) {
            Some(here) => here.segment(&self.dir)?.map_or(Ok(0), |segment| segment.read_at(at, buf)),
            None => Ok(0),
        }
    }

    /// Returns the number of bytes read from files.
    #[cfg(test)]
    pub(super) fn bytes_read(&self) -> u64 {
        self.slots.iter().map(SegmentSlot::bytes_read).sum()
    }
}

fn list(dir: &Path) -> io::Result<Vec<SegmentSlot>> {
    cached::check_may_wait()?;
    let mut starts = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // A directory entry that is not a file must not end the segment before it. `open` handles one that is gone by now.
        if entry.file_type().is_ok_and(|kind| !kind.is_file()) {
            continue;
        }
        starts.extend(parse_log_name(entry.file_name().as_bytes()));
    }
    starts.sort_unstable();
    Ok(starts.into_iter().map(SegmentSlot::named).collect())
}
