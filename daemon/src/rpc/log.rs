//! `log`.

use super::context::Daemon;
use super::wire::Peer;
use crate::log::{LineQuery, from_wire};
use crate::proc::output::read_lines;
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError, params, results};

const DEFAULT_LINES: u64 = 200;
const MAX_LINES: u64 = 100_000;

pub async fn log(call: params::LogParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::LogResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    let limit = call.limit.unwrap_or(DEFAULT_LINES);
    if limit == 0 || limit > MAX_LINES {
        return Err(RpcError::param("limit", format!("must be 1 to {MAX_LINES}, not {limit}")));
    }
    let grep = match &call.grep {
        Some(pattern) => Some(build_regex(pattern).map_err(|why| RpcError::param("grep", why))?),
        None => None,
    };
    let searches = grep.is_some();
    let read = move || {
        let stream = call.stream.map(from_wire);
        let query = LineQuery { offset: call.offset, limit, stream, grep: grep.as_ref(), ansi: call.ansi };
        let (page, output) = read_lines(&proc, &query)?;
        Ok(results::LogResult {
            id: proc.spec.id,
            output,
            total_lines: page.total_lines,
            first_line: page.first_line,
            lines_shown: page.shown,
            matched_lines: page.matched,
            next_offset: page.next,
            truncated: page.truncated,
            gap: page.gap,
        })
    };
    if !searches {
        return read();
    }
    // A search reads the whole log: not on a thread that other calls wait for.
    let searched = tokio::task::spawn_blocking(read).await;
    searched.map_err(|e| RpcError::new(ErrorKind::Internal, format!("internal error while searching the log: {e}")))?
}

/// Builds a regex with bounded memory.
fn build_regex(pattern: &str) -> Result<regex::bytes::Regex, String> {
    let built = regex::bytes::RegexBuilder::new(pattern).size_limit(2 << 20).dfa_size_limit(2 << 20).build();
    built.map_err(|e| e.to_string())
}
