//! `log` without `id`: the lines of several logs that match a regular expression.

use super::context::Daemon;
use super::text_form::text_form;
use crate::log::{LineQuery, from_wire};
use crate::matcher::BoundedRegex;
use crate::proc::Proc;
use crate::proc::output::{OutputError, search_lines};
use crate::text::{PageEnd, TextForm, show_text};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toold_proto::RpcError;
use toold_proto::log::{LogMatch, LogParams, LogResult};
use toold_proto::params::Encoding;
use toold_redact::Open;

/// The most processes that a call may name.
const MAX_IDS: usize = 4096;
/// The time for one search. Logs that were not searched by then are counted.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The most bytes of lines in one answer.
const MAX_TEXT_LEN: usize = 1 << 20;

/// Searches the logs of the named processes, or of all, newest first.
pub async fn search(call: LogParams, limit: u64, daemon: &Daemon) -> Result<LogResult, RpcError> {
    for (param, is_given) in [("offset", call.offset.is_some()), ("tail_lines", call.tail_lines.is_some())] {
        if is_given {
            return Err(RpcError::param(param, "needs `id`: it selects lines of one log"));
        }
    }
    let Some(pattern) = &call.grep else {
        return Err(RpcError::param("grep", "give `id` for the log of one process, or `grep` to search several"));
    };
    let regex = Arc::new(BoundedRegex::one(pattern).map_err(|why| RpcError::param("grep", why))?);
    let form = text_form(call.ansi, Encoding::Text, call.collapse)?;
    let query = LineQuery { offset: None, limit, stream: call.stream.map(from_wire), grep: None, ansi: call.ansi };
    let mut found = Found {
        matches: Vec::new(),
        text_len: 0,
        total_lines: 0,
        matched: 0,
        searched: 0,
        unsearched: 0,
        is_cut: false,
    };
    let deadline = Instant::now() + MAX_TIME;
    for proc in selected(&call, daemon)? {
        let left = limit.saturating_sub(found.matches.len() as u64);
        if left == 0 || found.text_len >= MAX_TEXT_LEN || Instant::now() >= deadline {
            found.unsearched += 1;
            continue;
        }
        let query = LineQuery { limit: left, ..query };
        match timeout_at(deadline, search_lines(&proc, &regex, &query, TextForm::PLAIN)).await {
            Ok(Ok((page, _))) => {
                found.searched += 1;
                found.total_lines += page.total_lines;
                found.matched += page.matched.unwrap_or(0);
                found.is_cut |= page.truncated;
                let lines = page.bytes.split(|byte| *byte == b'\n').zip(&page.hit_lines);
                let lines = lines.map(|(bytes, line)| (*line, show_text(bytes, PageEnd::Last, form))).collect();
                found.add(&proc, lines, call.redact).await;
            }
            Ok(Err(error @ OutputError::TooSlow(_))) => return Err(error.into()),
            // A log that cannot be read, or the end of the time.
            Ok(Err(_)) | Err(_) => found.unsearched += 1,
        }
    }
    Ok(found.result())
}

/// Returns the named processes in the order of the call, or all, newest first.
fn selected(call: &LogParams, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    match &call.ids {
        None => Ok(daemon.registry.newest_first()),
        Some(ids) if ids.is_empty() => Err(RpcError::param("ids", "must not be empty; leave it out for all")),
        Some(ids) if ids.len() > MAX_IDS => {
            Err(RpcError::param("ids", format!("must be at most {MAX_IDS}, not {}", ids.len())))
        }
        Some(ids) => ids.iter().map(|id| daemon.find_by("ids", id)).collect(),
    }
}

/// The lines that were found so far.
struct Found {
    matches: Vec<LogMatch>,
    text_len: usize,
    total_lines: u64,
    matched: u64,
    searched: u64,
    unsearched: u64,
    /// A line was cut, or left out because the answer is full.
    is_cut: bool,
}

impl Found {
    async fn add(&mut self, proc: &Arc<Proc>, lines: Vec<(u64, String)>, redact: bool) {
        let known = if redact && !lines.is_empty() { Some(proc.secrets_for_reader().await) } else { None };
        for (line, text) in lines {
            let text = match &known {
                // Lines before and after it are not read: what may be the rest of a secret is hidden too.
                Some(known) => {
                    let open = Open { start: true, end: true };
                    proc.sink.redaction.redactor().redact_part(&text, 0..text.len(), open, known).text
                }
                None => text,
            };
            self.text_len += text.len();
            if self.text_len > MAX_TEXT_LEN && !self.matches.is_empty() {
                self.is_cut = true;
                return;
            }
            self.matches.push(LogMatch { id: proc.spec.id, name: proc.spec.name.clone(), line, text });
        }
    }

    fn result(self) -> LogResult {
        let shown = self.matches.len() as u64;
        LogResult {
            id: None,
            output: self.matches.iter().map(line_of).collect(),
            total_lines: self.total_lines,
            first_line: self.matches.first().map_or(0, |first| first.line),
            lines_shown: shown,
            matched_lines: Some(self.matched),
            next_offset: None,
            truncated: self.is_cut || self.unsearched > 0 || self.matched > shown,
            gap: None,
            matches: Some(self.matches),
            searched: Some(self.searched),
            unsearched: Some(self.unsearched),
        }
    }
}

/// Returns a match as `name:line:text`.
fn line_of(found: &LogMatch) -> String {
    let LogMatch { id, name, line, text } = found;
    match name {
        Some(name) => format!("{name}:{line}:{text}\n"),
        None => format!("{id}:{line}:{text}\n"),
    }
}
