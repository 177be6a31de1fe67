//! Finds lines by a regular expression in the whole log, with bounded memory.

use super::lines::{LinePage, LineQuery, MAX_PAGE_BYTES};
use super::reader::Log;
use super::walk::{LogWalk, WalkItem};
use crate::matcher::{BoundedRegex, Meter, is_unmetered};
use crate::text::{PageEnd, line_text};
use memchr::memchr;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::params::Ansi;
use toold_proto::process::Gap;

/// The length of a window. A longer line is searched in windows; only the matching window is returned.
pub const LINE_WINDOW_LEN: usize = 64 * 1024;

/// The overlap of two windows of one line, so that a match up to this length is not lost between them.
const WINDOW_OVERLAP_LEN: usize = 4 * 1024;

/// The maximum length of index that is skipped in search of a stream's bytes before the meter is asked.
const MAX_TURN_INDEX_BYTES: u64 = 1024 * 1024;

impl Log {
    /// Returns matching lines of the whole log: `limit` of them from the line `offset` on, or the last ones.
    pub(super) fn grep(&self, regex: &Arc<BoundedRegex>, query: &LineQuery, counts: &Counts) -> io::Result<LinePage> {
        let mut grep = Grep::new(regex, query, Meter::unlimited());
        grep.search(self, counts, u64::MAX)?;
        Ok(grep.finish(counts))
    }
}

struct Hit {
    line: u64,
    bytes: Vec<u8>,
}

/// A search through a log, in as many turns as its owner wants.
pub struct Grep {
    regex: Arc<BoundedRegex>,
    /// After it has ended the search, the result is incomplete.
    pub meter: Meter,
    offset: Option<u64>,
    limit: u64,
    stream: Option<Stream>,
    ansi: Ansi,
    /// The offset in the log of the next byte to search.
    at: u64,
    /// The first gap.
    gap: Option<Gap>,
    /// The number of the current line.
    line: u64,
    /// The buffered part of the current line: at most a window.
    part: Vec<u8>,
    /// The current line is longer than a window.
    long: bool,
    /// The first window of the current line that matched.
    matching_window: Option<Vec<u8>>,
    matched: u64,
    hits: VecDeque<Hit>,
    hit_bytes: usize,
    /// A line after the hits matches too.
    more: bool,
    truncated: bool,
}

impl Grep {
    /// Starts a search for `regex` at the start of a log. `query` selects among the lines that match.
    pub fn new(regex: &Arc<BoundedRegex>, query: &LineQuery, meter: Meter) -> Grep {
        Grep {
            regex: regex.clone(),
            meter,
            offset: query.offset,
            limit: query.limit,
            stream: query.stream,
            ansi: query.ansi,
            at: 0,
            gap: None,
            line: 0,
            part: Vec::new(),
            long: false,
            matching_window: None,
            matched: 0,
            hits: VecDeque::new(),
            hit_bytes: 0,
            more: false,
            truncated: false,
        }
    }

    /// Searches about `max` bytes more. Returns true at the end of the log. `log` and `counts` are the same in every turn.
    pub fn search(&mut self, log: &Log, counts: &Counts, max: u64) -> io::Result<bool> {
        log.set_counts(counts);
        let stop = self.at.saturating_add(max);
        let mut walk = LogWalk::new(log, self.at, self.stream);
        while walk.at() < stop && self.meter.ended().is_none() {
            match walk.next(MAX_TURN_INDEX_BYTES)? {
                WalkItem::End => {
                    self.end_line(false);
                    return Ok(true);
                }
                WalkItem::Bytes { bytes, .. } => {
                    if is_unmetered(self.regex.cost()) {
                        // It does not count by itself.
                        self.meter.charge(bytes.len() as u64, 0);
                    }
                    self.feed(bytes);
                }
                WalkItem::Gap(here) => {
                    self.gap = self.gap.or(Some(here));
                    self.jump(log.newlines_after(here, self.stream, counts)?);
                }
            }
        }
        self.at = walk.at();
        Ok(false)
    }

    /// Returns the lines that were found.
    pub fn finish(self, counts: &Counts) -> LinePage {
        LinePage {
            next: self.hits.back().filter(|_| self.more).map(|hit| hit.line + 1),
            first_line: self.hits.front().map_or(0, |hit| hit.line),
            shown: self.hits.len() as u64,
            hit_lines: self.hits.iter().map(|hit| hit.line).collect(),
            bytes: self.hits.into_iter().flat_map(|hit| hit.bytes).collect(),
            total_lines: counts.lines_of(self.stream),
            matched: Some(self.matched),
            truncated: self.truncated,
            gap: self.gap,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(i) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(i);
            rest = after.get(1..).unwrap_or_default();
            if self.part.is_empty() && !self.long && line.len() <= LINE_WINDOW_LEN {
                // Most lines are complete in the read buffer: no copy.
                if self.is_match(line) {
                    self.hit(line, true);
                }
                self.line += 1;
            } else {
                self.extend(line);
                self.end_line(true);
            }
        }
        self.extend(rest);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while self.part.len() + rest.len() > LINE_WINDOW_LEN {
            let (now, later) = rest.split_at(LINE_WINDOW_LEN - self.part.len());
            self.part.extend_from_slice(now);
            rest = later;
            self.long = true;
            if self.matching_window.is_none() && self.is_match(&self.part) {
                self.matching_window = Some(self.part.clone());
            }
            self.part.drain(..LINE_WINDOW_LEN - WINDOW_OVERLAP_LEN);
        }
        self.part.extend_from_slice(rest);
    }

    /// Continues after a gap: the current line ends at it, unless it continues after it.
    fn jump(&mut self, line: u64) {
        if line == self.line {
            return;
        }
        if self.long || !self.part.is_empty() {
            self.end_line(true);
        }
        self.line = line;
    }

    fn end_line(&mut self, newline: bool) {
        if newline || self.long || !self.part.is_empty() {
            let part = std::mem::take(&mut self.part);
            match self.matching_window.take() {
                Some(window) => self.hit(&window, true),
                None if self.is_match(&part) => self.hit(&part, newline),
                None => {}
            }
            self.truncated |= self.long && self.hits.back().is_some_and(|hit| hit.line == self.line);
            self.long = false;
            self.line += 1;
            self.part = part;
            self.part.clear();
        }
    }

    fn is_match(&self, line: &[u8]) -> bool {
        self.regex.is_match(&line_text(line, PageEnd::Last, self.ansi), &self.meter)
    }

    fn hit(&mut self, line: &[u8], newline: bool) {
        self.matched += 1;
        let len = line.len() + usize::from(newline);
        match self.offset {
            Some(offset) => {
                if self.line < offset || self.more {
                    return;
                }
                let enough = self.hits.len() as u64 >= self.limit;
                if enough || self.hit_bytes + len > MAX_PAGE_BYTES {
                    self.more = true;
                    self.truncated |= !enough;
                    return;
                }
            }
            None => {
                if self.limit == 0 {
                    return;
                }
                while self.hits.len() as u64 >= self.limit || self.hit_bytes + len > MAX_PAGE_BYTES {
                    self.truncated |= (self.hits.len() as u64) < self.limit;
                    let Some(oldest) = self.hits.pop_front() else { break };
                    self.hit_bytes -= oldest.bytes.len();
                }
            }
        }
        let mut bytes = line.to_vec();
        bytes.extend(newline.then_some(b'\n'));
        self.hit_bytes += bytes.len();
        self.hits.push_back(Hit { line: self.line, bytes });
    }
}
