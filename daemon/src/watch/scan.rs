//! The scan of a program's output for patterns, line by line on each of its streams.
//!
//! A line's text is what `log` with `grep` and `wait` look at. It counts once, for the first pattern of the list that is
//! in it, when its newline has come. Lines longer than a window are searched in windows that overlap by half, as they
//! come: the first window with a match decides. A plain text is never lost between windows, as it is shorter than half
//! of one; a match of a regular expression that is longer may be.

use super::line_buffer::{LineBuffer, LineSearch};
use super::matches::Matches;
use super::patterns::{PatternKind, Patterns};
use super::scan_position::ScanPosition;
use crate::text::{PageEnd, line_text};
use memchr::{memchr, memrchr};
use std::ops::Range;
use std::sync::Arc;
use toold_ansi::next_escape;
use toold_format::Stream;
use toold_proto::params::Ansi;

/// How much text of a line is searched as one.
const WINDOW_LEN: usize = 64 * 1024;

/// A scan along a growing log.
#[derive(Debug)]
pub struct Scanner {
    patterns: Arc<Patterns>,
    window: usize,
    scanned_to: u64,
    out: Feed,
    err: Feed,
}

/// One stream of it.
#[derive(Debug)]
struct Feed {
    line: LineBuffer,
    /// Bytes below this place in the log were taken, or are not needed.
    from: u64,
}

impl Scanner {
    /// A scan that goes on where another one was, or with the default from the log's beginning.
    pub fn new(patterns: Arc<Patterns>, resume: ScanPosition) -> Scanner {
        Scanner::with_window(patterns, resume, WINDOW_LEN)
    }

    pub(super) fn with_window(patterns: Arc<Patterns>, resume: ScanPosition, window: usize) -> Scanner {
        let feed = |stream| Feed {
            line: LineBuffer::resumed(resume.of(stream), resume.scanned_to),
            from: resume.from_of(stream),
        };
        let (out, err) = (feed(Stream::Stdout), feed(Stream::Stderr));
        Scanner { patterns, window, scanned_to: resume.scanned_to, out, err }
    }

    /// Takes bytes of one stream that lie together in the log from `at` on. A stream's bytes come in order; those that
    /// were fed before, or that a resumed scan does not need, are left out.
    pub fn feed(&mut self, stream: Stream, at: u64, bytes: &[u8], found: &mut Matches) {
        let end = at + bytes.len() as u64;
        let search = LineSearch { patterns: &self.patterns, window: self.window };
        let feed = match stream {
            Stream::Stdout => &mut self.out,
            Stream::Stderr => &mut self.err,
        };
        let known = feed.from.saturating_sub(at).min(bytes.len() as u64);
        feed.from = feed.from.max(end);
        self.scanned_to = self.scanned_to.max(end);
        take(&search, &mut feed.line, at + known, bytes.get(known as usize..).unwrap_or_default(), found);
    }

    /// Bytes up to this place in the log were not kept: open lines are forgotten, and what follows begins a line on both
    /// streams. A stream that needs nothing from before it is not touched, so a gap may be told again.
    pub fn gap(&mut self, to: u64) {
        self.scanned_to = self.scanned_to.max(to);
        for feed in [&mut self.out, &mut self.err] {
            if feed.from < to {
                feed.from = to;
                feed.line.forget();
            }
        }
    }

    /// The program has ended: what each stream's last line has is all of it. A resumed scan has to be fed first.
    pub fn end(&mut self, found: &mut Matches) {
        let search = LineSearch { patterns: &self.patterns, window: self.window };
        for feed in [&mut self.out, &mut self.err] {
            if feed.line.is_open() {
                feed.line.end(&search, found);
            }
        }
    }

    /// Looks at what has come of each stream's open line, and changes nothing: for who waits for a prompt.
    pub fn peek(&self, found: &mut Matches) {
        let search = LineSearch { patterns: &self.patterns, window: self.window };
        for feed in [&self.out, &self.err] {
            if feed.line.is_open() {
                feed.line.peek(&search, found);
            }
        }
    }

    /// Where it stands, for another one to go on. It holds at every moment, also while bytes are fed again.
    pub fn resume(&self) -> ScanPosition {
        let scanned_to = self.scanned_to;
        ScanPosition { scanned_to, out: self.out.line.resume(scanned_to), err: self.err.line.resume(scanned_to) }
    }
}

fn take(search: &LineSearch, line: &mut LineBuffer, at: u64, bytes: &[u8], found: &mut Matches) {
    let mut done = 0;
    if line.is_open() {
        let newline = memchr(b'\n', bytes);
        line.push(search, at, bytes.get(..newline.unwrap_or(bytes.len())).unwrap_or_default(), found);
        let Some(newline) = newline else { return };
        line.end(search, found);
        done = newline + 1;
    }
    let rest = bytes.get(done..).unwrap_or_default();
    let (lines, open) = rest.split_at(memrchr(b'\n', rest).map_or(0, |newline| newline + 1));
    let at = at + done as u64;
    whole(search, line, at, lines, found);
    line.push(search, at + lines.len() as u64, open, found);
}

/// Searches whole lines. Those with escape sequences are taken one by one, and those between them at once.
fn whole(search: &LineSearch, line: &mut LineBuffer, at: u64, lines: &[u8], found: &mut Matches) {
    let mut from = 0;
    while let Some(escape) = next_escape(lines.get(from..).unwrap_or_default()) {
        let this = around(lines, from + escape);
        plain(search, line, at, lines, from..this.start, found);
        one(search, line, at, lines, this.clone(), found);
        from = this.end;
    }
    plain(search, line, at, lines, from..lines.len(), found);
}

/// Searches whole lines without escape sequences at once, and looks only at those where something was found.
fn plain(search: &LineSearch, line: &mut LineBuffer, at: u64, lines: &[u8], range: Range<usize>, found: &mut Matches) {
    let some = lines.get(..range.end).unwrap_or_default();
    let mut from = range.start;
    let candidate = |kind, from| search.patterns.candidate(kind, some, from).filter(|at| *at < some.len());
    let (mut text, mut regex) = (candidate(PatternKind::Text, from), candidate(PatternKind::Regex, from));
    while let Some(next) = [text, regex].into_iter().flatten().min() {
        let this = around(some, next);
        one(search, line, at, some, this.clone(), found);
        from = this.end;
        text = text.filter(|at| *at >= from).or_else(|| text.and_then(|_| candidate(PatternKind::Text, from)));
        regex = regex.filter(|at| *at >= from).or_else(|| regex.and_then(|_| candidate(PatternKind::Regex, from)));
    }
}

/// Searches one whole line.
fn one(search: &LineSearch, line: &mut LineBuffer, at: u64, lines: &[u8], this: Range<usize>, found: &mut Matches) {
    let bytes = lines.get(this.start..this.end - 1).unwrap_or_default();
    if bytes.len() > search.window {
        line.push(search, at + this.start as u64, bytes, found);
        return line.end(search, found);
    }
    let text = line_text(bytes, PageEnd::Last, Ansi::Strip);
    if let Some(pattern) = search.patterns.first(&text, 0..text.len()) {
        found.line(pattern, &text);
    }
}

/// The line with the byte at `place`, with its newline.
fn around(lines: &[u8], place: usize) -> Range<usize> {
    let (before, after) = lines.split_at(place);
    let start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', after).map_or(lines.len(), |newline| place + newline + 1);
    start..end
}
