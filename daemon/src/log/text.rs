//! Reads a log as text: pages and the last characters, with cursors between characters.

use super::reader::{Log, Page};
use crate::text::{
    self, ByteRun, LOOKAHEAD_LEN, LineStart, OutputSource, PageEnd, PageStart, Tail, TailBound, TextForm,
    collapse_page, decode_page, incomplete_len, last_chars,
};
use std::io;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::params::Ansi;
use toold_proto::process::Gap;

/// The maximum read to find the last characters in output that is mostly escape sequences.
const MAX_TAIL_BYTES: usize = 1024 * 1024;

/// The maximum read for a page with redrawn lines, of which little is shown.
const MAX_COLLAPSED_BYTES: usize = 1024 * 1024;
/// The length of most lines, for a first guess at where the last ones begin.
const USUAL_LINE_LEN: usize = 256;

/// A page of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPage {
    pub text: String,
    /// The start of the page.
    pub from: u64,
    /// The cursor for the next page. In an empty page it may be before the log's end: an incomplete character or escape
    /// sequence follows.
    pub next: u64,
    /// The dropped range before the page.
    pub gap: Option<Gap>,
}

impl Log {
    /// Reads the text of about `max` bytes from the cursor on. `end` is `More` while the program may write.
    pub fn read_text(
        &self,
        from: u64,
        max: usize,
        stream: Option<Stream>,
        form: TextForm,
        end: PageEnd,
    ) -> io::Result<TextPage> {
        let mut window = max.saturating_add(LOOKAHEAD_LEN);
        loop {
            let page = self.read(from, window, stream)?;
            let page_end = self.page_end(&page, end);
            let is_redrawn = form.redraws(&page.bytes);
            let (text, taken) = if is_redrawn {
                collapse_page(&page.bytes, max, self.line_start_at(&page)?, page_end)
            } else {
                decode_page(&page.bytes, max, page_end, form.ansi)
            };
            // The bound counts what is shown, and most of a redrawn line is not.
            let is_enough = page.bytes.len() < window || text.len() >= max / 2 || window >= MAX_COLLAPSED_BYTES;
            if is_enough || !is_redrawn {
                return Ok(TextPage { text, from: page.from, next: page.cursor(taken), gap: page.gap });
            }
            window = window.saturating_mul(8).min(MAX_COLLAPSED_BYTES);
        }
    }

    /// Reports whether the page begins with a line.
    fn line_start_at(&self, page: &Page) -> io::Result<LineStart> {
        Ok(match page.from.checked_sub(1) {
            None => LineStart::Here,
            Some(before) if page.gap.is_none() && self.read(before, 1, None)?.bytes == b"\n" => LineStart::Here,
            Some(_) => LineStart::Before,
        })
    }

    /// Reads the last `n` characters; `next` is the end. An incomplete last character is left out, and is returned later with
    /// `next`.
    pub fn last_chars(&self, n: usize, stream: Option<Stream>, ansi: Ansi, end: PageEnd) -> io::Result<TextPage> {
        let form = TextForm { ansi, collapse: false };
        self.read_tail(TailBound { chars: n, ..TailBound::NONE }, 0, stream, form, end)
    }

    /// Reads the end of the output within bounds, and nothing before `floor`. Looks at most at the last `MAX_TAIL_BYTES`.
    pub fn read_tail(
        &self,
        bound: TailBound,
        floor: u64,
        stream: Option<Stream>,
        form: TextForm,
        end: PageEnd,
    ) -> io::Result<TextPage> {
        let only_chars = floor == 0 && bound == (TailBound { chars: bound.chars, ..TailBound::NONE });
        let lines = bound.lines.saturating_mul(USUAL_LINE_LEN);
        let shown = bound.chars.saturating_mul(4).min(bound.bytes).min(lines);
        let mut window = shown.saturating_add(LOOKAHEAD_LEN).min(MAX_TAIL_BYTES);
        loop {
            let page = self.tail(window, stream)?;
            let start = if page.bytes.len() < window { PageStart::Whole } else { PageStart::Cut };
            let page_end = self.page_end(&page, end);
            let (text, range, is_complete) = if only_chars && !form.redraws(&page.bytes) {
                let (text, range) = last_chars(&page.bytes, bound.chars, start, page_end, form.ansi);
                let is_complete = start == PageStart::Whole || text.chars().count() >= bound.chars;
                (text, range, is_complete)
            } else {
                let first = first_from(&page, floor);
                // What is before the floor does not count.
                let start = if first > 0 { PageStart::Whole } else { start };
                let Tail { text, range, is_complete, .. } =
                    text::tail(&page.bytes[first..], bound, start, page_end, form);
                (text, first + range.start..first + range.end, is_complete)
            };
            if is_complete || window >= MAX_TAIL_BYTES {
                return Ok(TextPage {
                    text,
                    from: page.cursor(range.start),
                    next: page.cursor(range.end),
                    gap: page.gap,
                });
            }
            window = window.saturating_mul(8).min(MAX_TAIL_BYTES);
        }
    }

    /// Returns the end without an incomplete character, for a view of a program that still writes.
    pub fn char_boundary_end(&self) -> io::Result<u64> {
        let tail = self.tail(3, None)?;
        let incomplete = if tail.before_gap { 0 } else { incomplete_len(&tail.bytes) };
        Ok(self.end() - incomplete as u64)
    }

    /// Cuts this view at its last character boundary. Returns it with the counts there, as far as `lines` of `stream` needs
    /// them.
    pub fn until_char_boundary(self, stream: Option<Stream>, counts: &Counts) -> io::Result<(Log, Counts)> {
        let end = self.char_boundary_end()?;
        if end == self.end() {
            return Ok((self, *counts));
        }
        let log = self.until(end);
        // An incomplete character contains no newline, but it may have started a line. If the byte before is dropped, assume
        // that it continued a line.
        let before = log.tail(1, stream)?.bytes;
        let open = end > 0 && before != *b"\n" && (stream.is_none() || !before.is_empty());
        let mut counts = Counts { end, ..*counts };
        match stream {
            None => counts.last_open = open,
            Some(Stream::Stdout) => counts.out_open = open,
            Some(Stream::Stderr) => counts.err_open = open,
        }
        Ok((log, counts))
    }

    /// Returns what follows the bytes of a page.
    fn page_end(&self, page: &Page, end: PageEnd) -> PageEnd {
        if page.before_gap {
            PageEnd::Last
        } else if page.next < self.end() {
            PageEnd::More
        } else {
            end
        }
    }
}

/// Returns the position in the page of the first byte from this offset on.
fn first_from(page: &Page, offset: u64) -> usize {
    let (mut low, mut high) = (0, page.bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if page.cursor(middle) < offset { low = middle + 1 } else { high = middle }
    }
    low
}

impl OutputSource for Log {
    fn end(&self) -> u64 {
        self.end()
    }

    fn first(&self, from: u64, max: usize) -> io::Result<ByteRun> {
        let page = self.read(from, max, None)?;
        Ok(ByteRun { at: page.from, bytes: page.bytes })
    }

    fn last(&self, max: usize) -> io::Result<ByteRun> {
        let page = self.tail(max, None)?;
        Ok(ByteRun { at: page.from, bytes: page.bytes })
    }
}
