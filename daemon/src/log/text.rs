//! Reads a log as text: pages and the last characters, with cursors between characters.

use super::reader::{Log, Page};
use crate::text::{ByteRun, LOOKAHEAD_LEN, OutputSource, PageEnd, PageStart, decode_page, incomplete_len, last_chars};
use std::io;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::params::Ansi;
use toold_proto::process::Gap;

/// The maximum read to find the last characters in output that is mostly escape sequences.
const MAX_TAIL_BYTES: usize = 1024 * 1024;

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
        ansi: Ansi,
        end: PageEnd,
    ) -> io::Result<TextPage> {
        let page = self.read(from, max.saturating_add(LOOKAHEAD_LEN), stream)?;
        let (text, taken) = decode_page(&page.bytes, max, self.page_end(&page, end), ansi);
        Ok(TextPage { text, from: page.from, next: page.cursor(taken), gap: page.gap })
    }

    /// Reads the last `n` characters; `next` is the end. An incomplete last character is left out, and is returned later with
    /// `next`.
    pub fn last_chars(&self, n: usize, stream: Option<Stream>, ansi: Ansi, end: PageEnd) -> io::Result<TextPage> {
        let mut window = n.saturating_mul(4).saturating_add(LOOKAHEAD_LEN).min(MAX_TAIL_BYTES);
        loop {
            let page = self.tail(window, stream)?;
            let start = if page.bytes.len() < window { PageStart::Whole } else { PageStart::Cut };
            let (text, range) = last_chars(&page.bytes, n, start, self.page_end(&page, end), ansi);
            let enough = start == PageStart::Whole || text.chars().count() >= n || window >= MAX_TAIL_BYTES;
            if enough {
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
