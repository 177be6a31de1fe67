//! Reads a log by line. The index locates lines, so the cost depends on the page and not on the file.
//!
//! Lines are numbered from 0 in the selected stream, or in the merged text, over everything the program wrote: dropped lines
//! have numbers too. The rest of a line at the edge of a gap is returned as that line.

use super::reader::{Location, Log};
use super::walk::{LogWalk, WalkItem};
use crate::matcher::BoundedRegex;
use memchr::{memchr, memchr_iter};
use std::io;
use std::sync::Arc;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::params::Ansi;
use toold_proto::process::Gap;

/// The maximum length of a page.
pub const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Selects lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineQuery<'q> {
    /// The first line, from 0. None selects the last lines, or with `grep` the last matching ones.
    pub offset: Option<u64>,
    pub limit: u64,
    pub stream: Option<Stream>,
    /// Selects only matching lines.
    pub grep: Option<&'q Arc<BoundedRegex>>,
    /// With `Strip`, `grep` matches lines without their escape sequences. The page's bytes always contain them.
    pub ansi: Ansi,
}

/// A page of lines, unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinePage {
    /// Each line with its newline; the last one may have none.
    pub bytes: Vec<u8>,
    /// The number of the first line in the page; in an empty page, of the next line.
    pub first_line: u64,
    /// The number of lines in the page.
    pub shown: u64,
    /// All lines that the program wrote in this view.
    pub total_lines: u64,
    /// The first line of the next page, or None if this is the last one.
    pub next: Option<u64>,
    /// With `grep`, the number of matching lines in the whole log.
    pub matched: Option<u64>,
    /// With `grep`, the number of each line in the page.
    pub hit_lines: Vec<u64>,
    /// The page was full before all requested lines were in it, or a line was cut.
    pub truncated: bool,
    /// The dropped range before the first line, or inside a line.
    pub gap: Option<Gap>,
}

impl Log {
    /// Returns a page of lines. `counts` are those at this view's end. Without `grep` a page ends at a gap; the next page
    /// starts after the gap and reports it.
    pub fn lines(&self, query: &LineQuery, counts: &Counts) -> io::Result<LinePage> {
        self.set_counts(counts);
        if let Some(regex) = query.grep {
            return self.grep(regex, query, counts);
        }
        let start = match query.offset {
            Some(line) => self.line_start(query.stream, line, counts)?,
            None => self.last_lines(query, counts)?,
        };
        self.collect(start, query, counts)
    }

    /// Returns the start of a line, or of the first kept bytes in or after it.
    fn line_start(&self, stream: Option<Stream>, line: u64, counts: &Counts) -> io::Result<LineStart> {
        let Some(slot) = self.line_slot(stream, line)? else {
            let gap = (self.end() > 0).then_some(Gap { from: 0, to: self.end() });
            return Ok(LineStart { at: self.end(), line: counts.newlines(stream), gap, cut: false });
        };
        let base = self.first_record(slot)?;
        if base.newlines(stream) >= line {
            let gap = (base.start > 0).then_some(Gap { from: 0, to: base.start });
            return Ok(LineStart { at: base.start, line: base.newlines(stream), gap, cut: false });
        }
        let index = self.index(slot)?;
        let record = match index.until_newlines(stream, line)?.checked_sub(1) {
            Some(i) => index.get(i)?.unwrap_or(base),
            None => base,
        };
        let mut walk = LogWalk::new(self, record.start, stream);
        let mut missing = line.saturating_sub(record.newlines(stream));
        while missing > 0 {
            match walk.next(u64::MAX)? {
                WalkItem::Bytes { at, bytes } => {
                    let here = usize::try_from(missing - 1).unwrap_or(usize::MAX);
                    match memchr_iter(b'\n', bytes).nth(here) {
                        Some(i) => return Ok(LineStart { at: at + i as u64 + 1, line, gap: None, cut: false }),
                        None => missing -= memchr_iter(b'\n', bytes).count() as u64,
                    }
                }
                WalkItem::Gap(gap) => {
                    let reached = self.newlines_after(gap, stream, counts)?;
                    if reached >= line || gap.to == self.end() {
                        return Ok(LineStart { at: gap.to, line: reached, gap: Some(gap), cut: false });
                    }
                    missing = line - reached;
                }
                WalkItem::End => return Ok(LineStart { at: self.end(), line, gap: None, cut: false }),
            }
        }
        Ok(LineStart { at: record.start, line, gap: None, cut: false })
    }

