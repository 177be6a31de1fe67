//! A line that comes in pieces. Only its text is kept, of an over-long one a window, and where in the log it is.
//!
//! What is searched depends on the line alone, never on the pieces: a scan that goes on after a crash gets others.

use super::matches::Matches;
use super::patterns::Patterns;
use super::scan_position::{LinePart, OpenLine};
use toold_ansi::{MAX_ESCAPE_LEN, escape_len, next_escape, unterminated_len};

/// Text around what is searched of an over-long line, so that a word's boundary is seen and neither end of the window is
/// taken for the line's. A character has at most four bytes.
pub const CONTEXT_LEN: usize = 4;
/// A window may have so many times its text in escape sequences. One that has more is searched before it is full, so
/// that there is a bound to what has to be fed again.
const MAX_ESCAPE_RATIO: u64 = 16;

/// What a line is searched for, and in which pieces.
pub struct LineSearch<'s> {
    pub patterns: &'s Patterns,
    pub window: usize,
}

/// The open line of one stream.
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// The place in the log of the first byte that is needed again. None: nothing is held.
    start: Option<u64>,
    part: LinePart,
    /// The text of the window so far, without escape sequences.
    text: Vec<u8>,
    /// An escape sequence that may go on, and the place of each of its bytes: it may turn out to be text.
    held: Vec<u8>,
    held_at: Vec<u64>,
    /// Bytes with and without escape sequences from `start` to the end of `text`.
    raw: u64,
    /// The place of the byte that the next window begins with, and what `raw` was before it.
    next: (u64, u64),
}

impl LineBuffer {
    /// The line as `OpenLine` tells of it, without its bytes: they are fed again.
    pub fn resumed(open: OpenLine, scanned_to: u64) -> LineBuffer {
        LineBuffer {
            start: Some(open.start).filter(|start| *start < scanned_to),
            part: open.part,
            ..LineBuffer::default()
        }
    }

    /// Some of the line has come and its end has not.
    pub fn is_open(&self) -> bool {
        self.start.is_some() || self.part != LinePart::Whole
    }

    pub fn resume(&self, scanned_to: u64) -> OpenLine {
        OpenLine { start: self.start.unwrap_or(scanned_to), part: self.part }
    }

