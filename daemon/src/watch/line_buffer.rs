//! Collects a line that arrives in pieces. Keeps its text, or a window of an over-long one, and its offset in the log.
//!
//! The result depends only on the line and never on the pieces: a scan that continues after a crash gets other pieces.

use super::matches::Matches;
use super::patterns::Patterns;
use super::scan_position::{LinePart, OpenLine};
use crate::matcher::Meter;
use toold_ansi::{MAX_ESCAPE_LEN, escape_len, next_escape, next_escape_start, starts_escape, unterminated_len};

/// The text around the searched part of an over-long line, so that word boundaries are visible and no end of the window
/// counts as the line's end. A character has at most four bytes.
pub const CONTEXT_LEN: usize = 4;
/// The maximum ratio of escape sequences to text in a window. A window with more is searched before it is full, so that the
/// bytes to feed again are bounded.
const MAX_ESCAPE_RATIO: u64 = 16;

/// The patterns of a search, the meter of its work, and the length of its windows.
pub struct LineSearch<'s> {
    pub patterns: &'s Patterns,
    pub meter: &'s Meter,
    pub window: usize,
}

/// The open line of one stream.
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// The offset of the first byte that is needed again. None if nothing is buffered.
    start: Option<u64>,
    part: LinePart,
    /// The text of the window, without escape sequences.
    text: Vec<u8>,
    /// An incomplete escape sequence and the offset of each byte: it may turn out to be text.
    held: Vec<u8>,
    held_at: Vec<u64>,
    /// The length from `start` to the end of `text`, with escape sequences.
    raw: u64,
    /// The offset of the first byte of the next window, and the value of `raw` before it.
    next: (u64, u64),
}

impl LineBuffer {
    /// Restores the line of an `OpenLine` without its bytes: they are fed again.
    pub fn resumed(open: OpenLine, scanned_to: u64) -> LineBuffer {
        LineBuffer {
            start: Some(open.start).filter(|start| *start < scanned_to),
            part: open.part,
            ..LineBuffer::default()
        }
    }

    /// Returns true if a part of the line has arrived and its end has not.
    pub fn is_open(&self) -> bool {
        self.start.is_some() || self.part != LinePart::Whole
    }

