//! Output by cursor: where a time is in it, where a line begins, and the bytes between two cursors.

use super::super::poll::bytes;
use crate::cmd::Context;
use crate::error::CliError;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding};
use toold_proto::results::PollResult;

/// The time of a byte is known this well: it is that of the first one that came with it.
const GRAIN_MS: u64 = 100;
/// How far back the beginning of a line is looked for.
const LINE: u64 = 64 * 1024;
/// How much is asked for at once.
const PAGE: u64 = 1024 * 1024;

/// What is read, and how.
#[derive(Clone)]
pub struct Source {
    pub poll: params::PollParams,
}

impl Source {
    /// A page from a cursor.
    fn at(&self, cursor: u64, most: u64) -> params::PollParams {
        params::PollParams { cursor: Some(cursor), max_bytes: Some(most), ..self.poll.clone() }
    }

    /// The very bytes of both streams, which is where times are.
    fn merged(&self, cursor: u64, most: u64) -> params::PollParams {
        let poll =
            params::PollParams { stream: None, ansi: Ansi::Keep, encoding: Encoding::Base64, ..self.at(cursor, most) };
        params::PollParams { spans: true, wait_ms: 0, ..poll }
    }

    /// The end of what is there now.
    pub fn end(&self, cx: &mut Context<'_>) -> Result<u64, CliError> {
        Ok(cx.connection.call_with_retry::<api::Poll>(&self.poll)?.process.cursor)
    }

    /// Where what came at or after this time begins, and the line it is in. A little too early
    /// rather than too late.
    pub fn since(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let cursor = self.first_after(ms.saturating_sub(GRAIN_MS + 1), end, cx)?;
        match self.poll.stream {
            None => self.line_start(cursor, cx),
            // Its lines go on behind what the other stream wrote; where, only the daemon knows.
            Some(_) => Ok(cursor),
        }
    }

    /// Where what came after this time begins.
    pub fn until(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        self.first_after(ms, end, cx)
    }

    /// The first cursor whose byte came after this time, found by halving: some thirty looks at one
    /// byte each, however long the log is.
    fn first_after(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let page = cx.connection.call_with_retry::<api::Poll>(&self.merged(middle, 1))?;
            match page.spans.as_ref().and_then(|spans| spans.first()) {
                Some(span) if span.at_ms <= ms => low = span.to.max(middle + 1),
                // It came later, or nothing from here on is kept.
                Some(_) | None => high = middle,
            }
        }
        Ok(low.min(end))
    }

    /// Where the line begins that goes on at the cursor.
    fn line_start(&self, cursor: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let begin = cursor.saturating_sub(LINE);
        if begin == cursor {
            return Ok(cursor);
        }
        let page = cx.connection.call_with_retry::<api::Poll>(&self.merged(begin, cursor - begin))?;
        let before = bytes(&page.output)?;
        let newline = before.iter().rposition(|b| *b == b'\n').map(|at| page.from + at as u64 + 1);
        // A line without a beginning in sight begins here, unless all of the log is in sight.
        Ok(newline.unwrap_or(if page.from == 0 { 0 } else { cursor }))
    }

    /// The bytes from `begin` to `end`, or to what is the end when the first of them are read, page by page; and how far
    /// they really go: a character that is not whole yet stays for later.
    pub fn between(
        &self,
        begin: u64,
        mut end: Option<u64>,
        cx: &mut Context<'_>,
        mut each: impl FnMut(&[u8], &mut Context<'_>) -> Result<(), CliError>,
    ) -> Result<u64, CliError> {
        let mut cursor = begin;
        while end.is_none_or(|end| cursor < end) {
            let most = end.map_or(PAGE, |end| PAGE.min(end - cursor));
            let page = cx.connection.call_with_retry::<api::Poll>(&self.at(cursor, most))?;
            end = end.or(Some(page.process.cursor));
            say_gap(&page, cx);
            each(&self.decode(&page)?, cx)?;
            if page.next_cursor <= cursor {
                break;
            }
            cursor = page.next_cursor;
        }
        Ok(cursor)
    }

    pub fn decode(&self, page: &PollResult) -> Result<Vec<u8>, CliError> {
        match self.poll.encoding {
            Encoding::Text => Ok(page.output.clone().into_bytes()),
            Encoding::Base64 => bytes(&page.output),
        }
    }
}

/// Says what was not kept before a page.
pub fn say_gap(page: &PollResult, cx: &mut Context<'_>) {
    if let Some(gap) = page.gap {
        cx.console.message(&format!("{} bytes of output were not kept", gap.to.saturating_sub(gap.from)));
    }
}
