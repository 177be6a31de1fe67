//! Output by cursor: finds times and line starts, and reads the bytes between two cursors.

use super::super::poll::bytes;
use crate::cmd::Context;
use crate::error::CliError;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding};
use toold_proto::results::PollResult;

/// The precision of a byte's time: it is the time of the first byte that came with it.
const TIME_PRECISION_MS: u64 = 100;
/// The distance at which the start of a line is searched.
const MAX_LINE_SEARCH: u64 = 64 * 1024;
/// The size of one page.
const PAGE_LEN: u64 = 1024 * 1024;

/// The process to read, and how.
#[derive(Clone, Default)]
pub struct Source {
    pub poll: params::PollParams,
}

impl Source {
    /// Reads a page from a cursor.
    fn at(&self, cursor: u64, most: u64) -> params::PollParams {
        params::PollParams { cursor: Some(cursor), max_bytes: Some(most), ..self.poll.clone() }
    }

    /// Reads the exact bytes of both streams, which carry the times.
    fn merged(&self, cursor: u64, most: u64) -> params::PollParams {
        let poll =
            params::PollParams { stream: None, ansi: Ansi::Keep, encoding: Encoding::Base64, ..self.at(cursor, most) };
        params::PollParams { spans: true, wait_ms: 0, ..poll }
    }

    /// Returns the current end.
    pub fn end(&self, cx: &mut Context<'_>) -> Result<u64, CliError> {
        Ok(cx.connection.call_with_retry::<api::Poll>(&self.poll)?.process.cursor)
    }

    /// Returns where the output at or after this time begins, at the start of its line. Rather a little too early than too
    /// late.
    pub fn since(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let cursor = self.first_after(ms.saturating_sub(TIME_PRECISION_MS + 1), end, cx)?;
        match self.poll.stream {
            None => self.line_start(cursor, cx),
            // The lines of one stream continue behind what the other wrote; only the daemon knows where.
            Some(_) => Ok(cursor),
        }
    }

    /// Returns where the output after this time begins.
    pub fn until(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        self.first_after(ms, end, cx)
    }

    /// Returns the first cursor whose byte came after this time, by bisection: about thirty reads of one byte each, however
    /// long the log is.
    fn first_after(&self, ms: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let page = cx.connection.call_with_retry::<api::Poll>(&self.merged(middle, 1))?;
            match page.spans.as_ref().and_then(|spans| spans.first()) {
                Some(span) if span.at_ms <= ms => low = span.to.max(middle + 1),
                // It came later, or nothing from here on is stored.
                Some(_) | None => high = middle,
            }
        }
        Ok(low.min(end))
    }

    /// Returns the start of the line that contains the cursor.
    fn line_start(&self, cursor: u64, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let begin = cursor.saturating_sub(MAX_LINE_SEARCH);
        if begin == cursor {
            return Ok(cursor);
        }
        let page = cx.connection.call_with_retry::<api::Poll>(&self.merged(begin, cursor - begin))?;
        let before = bytes(&page.output)?;
        let newline = before.iter().rposition(|b| *b == b'\n').map(|at| page.from + at as u64 + 1);
        // A line whose start was not found begins here, unless the whole log was read.
        Ok(newline.unwrap_or(if page.from == 0 { 0 } else { cursor }))
    }

    /// Reads the bytes from `begin` to `end`, or to the end as of the first page, page by page. Returns how far they really
    /// go: an incomplete character stays for later.
    pub fn between(
        &self,
        begin: u64,
        mut end: Option<u64>,
        cx: &mut Context<'_>,
        mut each: impl FnMut(&[u8], &mut Context<'_>) -> Result<(), CliError>,
    ) -> Result<u64, CliError> {
        let mut cursor = begin;
        while end.is_none_or(|end| cursor < end) {
            let most = end.map_or(PAGE_LEN, |end| PAGE_LEN.min(end - cursor));
            let page = cx.connection.call_with_retry::<api::Poll>(&self.at(cursor, most))?;
            end = end.or(Some(page.process.cursor));
            report_gap(&page, cx);
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

/// Reports the bytes that were dropped before a page.
pub fn report_gap(page: &PollResult, cx: &mut Context<'_>) {
    if let Some(gap) = page.gap {
        cx.console.message(&format!("{} bytes of output were not kept", gap.to.saturating_sub(gap.from)));
    }
}
