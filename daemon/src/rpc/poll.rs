//! `poll`.

use super::context::Daemon;
use super::error::unreadable;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::log::{Log, from_wire};
use crate::proc::Proc;
use crate::proc::state::State;
use crate::text::{self, PageEnd};
use base64::Engine;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toold_proto::params::{self, Ansi, Encoding};
use toold_proto::process::{Gap, Span};
use toold_proto::{RpcError, results};

/// What `poll` shows without a cursor, in characters.
const TAIL_CHARS: usize = 1000;
const DEFAULT_PAGE_LEN: u64 = 65_536;
/// The largest page. Base64 and escapes make it about three times as long on the wire at worst.
const MAX_PAGE_LEN: u64 = 4 << 20;
/// So much more than it shows a program on a terminal may write: colours, and where it draws.
const PTY_OVERHEAD: usize = 10;

pub async fn poll(call: params::Poll, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<results::Poll, RpcError> {
    let proc = daemon.find(&call.id)?;
    if call.max_bytes == Some(0) {
        return Err(RpcError::param("max_bytes", "must be at least 1"));
    }
    let mut updates = proc.subscribe();
    let before = proc.published_state();
    let deadline = Instant::now() + Duration::from_millis(call.wait_ms.min(daemon.registry.config.max_wait_ms));
    // An exit that this client has not been told of is updates, however old it is.
    let old = before.has_ended() && peer.seen_exits.contains(proc.spec.id.bits());
    let mut cursor = call.cursor;
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        let page = Page::read(&proc, &state, cursor, &call).map_err(|e| unreadable(&proc, e))?;
        let silent = cursor.is_some() && page.output.is_empty();
        let told = (state.has_ended() && !old) || state.closed != before.closed || (state.has_ended() && state.closed);
        let far = page.next >= state.progress.counts.end;
        if !silent || (told && far) || call.wait_ms == 0 || Instant::now() >= deadline {
            remember_exit(&peer, &proc, &state);
            return Ok(page.result(&proc, &state));
        }
        if cursor.is_some_and(|cursor| page.next > cursor) {
            // Nothing of this stream so far: on to the next page.
            cursor = Some(page.next);
            continue;
        }
        // Nothing, or part of a character whose rest has yet to come.
        proc.notify_past(state.progress.counts.end);
        let _ = timeout_at(deadline, updates.changed()).await;
    }
}

/// Remembers that a client was told of an exit after which output may still come.
pub fn remember_exit(peer: &Peer, proc: &Proc, state: &State) {
    if state.has_ended() && !state.closed {
        peer.seen_exits.insert(proc.spec.id.bits());
    }
}

/// A page of output, ready to be sent.
struct Page {
    output: String,
    from: u64,
    next: u64,
    gap: Option<Gap>,
    spans: Option<Vec<Span>>,
}

impl Page {
    fn read(proc: &Proc, state: &State, cursor: Option<u64>, call: &params::Poll) -> io::Result<Page> {
        let end = state.progress.counts.end;
        let log = Log::open(&proc.dir, end)?;
        let mut page = match (cursor, call.encoding) {
            (None, Encoding::Text) => {
                // A gap before the last characters is no updates to who asked for the last characters only.
                let last = log.last_chars(TAIL_CHARS, call.stream.map(from_wire), call.ansi, page_end(state))?;
                Page { output: last.text, from: last.from, next: last.next, gap: None, spans: None }
            }
            (None, Encoding::Base64) => {
                let last = log.tail(TAIL_CHARS, call.stream.map(from_wire))?;
                Page { output: encode(&last.bytes), from: last.from, next: last.next, gap: None, spans: None }
            }
            (Some(cursor), encoding) => Page::from(&log, cursor.min(end), state, encoding, call)?,
        };
        if call.spans {
            page.spans = Some(log.spans(page.from, page.next)?);
        }
        Ok(page)
    }

    fn from(log: &Log, cursor: u64, state: &State, encoding: Encoding, call: &params::Poll) -> io::Result<Page> {
        let max = call.max_bytes.unwrap_or(DEFAULT_PAGE_LEN).clamp(1, MAX_PAGE_LEN) as usize;
        match encoding {
            Encoding::Base64 => {
                let page = log.read(cursor, max, call.stream.map(from_wire))?;
                Ok(Page { output: encode(&page.bytes), from: page.from, next: page.next, gap: page.gap, spans: None })
            }
            Encoding::Text => {
                let page = log.read_text(cursor, max, call.stream.map(from_wire), call.ansi, page_end(state))?;
                Ok(Page { output: page.text, from: page.from, next: page.next, gap: page.gap, spans: None })
            }
        }
    }

    fn result(self, proc: &Proc, state: &State) -> results::Poll {
        let Page { output, from, next, gap, spans } = self;
        results::Poll { process: proc.view_of(state, wall_ms()), output, from, next_cursor: next, gap, spans }
    }
}

fn encode(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Whether what is incomplete at the end of the log may still be completed.
pub fn page_end(state: &State) -> PageEnd {
    if state.closed { PageEnd::Last } else { PageEnd::More }
}

/// The last `n` characters of a process's output, for people, and the cursor after them.
pub fn tail(proc: &Proc, state: &State, n: usize) -> io::Result<(String, u64)> {
    let log = Log::open(&proc.dir, state.progress.counts.end)?;
    let last = log.last_chars(n, None, Ansi::Strip, page_end(state))?;
    Ok((last.text, last.next))
}

/// The same for a list: of a program on a terminal, which draws where it likes, the rows that it drew last.
pub fn preview(proc: &Proc, state: &State, n: usize) -> io::Result<String> {
    if proc.spec.pty.is_none() {
        return Ok(tail(proc, state, n)?.0);
    }
    let log = Log::open(&proc.dir, state.progress.counts.end)?;
    let drawn = text::strip_to_rows(&log.last_chars(n * PTY_OVERHEAD, None, Ansi::Keep, page_end(state))?.text);
    let skipped = drawn.chars().count().saturating_sub(n);
    Ok(drawn.chars().skip(skipped).collect())
}
