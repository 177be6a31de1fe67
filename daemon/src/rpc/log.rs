//! `log`.

use super::context::Daemon;
use super::error::unreadable;
use super::poll::page_end;
use super::wire::Peer;
use crate::log::{LineQuery, Log, from_wire};
use crate::text;
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError, params, results};

const DEFAULT_LINES: u64 = 200;
const MAX_LINES: u64 = 100_000;

pub async fn log(call: params::Log, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Log, RpcError> {
    let proc = daemon.find(&call.id)?;
    let limit = call.limit.unwrap_or(DEFAULT_LINES);
    if limit == 0 || limit > MAX_LINES {
        return Err(RpcError::param("limit", format!("must be 1 to {MAX_LINES}, not {limit}")));
    }
    let grep = match &call.grep {
        Some(pattern) => Some(build_regex(pattern).map_err(|why| RpcError::param("grep", why))?),
        None => None,
    };
    let read = move || {
        let state = proc.state();
        let mut counts = state.progress.counts;
        let query = LineQuery {
            offset: call.offset,
            limit,
            stream: call.stream.map(from_wire),
            grep: grep.as_ref(),
            ansi: call.ansi,
        };
        let mut log = Log::open(&proc.dir, counts.end).map_err(|e| unreadable(&proc, e))?;
        if !state.closed {
            // A character that has not all come is for a later call.
            (log, counts) = log.whole(call.stream.map(from_wire), &counts).map_err(|e| unreadable(&proc, e))?;
        }
        let page = log.lines(&query, &counts).map_err(|e| unreadable(&proc, e))?;
        // A log with a hole in it says so, wherever the page is.
        let gap = page.gap.map_or_else(|| log.first_gap(0), |gap| Ok(Some(gap))).map_err(|e| unreadable(&proc, e))?;
        let (output, _) = text::decode_page(&page.bytes, page.bytes.len(), page_end(&state), call.ansi);
        Ok(results::Log {
            id: proc.spec.id,
            output,
            total_lines: page.total_lines,
            first_line: page.first_line,
            lines_shown: page.shown,
            matched_lines: page.matched,
            next_offset: page.next,
            truncated: page.truncated,
            gap,
        })
    };
    if call.grep.is_none() {
        return read();
    }
    // All that is kept is searched: not on a thread that others wait for.
    let searched = tokio::task::spawn_blocking(read).await;
    searched.map_err(|e| RpcError::new(ErrorKind::Internal, format!("the search broke off: {e}")))?
}

/// A pattern that costs bounded memory, or why it is none.
pub fn build_regex(pattern: &str) -> Result<regex::bytes::Regex, String> {
    let built = regex::bytes::RegexBuilder::new(pattern).size_limit(2 << 20).dfa_size_limit(2 << 20).build();
    built.map_err(|e| e.to_string())
}
