//! `poll`.

use super::context::Daemon;
use super::process_response::ProcessResponse;
use super::text_form::{tail_lines, text_form};
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::log::from_wire;
use crate::proc::Proc;
use crate::proc::hold::Claim;
use crate::proc::output::{OutputError, PageQuery, wait_page};
use crate::proc::redacted;
use crate::proc::state::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use toold_proto::fields::FieldSet;
use toold_proto::params::Encoding;
use toold_proto::{RpcError, params, results};

const DEFAULT_PAGE_LEN: u64 = 65_536;
/// The largest page. Base64 and escapes make it at most about three times as long on the wire.
const MAX_PAGE_LEN: u64 = 4 << 20;

pub async fn poll(
    call: params::PollParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ProcessResponse<results::PollResult>, RpcError> {
    let fields = FieldSet::of::<results::PollResult>(&call)?;
    let proc = daemon.find(&call.id)?;
    if call.max_bytes == Some(0) {
        return Err(RpcError::param("max_bytes", "must be at least 1"));
    }
    let tail_lines = tail_lines(call.tail_lines)?;
    if tail_lines.is_some() && call.encoding != Encoding::Text {
        return Err(RpcError::param("tail_lines", "needs encoding \"text\""));
    }
    let query = PageQuery {
        cursor: call.cursor,
        max_len: call.max_bytes.unwrap_or(DEFAULT_PAGE_LEN).min(MAX_PAGE_LEN) as usize,
        stream: call.stream.map(from_wire),
        encoding: call.encoding,
        form: text_form(call.ansi, call.encoding, call.collapse)?,
        tail_lines,
        spans: call.spans,
    };
    if call.hold {
        peer.check_follows()?;
        if !proc.can_hold() {
            return Err(RpcError::param("hold", "the process was started without `hold`"));
        }
        peer.holds.take(peer.connection, &proc, call.cursor.unwrap_or(0), Claim::Own);
    }
    // What a client asks for comes after what it has read.
    if let Some(cursor) = call.cursor {
        proc.note_read(peer.connection, cursor);
    }
    let wait = Duration::from_millis(call.wait_ms.min(daemon.registry.config.max_wait_ms));
    let deadline = (call.wait_ms > 0).then(|| Instant::now() + wait);
    let exit_seen = || peer.seen_exits.contains(proc.spec.id.bits());
    let (state, page) = wait_page(&proc, query, deadline, exit_seen).await?;
    remember_exit(&peer, &proc, &state);
    let mut process = proc.view_of(&state, wall_ms());
    let output = match call.redact {
        true if call.encoding != Encoding::Text => {
            return Err(RpcError::param("redact", "needs encoding \"text\""));
        }
        true => {
            let known = proc.secrets_for_reader().await;
            proc.redact_prompt(&mut process, &known);
            let part = redacted::Part { from: page.from, to: page.next, stream: query.stream };
            redacted::redact(&proc, &state, &page.output, part, &known).map_err(OutputError::of(&proc))?
        }
        false => page.output,
    };
    let result = results::PollResult {
        process,
        output,
        from: page.from,
        next_cursor: page.next,
        gap: page.gap,
        spans: page.spans,
    };
    Ok(ProcessResponse { result, fields, receipt: None })
}

/// Remembers that a client was sent an exit while output may still follow.
pub fn remember_exit(peer: &Peer, proc: &Proc, state: &State) {
    if state.has_ended() && !state.closed {
        peer.seen_exits.insert(proc.spec.id.bits());
    }
}