    /// Returns the last segment that starts before the line, or else the first segment.
    fn line_slot(&self, stream: Option<Stream>, line: u64) -> io::Result<Option<usize>> {
        let mut found = None;
        for slot in (0..self.slot_count()).rev() {
            if self.start(slot) >= self.end() || self.slot_end(slot)?.is_none() {
                continue;
            }
            found = Some(slot);
            if self.first_record(slot)?.newlines(stream) < line {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the number of the line that continues after a gap.
    pub(super) fn newlines_after(&self, gap: Gap, stream: Option<Stream>, counts: &Counts) -> io::Result<u64> {
        for slot in 0..self.slot_count() {
            if self.start(slot) == gap.to && gap.to < self.end() {
                return Ok(self.first_record(slot)?.newlines(stream));
            }
        }
        Ok(counts.newlines(stream))
    }

    /// Returns the start of the last lines: at most the requested number, a page, and only lines after the last gap.
    fn last_lines(&self, query: &LineQuery, counts: &Counts) -> io::Result<LineStart> {
        let stream = query.stream;
        let first = counts.lines_of(stream).saturating_sub(query.limit);
        let start = self.line_start(stream, first, counts)?;
        let tail = self.tail_start(MAX_PAGE_BYTES as u64, stream)?;
        let gap = tail.gap_after.or(tail.gap_before);
        if start.at >= tail.from {
            return Ok(LineStart { gap: start.gap.or(tail.gap_after), ..start });
        }
        let line = self.newlines_at(tail.from, stream, counts)?;
        if tail.gap_before.is_some() {
            return Ok(LineStart { at: tail.from, line, gap, cut: false });
        }
        // Too much text: start at the first line that starts within the page. A line longer than a page has no start there,
        // and its end is returned.
        let mut walk = LogWalk::new(self, tail.from, stream);
        while let WalkItem::Bytes { at, bytes } = walk.next(u64::MAX)? {
            if line + 1 >= counts.lines_of(stream) {
                break;
            }
            if let Some(i) = memchr(b'\n', bytes) {
                return Ok(LineStart { at: at + i as u64 + 1, line: line + 1, gap, cut: true });
            }
        }
        Ok(LineStart { at: tail.from, line, gap, cut: true })
    }

    /// Counts the newlines before an offset that is kept.
    fn newlines_at(&self, at: u64, stream: Option<Stream>, counts: &Counts) -> io::Result<u64> {
        match self.locate(at)? {
            Location::In { slot, .. } => self.newlines_before(slot, at, stream),
            Location::Gap { .. } | Location::End => Ok(counts.newlines(stream)),
        }
    }

    fn collect(&self, start: LineStart, query: &LineQuery, counts: &Counts) -> io::Result<LinePage> {
        let total_lines = counts.lines_of(query.stream);
        let mut page = LinePage {
            first_line: start.line.min(total_lines),
            total_lines,
            truncated: start.cut,
            gap: start.gap,
            ..LinePage::default()
        };
        self.fill_page(&mut page, start.at, query, counts)?;
        if page.shown == 0 {
            page.first_line = total_lines;
        }
        page.next = Some(page.first_line + page.shown).filter(|next| *next < total_lines);
        Ok(page)
    }

    fn fill_page(&self, page: &mut LinePage, from: u64, query: &LineQuery, counts: &Counts) -> io::Result<()> {
        let mut walk = LogWalk::new(self, from, query.stream);
        // The start of the incomplete line in the page.
        let mut open = 0;
        while page.shown < query.limit {
            match walk.next(u64::MAX)? {
                WalkItem::End => break,
                WalkItem::Bytes { bytes, .. } => {
                    if page.take(bytes, query.limit, &mut open) {
                        return Ok(());
                    }
                }
                WalkItem::Gap(gap) => {
                    let line = self.newlines_after(gap, query.stream, counts)?;
                    let same = line == page.first_line + page.shown;
                    if same || gap.to == self.end() || page.bytes.is_empty() {
                        page.gap = page.gap.or(Some(gap));
                    }
                    if page.bytes.is_empty() {
                        page.first_line = line.min(page.total_lines);
                    } else if !same {
                        break;
                    }
                }
            }
        }
        page.shown += u64::from(page.bytes.len() > open);
        Ok(())
    }
}

/// The start of a page of lines.
struct LineStart {
    at: u64,
    line: u64,
    gap: Option<Gap>,
    /// Some requested text is before it.
    cut: bool,
}

impl LinePage {
    /// Adds bytes. Returns true if the page is full.
    fn take(&mut self, bytes: &[u8], limit: u64, open: &mut usize) -> bool {
        let mut rest = bytes;
        while self.shown < limit && !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let (line, after) = rest.split_at(end.map_or(rest.len(), |i| i + 1));
            let room = MAX_PAGE_BYTES - self.bytes.len();
            if line.len() > room {
                self.truncated = true;
                if self.shown == 0 {
                    self.bytes.extend_from_slice(line.get(..room).unwrap_or_default());
                    self.shown = 1;
                } else {
                    self.bytes.truncate(*open);
                }
                *open = self.bytes.len();
                return true;
            }
            self.bytes.extend_from_slice(line);
            rest = after;
            if end.is_some() {
                self.shown += 1;
                *open = self.bytes.len();
            }
        }
        self.shown >= limit
    }
}
