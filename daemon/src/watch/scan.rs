//! Scans a program's output for patterns, line by line on each of its streams.
//!
//! The text of a line is the same that `log` with `grep` and `wait` match. A line counts once, for the first pattern of the
//! list that it contains, when its newline arrives. A line longer than a window is searched in windows that overlap by half,
//! as they arrive: the first window with a match decides. A plain text is never lost between windows, since it is shorter
//! than half of one; a longer match of a regular expression may be.

use super::line_buffer::{LineBuffer, LineSearch};
use super::matches::Matches;
use super::patterns::{PatternKind, Patterns};
use super::scan_position::ScanPosition;
use crate::matcher::Meter;
use crate::text::{PageEnd, line_text};
use memchr::{memchr, memrchr};
use std::ops::Range;
use std::sync::Arc;
use toold_ansi::next_escape;
use toold_format::Stream;
use toold_proto::params::Ansi;

/// The length of text that is searched at once.
const WINDOW_LEN: usize = 64 * 1024;

/// A scan of a growing log.
#[derive(Debug)]
pub struct Scanner {
    patterns: Arc<Patterns>,
    /// Unlimited unless the owner replaces it. After it has ended the search, matches and position are meaningless.
    pub meter: Meter,
    window: usize,
    scanned_to: u64,
    out: StreamScan,
    err: StreamScan,
}

/// The scan of one stream.
#[derive(Debug)]
struct StreamScan {
    line: LineBuffer,
    /// Bytes before this offset in the log were taken, or are not needed.
    from: u64,
}

impl Scanner {
    /// Creates a scan that continues at a position; the default position is the start of the log.
    pub fn new(patterns: Arc<Patterns>, position: ScanPosition) -> Scanner {
        Scanner::with_window(patterns, position, WINDOW_LEN)
    }

    pub(super) fn with_window(patterns: Arc<Patterns>, position: ScanPosition, window: usize) -> Scanner {
        let feed = |stream| StreamScan {
            line: LineBuffer::resumed(position.of(stream), position.scanned_to),
            from: position.from_of(stream),
        };
        let (out, err) = (feed(Stream::Stdout), feed(Stream::Stderr));
        Scanner { patterns, meter: Meter::unlimited(), window, scanned_to: position.scanned_to, out, err }
    }

    /// Takes adjacent bytes of one stream, from offset `at` on. The bytes of a stream arrive in order; bytes that were fed
    /// before, or that a resumed scan does not need, are skipped.
    pub fn feed(&mut self, stream: Stream, at: u64, bytes: &[u8], matches: &mut Matches) {
        let end = at + bytes.len() as u64;
        let search = LineSearch { patterns: &self.patterns, meter: &self.meter, window: self.window };
        let feed = match stream {
            Stream::Stdout => &mut self.out,
            Stream::Stderr => &mut self.err,
        };
        let known = feed.from.saturating_sub(at).min(bytes.len() as u64);
        feed.from = feed.from.max(end);
        self.scanned_to = self.scanned_to.max(end);
        take(&search, &mut feed.line, at + known, bytes.get(known as usize..).unwrap_or_default(), matches);
    }

    /// Skips a gap up to this offset: drops open lines, and starts a new line on both streams. A stream that needs no bytes
    /// before the offset is unchanged, so the same gap may be passed again.
    pub fn gap(&mut self, to: u64) {
        self.scanned_to = self.scanned_to.max(to);
        for feed in [&mut self.out, &mut self.err] {
            if feed.from < to {
                feed.from = to;
                feed.line.clear();
            }
        }
    }

    /// Ends the last line of each stream: the program has ended. A resumed scan has to be fed first.
    pub fn end(&mut self, matches: &mut Matches) {
        let search = LineSearch { patterns: &self.patterns, meter: &self.meter, window: self.window };
        for feed in [&mut self.out, &mut self.err] {
            if feed.line.is_open() {
                feed.line.end(&search, matches);
            }
        }
    }