    /// Returns the length of the text that `peek` searches.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    pub fn open_line(&self, scanned_to: u64) -> OpenLine {
        OpenLine { start: self.start.unwrap_or(scanned_to), part: self.part }
    }

    /// Adds bytes of the line, without its newline.
    pub fn push(&mut self, search: &LineSearch, mut at: u64, mut bytes: &[u8], matches: &mut Matches) {
        while !bytes.is_empty() && self.part != LinePart::Matched {
            self.start.get_or_insert(at);
            let taken = match (self.held.is_empty(), next_escape_start(bytes)) {
                (false, _) => self.continue_held(search, at, bytes, matches),
                (true, Some(0)) => self.escape(search, at, bytes, matches),
                (true, text) => {
                    let len = text.unwrap_or(bytes.len());
                    self.push_text(search, at, bytes.get(..len).unwrap_or_default(), matches);
                    len
                }
            };
            at += taken as u64;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Ends the line: its newline arrived, or the program ended.
    pub fn end(&mut self, search: &LineSearch, matches: &mut Matches) {
        while !self.held.is_empty() {
            let len = escape_len(&self.held).unwrap_or_else(|| unterminated_len(&self.held));
            self.release_escape(search, len, next_escape, matches);
        }
        if self.part != LinePart::Matched {
            let len = self.text.len() - self.text.iter().rev().take_while(|byte| **byte == b'\r').count();
            self.text.truncate(len);
            let from = self.search_start();
            if let Some(pattern) = search.patterns.first(&self.text, from..len, search.meter) {
                matches.add_line(pattern, &self.text);
            }
        }
        self.clear();
    }

    /// Searches the line as if it ended here, without an incomplete escape sequence.
    pub fn peek(&self, search: &LineSearch, matches: &mut Matches) {
        let len = self.text.len() - self.text.iter().rev().take_while(|byte| **byte == b'\r').count();
        let text = self.text.get(..len).unwrap_or_default();
        if self.part != LinePart::Matched
            && let Some(pattern) = search.patterns.first(text, self.search_start().min(len)..len, search.meter)
        {
            matches.add_line(pattern, text);
        }
    }

    /// Drops the line.
    pub fn clear(&mut self) {
        self.clear_window();
        self.start = None;
        self.part = LinePart::Whole;
    }

    fn clear_window(&mut self) {
        self.text.clear();
        self.held.clear();
        self.held_at.clear();
        self.raw = 0;
    }

    /// Takes the escape sequence at the start of `bytes`, or holds it if it is incomplete. Returns the number of bytes taken.
    fn escape(&mut self, search: &LineSearch, at: u64, bytes: &[u8], matches: &mut Matches) -> usize {
        if starts_escape(bytes) {
            self.limit_window(search, at, matches);
        }
        if let Some(len) = escape_len(bytes) {
            self.raw += len as u64;
            return len;
        }
        self.hold(at, bytes);
        bytes.len()
    }

    /// Continues a held sequence. Returns the number of bytes taken.
    fn continue_held(&mut self, search: &LineSearch, at: u64, bytes: &[u8], matches: &mut Matches) -> usize {
        // One byte more than the maximum length always decides.
        let more = bytes.get(..MAX_ESCAPE_LEN + 1 - self.held.len().min(MAX_ESCAPE_LEN)).unwrap_or(bytes);
        let was_unclear = !starts_escape(&self.held);
        self.hold(at, more);
        if let Some(at) = self.held_at.first().filter(|_| was_unclear && starts_escape(&self.held)) {
            self.limit_window(search, *at, matches);
        }
        while let Some(len) = escape_len(&self.held).filter(|_| !self.held.is_empty()) {
            self.release_escape(search, len, next_escape_start, matches);
        }
        more.len()
    }

    fn hold(&mut self, at: u64, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.held_at.extend((at..).take(bytes.len()));
    }

    /// Drops the first `len` held bytes, and adds the text up to the next escape sequence.
    fn release_escape(
        &mut self,
        search: &LineSearch,
        len: usize,
        next: fn(&[u8]) -> Option<usize>,
        matches: &mut Matches,
    ) {
        self.raw += len as u64;
        let after = self.held.get(len..).unwrap_or_default();
        let end = len + next(after).unwrap_or(after.len());
        let text: Vec<u8> = self.held.drain(..end).skip(len).collect();
        let places: Vec<u64> = self.held_at.drain(..end).skip(len).collect();
        for (byte, at) in text.iter().zip(places) {
            self.push_text(search, at, &[*byte], matches);
        }
        if let Some(at) = self.held_at.first().filter(|_| starts_escape(&self.held)) {
            self.limit_window(search, *at, matches);
        }
    }

    /// Adds text that is adjacent in the log.
    fn push_text(&mut self, search: &LineSearch, mut at: u64, mut bytes: &[u8], matches: &mut Matches) {
        let next = search.window - search.window / 2;
        while !bytes.is_empty() && self.part != LinePart::Matched {
            if self.text.len() == search.window && !self.search_window(search, matches) {
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

    /// Starts a new window at an escape sequence if the current one has too many.
    fn limit_window(&mut self, search: &LineSearch, at: u64, matches: &mut Matches) {
        if self.part == LinePart::Matched || self.raw < MAX_ESCAPE_RATIO * search.window as u64 {
            return;
        }
        if !self.search_window(search, matches) {
            self.text.clear();
            self.start = Some(at);
            self.raw = 0;
        }
    }

    /// Searches the window of a line that continues. If it matches, counts the line and skips its rest.
    fn search_window(&mut self, search: &LineSearch, matches: &mut Matches) -> bool {
        let (from, to) = (self.search_start(), self.text.len().saturating_sub(CONTEXT_LEN));
        let pattern = search.patterns.first(&self.text, from.min(to)..to, search.meter);
        self.part = LinePart::Rest;
        if let Some(pattern) = pattern {
            matches.add_line(pattern, &self.text);
            self.clear_window();
            self.start = None;
            self.part = LinePart::Matched;
        }
        pattern.is_some()
    }

    /// Returns the position in the window at which the search starts.
    fn search_start(&self) -> usize {
        if self.part == LinePart::Rest { CONTEXT_LEN.min(self.text.len()) } else { 0 }
    }
}