    /// More of the line, without its newline.
    pub fn push(&mut self, search: &LineSearch, mut at: u64, mut bytes: &[u8], found: &mut Matches) {
        while !bytes.is_empty() && self.part != LinePart::Matched {
            self.start.get_or_insert(at);
            let taken = match (self.held.is_empty(), next_escape(bytes)) {
                (false, _) => self.more_held(search, at, bytes, found),
                (true, Some(0)) => self.escape(search, at, bytes, found),
                (true, text) => {
                    let len = text.unwrap_or(bytes.len());
                    self.plain(search, at, bytes.get(..len).unwrap_or_default(), found);
                    len
                }
            };
            at += taken as u64;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// The line is over: its newline has come, or the program's end.
    pub fn end(&mut self, search: &LineSearch, found: &mut Matches) {
        while !self.held.is_empty() {
            let len = escape_len(&self.held).unwrap_or_else(|| unterminated_len(&self.held));
            self.release_escape(search, len, found);
        }
        if self.part != LinePart::Matched {
            let len = self.text.len() - self.text.iter().rev().take_while(|byte| **byte == b'\r').count();
            self.text.truncate(len);
            let from = self.from();
            if let Some(pattern) = search.patterns.first(&self.text, from..len) {
                found.line(pattern, &self.text);
            }
        }
        self.forget();
    }

    /// What has come of the line, as if it ended here. An escape sequence that has not all come is left out.
    pub fn peek(&self, search: &LineSearch, found: &mut Matches) {
        let len = self.text.len() - self.text.iter().rev().take_while(|byte| **byte == b'\r').count();
        let text = self.text.get(..len).unwrap_or_default();
        if self.part != LinePart::Matched
            && let Some(pattern) = search.patterns.first(text, self.from().min(len)..len)
        {
            found.line(pattern, text);
        }
    }

    /// As if nothing of it had come.
    pub fn forget(&mut self) {
        self.empty();
        (self.start, self.part) = (None, LinePart::Whole);
    }

    fn empty(&mut self) {
        self.text.clear();
        self.held.clear();
        self.held_at.clear();
        self.raw = 0;
    }

    /// Takes an escape sequence at the beginning of `bytes`, or holds it if it may go on. How many bytes it took.
    fn escape(&mut self, search: &LineSearch, at: u64, bytes: &[u8], found: &mut Matches) -> usize {
        self.limit_window(search, at, found);
        if let Some(len) = escape_len(bytes) {
            self.raw += len as u64;
            return len;
        }
        self.hold(at, bytes);
        bytes.len()
    }

    /// Goes on with a held sequence. How many bytes it took.
    fn more_held(&mut self, search: &LineSearch, at: u64, bytes: &[u8], found: &mut Matches) -> usize {
        // With one byte more than the longest it is always scanned_to.
        let more = bytes.get(..MAX_ESCAPE_LEN + 1 - self.held.len().min(MAX_ESCAPE_LEN)).unwrap_or(bytes);
        self.hold(at, more);
        while let Some(len) = escape_len(&self.held).filter(|_| !self.held.is_empty()) {
            self.release_escape(search, len, found);
        }
        more.len()
    }

    fn hold(&mut self, at: u64, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.held_at.extend((at..).take(bytes.len()));
    }

    /// Drops the first `len` held bytes, and takes the text up to the next escape sequence.
    fn release_escape(&mut self, search: &LineSearch, len: usize, found: &mut Matches) {
        self.raw += len as u64;
        let after = self.held.get(len..).unwrap_or_default();
        let end = len + next_escape(after).unwrap_or(after.len());
        let text: Vec<u8> = self.held.drain(..end).skip(len).collect();
        let places: Vec<u64> = self.held_at.drain(..end).skip(len).collect();
        for (byte, at) in text.iter().zip(places) {
            self.plain(search, at, &[*byte], found);
        }
        if let Some(at) = self.held_at.first() {
            self.limit_window(search, *at, found);
        }
    }

    /// Takes text that lies in one piece in the log.
    fn plain(&mut self, search: &LineSearch, mut at: u64, mut bytes: &[u8], found: &mut Matches) {
        let next = search.window - search.window / 2;
        while !bytes.is_empty() && self.part != LinePart::Matched {
            if self.text.len() == search.window && !self.matches_so_far(search, found) {
                self.text.drain(..next);
                self.start = Some(self.next.0);
                self.raw -= self.next.1;
            }
            if self.part == LinePart::Matched {
                return;
            }
            let taken = bytes.len().min(search.window - self.text.len());
            if let Some(before) = next.checked_sub(self.text.len()).filter(|before| *before < taken) {
                self.next = (at + before as u64, self.raw + before as u64);
            }
            self.text.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            self.raw += taken as u64;
            at += taken as u64;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Begins a new window at an escape sequence when too many have gone by.
    fn limit_window(&mut self, search: &LineSearch, at: u64, found: &mut Matches) {
        if self.part == LinePart::Matched || self.raw < MAX_ESCAPE_RATIO * search.window as u64 {
            return;
        }
        if !self.matches_so_far(search, found) {
            self.text.clear();
            (self.start, self.raw) = (Some(at), 0);
        }
    }

    /// Searches the window of a line that goes on. One that has matched is counted, and its rest is skipped.
    fn matches_so_far(&mut self, search: &LineSearch, found: &mut Matches) -> bool {
        let (from, to) = (self.from(), self.text.len().saturating_sub(CONTEXT_LEN));
        let pattern = search.patterns.first(&self.text, from.min(to)..to);
        self.part = LinePart::Rest;
        if let Some(pattern) = pattern {
            found.line(pattern, &self.text);
            self.empty();
            (self.start, self.part) = (None, LinePart::Matched);
        }
        pattern.is_some()
    }

    /// Where in the window to search from.
    fn from(&self) -> usize {
        if self.part == LinePart::Rest { CONTEXT_LEN.min(self.text.len()) } else { 0 }
    }
}
