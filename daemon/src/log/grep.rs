//! Finds lines by a regular expression in the whole log, with bounded memory.

use super::lines::{LinePage, LineQuery, MAX_PAGE_BYTES};
use super::reader::Log;
use super::walk::{LogWalk, WalkItem};
use crate::text::{PageEnd, line_text};
use memchr::memchr;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::io;
use toold_format::log::Counts;

/// The length of a window. A longer line is searched in windows; only the matching window is returned.
pub const LINE_WINDOW_LEN: usize = 64 * 1024;

/// The overlap of two windows of one line, so that a match up to this length is not lost between them.
const WINDOW_OVERLAP_LEN: usize = 4 * 1024;

impl Log {
    /// Returns matching lines of the whole log: `limit` of them from the line `offset` on, or the last ones.
    pub(super) fn grep(&self, regex: &Regex, query: &LineQuery, counts: &Counts) -> io::Result<LinePage> {
        let mut grep = Grep::new(regex, query);
        let mut gap = None;
        let mut walk = LogWalk::new(self, 0, query.stream);
        loop {
            match walk.next(u64::MAX)? {
                WalkItem::End => break,
                WalkItem::Bytes { bytes, .. } => grep.feed(bytes),
                WalkItem::Gap(here) => {
                    gap = gap.or(Some(here));
                    grep.jump(self.newlines_after(here, query.stream, counts)?);
                }
            }
        }
        grep.end_line(false);
        Ok(LinePage {
            next: grep.hits.back().filter(|_| grep.more).map(|hit| hit.line + 1),
            first_line: grep.hits.front().map_or(0, |hit| hit.line),
            shown: grep.hits.len() as u64,
            bytes: grep.hits.into_iter().flat_map(|hit| hit.bytes).collect(),
            total_lines: counts.lines_of(query.stream),
            matched: Some(grep.matched),
            truncated: grep.truncated,
            gap,
        })
    }
}

struct Hit {
    line: u64,
    bytes: Vec<u8>,
}

struct Grep<'q> {
    regex: &'q Regex,
    query: &'q LineQuery<'q>,
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

impl<'q> Grep<'q> {
    fn new(regex: &'q Regex, query: &'q LineQuery<'q>) -> Grep<'q> {
        Grep {
            regex,
            query,
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
        self.regex.is_match(&line_text(line, PageEnd::Last, self.query.ansi))
    }

    fn hit(&mut self, line: &[u8], newline: bool) {
        self.matched += 1;
        let len = line.len() + usize::from(newline);
        match self.query.offset {
            Some(offset) => {
                if self.line < offset || self.more {
                    return;
                }
                let enough = self.hits.len() as u64 >= self.query.limit;
                if enough || self.hit_bytes + len > MAX_PAGE_BYTES {
                    self.more = true;
                    self.truncated |= !enough;
                    return;
                }
            }
            None => {
                if self.query.limit == 0 {
                    return;
                }
                while self.hits.len() as u64 >= self.query.limit || self.hit_bytes + len > MAX_PAGE_BYTES {
                    self.truncated |= (self.hits.len() as u64) < self.query.limit;
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
