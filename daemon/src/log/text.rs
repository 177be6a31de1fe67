//! A log as text: pages and the last characters, with cursors that fall between characters.

use super::reader::{Log, Page};
use crate::text::{LOOKAHEAD, PageEnd, Run, Source, Start, decode_page, last_chars};
use std::io;
use toold_proto::params::{Ansi, Stream};
use toold_proto::process::Gap;

/// The most that is read to find the last characters in output that is nearly all escape sequences.
const LAST_CHARS_BYTES: usize = 1024 * 1024;

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
        let page = self.read(from, max.saturating_add(LOOKAHEAD), stream)?;
        let (text, taken) = decode_page(&page.bytes, max, self.page_end(&page, end), ansi);
        Ok(TextPage { text, from: page.from, next: page.cursor(taken), gap: page.gap })
    }

    /// The last `n` characters; `next` is the end. What of the last character has yet to come is left out of the text
    /// and comes again with `next`.
    pub fn last_chars(&self, n: usize, stream: Option<Stream>, ansi: Ansi, end: PageEnd) -> io::Result<TextPage> {
        let mut window = n.saturating_mul(4).saturating_add(LOOKAHEAD).min(LAST_CHARS_BYTES);
        loop {
            let page = self.tail(window, stream)?;
            let start = if page.bytes.len() < window { Start::Whole } else { Start::Cut };
            let (text, range) = last_chars(&page.bytes, n, start, self.page_end(&page, end), ansi);
            let enough = start == Start::Whole || text.chars().count() >= n || window >= LAST_CHARS_BYTES;
            if enough {
                return Ok(TextPage {
                    text,
                    from: page.cursor(range.start),
                    next: page.cursor(range.end),
                    gap: page.gap,
                });
            }
            window = window.saturating_mul(8).min(LAST_CHARS_BYTES);
        }
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

impl Source for Log {
    fn end(&self) -> u64 {
        self.end()
    }

    fn first(&self, from: u64, max: usize) -> io::Result<Run> {
        let page = self.read(from, max, None)?;
        Ok(Run { at: page.from, bytes: page.bytes })
    }

    fn last(&self, max: usize) -> io::Result<Run> {
        let page = self.tail(max, None)?;
        Ok(Run { at: page.from, bytes: page.bytes })
    }
}
