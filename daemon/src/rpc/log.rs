//! `log`.

use super::context::Daemon;
use super::log_search;
use super::text_form::{tail_lines, text_form};
use super::wire::Peer;
use crate::log::{LineQuery, from_wire};
use crate::matcher::BoundedRegex;
use crate::proc::output::{read_lines, search_lines};
use std::sync::Arc;
use toold_proto::params::Encoding;
use toold_proto::{RpcError, params, results};
use toold_redact::Open;

const DEFAULT_LINES: u64 = 200;
const MAX_LINES: u64 = 100_000;

pub async fn log(call: params::LogParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::LogResult, RpcError> {
    let form = text_form(call.ansi, Encoding::Text, call.collapse)?;
    let last = tail_lines(call.tail_lines)?;
    if last.is_some() && (call.offset.is_some() || call.limit.is_some()) {
        return Err(RpcError::param("tail_lines", "cannot be given together with offset or limit"));
    }
    let limit = last.map(|lines| lines as u64).or(call.limit).unwrap_or(DEFAULT_LINES);
    if limit == 0 || limit > MAX_LINES {
        return Err(RpcError::param("limit", format!("must be 1 to {MAX_LINES}, not {limit}")));
    }
    let Some(id) = &call.id else { return log_search::search(call, limit, &daemon).await };
    if call.ids.is_some() {
        return Err(RpcError::param("id", "give either id or ids, not both"));
    }
    let proc = daemon.find(id)?;
    let query =
        LineQuery { offset: call.offset, limit, stream: call.stream.map(from_wire), grep: None, ansi: call.ansi };
    let (page, output) = match &call.grep {
        Some(pattern) => {
            let regex = BoundedRegex::one(pattern).map_err(|why| RpcError::param("grep", why))?;
            search_lines(&proc, &Arc::new(regex), &query, form).await?
        }
        None => read_lines(&proc, &query, form)?,
    };
    let output = match call.redact {
        true => {
            let known = proc.secrets_for_reader().await;
            // Lines before and after these are not read: what may be the rest of a secret is hidden too.
            let open = Open { start: page.first_line > 0, end: page.next.is_some() };
            proc.sink.redaction.redactor().redact_part(&output, 0..output.len(), open, &known).text
        }
        false => output,
    };
    Ok(results::LogResult {
        id: Some(proc.spec.id),
        output,
        total_lines: page.total_lines,
        first_line: page.first_line,
        lines_shown: page.shown,
        matched_lines: page.matched,
        next_offset: page.next,
        truncated: page.truncated,
        gap: page.gap,
        matches: None,
        searched: None,
        unsearched: None,
    })
}