    /// Searches the open line of each stream and changes nothing, to detect a prompt.
    pub fn peek(&self, matches: &mut Matches) {
        let search = LineSearch { patterns: &self.patterns, meter: &self.meter, window: self.window };
        for feed in [&self.out, &self.err] {
            if feed.line.is_open() {
                feed.line.peek(&search, matches);
            }
        }
    }

    /// Returns the length of the open lines that `peek` searches.
    pub fn open_len(&self) -> usize {
        self.out.line.text_len() + self.err.line.text_len()
    }

    /// Returns the position, from which another scan can continue. It is valid at every moment, also while bytes are fed again.
    pub fn position(&self) -> ScanPosition {
        let scanned_to = self.scanned_to;
        ScanPosition { scanned_to, out: self.out.line.open_line(scanned_to), err: self.err.line.open_line(scanned_to) }
    }
}

fn take(search: &LineSearch, line: &mut LineBuffer, at: u64, bytes: &[u8], matches: &mut Matches) {
    let mut done = 0;
    if line.is_open() {
        let newline = memchr(b'\n', bytes);
        line.push(search, at, bytes.get(..newline.unwrap_or(bytes.len())).unwrap_or_default(), matches);
        let Some(newline) = newline else { return };
        line.end(search, matches);
        done = newline + 1;
    }
    let rest = bytes.get(done..).unwrap_or_default();
    let (lines, open) = rest.split_at(memrchr(b'\n', rest).map_or(0, |newline| newline + 1));
    let at = at + done as u64;
    search_lines(search, line, at, lines, matches);
    line.push(search, at + lines.len() as u64, open, matches);
}

/// Searches complete lines: those with escape sequences one by one, and those between them at once.
fn search_lines(search: &LineSearch, line: &mut LineBuffer, at: u64, lines: &[u8], matches: &mut Matches) {
    let mut from = 0;
    while let Some(escape) = next_escape(lines.get(from..).unwrap_or_default()) {
        let this = line_around(lines, from + escape);
        search_plain_lines(search, line, at, lines, from..this.start, matches);
        search_line(search, line, at, lines, this.clone(), matches);
        from = this.end;
    }
    search_plain_lines(search, line, at, lines, from..lines.len(), matches);
}

/// Searches complete lines without escape sequences at once, then only the candidates.
fn search_plain_lines(
    search: &LineSearch,
    line: &mut LineBuffer,
    at: u64,
    lines: &[u8],
    range: Range<usize>,
    matches: &mut Matches,
) {
    let some = lines.get(..range.end).unwrap_or_default();
    let mut from = range.start;
    let candidate =
        |kind, from| search.patterns.candidate(kind, some, from, search.meter).filter(|at| *at < some.len());
    let (mut text, mut regex) = (candidate(PatternKind::Text, from), candidate(PatternKind::Regex, from));
    while let Some(next) = [text, regex].into_iter().flatten().min() {
        let this = line_around(some, next);
        search_line(search, line, at, some, this.clone(), matches);
        from = this.end;
        text = text.filter(|at| *at >= from).or_else(|| text.and_then(|_| candidate(PatternKind::Text, from)));
        regex = regex.filter(|at| *at >= from).or_else(|| regex.and_then(|_| candidate(PatternKind::Regex, from)));
    }
}

/// Searches one complete line.
fn search_line(
    search: &LineSearch,
    line: &mut LineBuffer,
    at: u64,
    lines: &[u8],
    this: Range<usize>,
    matches: &mut Matches,
) {
    let bytes = lines.get(this.start..this.end - 1).unwrap_or_default();
    if bytes.len() > search.window {
        line.push(search, at + this.start as u64, bytes, matches);
        return line.end(search, matches);
    }
    let text = line_text(bytes, PageEnd::Last, Ansi::Strip);
    if let Some(pattern) = search.patterns.first(&text, 0..text.len(), search.meter) {
        matches.add_line(pattern, &text);
    }
}

/// Returns the line that contains the byte at `at`, with its newline.
fn line_around(lines: &[u8], at: usize) -> Range<usize> {
    let (before, after) = lines.split_at(at);
    let start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', after).map_or(lines.len(), |newline| at + newline + 1);
    start..end
}
