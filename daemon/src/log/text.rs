//! A log as text: pages and the last characters, with cursors that fall between characters.

use super::reader::{Log, Page};
use crate::text::{ByteRun, LOOKAHEAD_LEN, OutputSource, PageEnd, PageStart, decode_page, incomplete_len, last_chars};
use std::io;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::params::Ansi;
use toold_proto::process::Gap;

/// The most that is read to find the last characters in output that is nearly all escape sequences.
const MAX_TAIL_BYTES: usize = 1024 * 1024;

/// A page of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPage {
    pub text: String,
    /// Where the page begins.
    pub from: u64,
    /// The cursor for the next page. It may be before the log's end with no text in the page: then what is there is
    /// part of a character or an escape sequence, and the rest has yet to come.
    pub next: u64,
    /// What was not kept before the page.
    pub gap: Option<Gap>,
}

impl Log {
    /// The text of about `max` bytes from the cursor on. `end` says what follows this log's end: more, while the
    /// program may write.
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

    /// The last `n` characters; `next` is the end. What of the last character has yet to come is left out of the text
    /// and comes again with `next`.
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

    /// The end without a character whose rest has yet to come: what a view of a program that still writes may show.
    pub fn char_boundary_end(&self) -> io::Result<u64> {
        let tail = self.tail(3, None)?;
        let incomplete = if tail.before_gap { 0 } else { incomplete_len(&tail.bytes) };
        Ok(self.end() - incomplete as u64)
    }

    /// This view up to its whole end, and the counts there as far as `lines` of `stream` needs them.
    pub fn whole(self, stream: Option<Stream>, counts: &Counts) -> io::Result<(Log, Counts)> {
        let end = self.char_boundary_end()?;
        if end == self.end() {
            return Ok((self, *counts));
        }
        let log = self.until(end);
        // Part of a character has no newline, but it may have begun a line. Where the byte before is not kept, it is
        // taken to have gone on with one.
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

    /// What follows the bytes of a page.
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
