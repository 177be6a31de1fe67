//! Pushes output to a subscription: a cursor for each process, moved as its log grows.

use super::subscribe::{Disconnected, Pushes};
use crate::log::Log;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::text::{PageEnd, decode_page};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;
use toold_proto::ProcId;
use toold_proto::event::{Lagged, LaggedOf, Output};
use toold_proto::params::{Ansi, Stream};
use toold_proto::process::Span;
use toold_proto::time::rfc3339;

/// The most bytes of output in one push.
const MAX_PUSH_LEN: u64 = 64 * 1024;

/// The processes whose output a subscription follows.
pub struct OutputPush {
    ansi: Ansi,
    lag_bytes: u64,
    /// The number of the subscriber's connection.
    connection: u64,
    /// Processes that started after this event are followed from their first byte.
    since: u64,
    procs: HashMap<ProcId, ProcCursor>,
    updates: FuturesUnordered<BoxFuture<'static, (ProcId, watch::Receiver<State>)>>,
}

struct ProcCursor {
    proc: Arc<Proc>,
    cursor: u64,
    /// An incomplete character or escape sequence, by stream, with its cursor.
    carry: [(u64, Vec<u8>); 2],
}

impl OutputPush {
    pub fn new(ansi: Ansi, lag_bytes: u64, connection: u64, since: u64) -> OutputPush {
        OutputPush { ansi, lag_bytes, connection, since, procs: HashMap::new(), updates: FuturesUnordered::new() }
    }

    pub fn is_new(&self, started: u64) -> bool {
        started > self.since
    }

    /// Starts to follow a process at this cursor.
    pub fn begin(&mut self, proc: Arc<Proc>, cursor: u64) {
        let id = proc.spec.id;
        if self.procs.contains_key(&id) {
            return;
        }
        let mut updates = proc.subscribe();
        updates.mark_changed();
        proc.notify_past(cursor);
        self.procs.insert(id, ProcCursor { proc, cursor, carry: Default::default() });
        self.updates.push(wait(id, updates));
    }

    /// Waits for the next process with a new state or new output. Cancel-safe.
    pub async fn changed(&mut self) -> ProcId {
        loop {
            let Some((id, updates)) = self.updates.next().await else { return std::future::pending().await };
            let Some(followed) = self.procs.get(&id) else { continue };
            if !followed.proc.published_state().is_final() {
                self.updates.push(wait(id, updates));
            }
            return id;
        }
    }

    /// Pushes the output of a process since the last push, page by page, in turn with the other subscriptions of the
    /// connection.
    pub async fn push_in_turns(&mut self, id: ProcId, pushes: &Pushes) -> Result<(), Disconnected> {
        loop {
            let _turn = pushes.turn().await?;
            if !self.push_page(id, pushes).await? {
                return Ok(());
            }
        }
    }

    /// Pushes the next page of the output of a process. Returns false if there is no more. A subscriber that reads too
    /// slowly gets `lagged` for the part that was left out; the log has it. Only for the subscription whose turn it is.
    pub async fn push_page(&mut self, id: ProcId, pushes: &Pushes) -> Result<bool, Disconnected> {
        let Some(followed) = self.procs.get_mut(&id) else { return Ok(false) };
        let state = followed.proc.state();
        let end = state.progress.counts.end;
        if followed.cursor >= end {
            if state.is_final() {
                self.procs.remove(&id);
            } else {
                followed.proc.notify_past(end);
            }
            return Ok(false);
        }
        let slow = pushes.is_full();
        pushes.room().await?;
        match followed.page(&state, self.ansi) {
            Ok((lagged, outputs)) => {
                if let Some(lagged) = lagged {
                    pushes.send(&lagged).await?;
                }
                for output in outputs {
                    pushes.send(&output).await?;
                }
            }
            Err(e) => {
                tracing::warn!(%id, %e, "read output for a subscriber");
                followed.cursor = end;
            }
        }
        followed.proc.note_read(self.connection, followed.cursor);
        // The queue was full. The output that came in the meantime may be too much to catch up with.
        let end = followed.proc.state().progress.counts.end;
        let is_behind = end.saturating_sub(followed.cursor) > self.lag_bytes;
        // A program that is held back for this subscriber waits for it.
        if slow && is_behind && !followed.proc.is_held_by(self.connection) {
            let lagged = Lagged { of: LaggedOf::Output, id: Some(id), from: followed.cursor, to: end };
            followed.cursor = end;
            followed.carry = Default::default();
            pushes.send(&lagged).await?;
        }
        Ok(true)
    }
}

/// Waits for a change and returns the receiver for the next wait.
fn wait(id: ProcId, mut updates: watch::Receiver<State>) -> BoxFuture<'static, (ProcId, watch::Receiver<State>)> {
    async move {
        let _ = updates.changed().await;
        (id, updates)
    }
    .boxed()
}

impl ProcCursor {
    /// Reads the next page and moves the cursor behind it. Returns the gap before the page, and the page as pushes of
    /// one stream each.
    fn page(&mut self, state: &State, ansi: Ansi) -> io::Result<(Option<Lagged>, Vec<Output>)> {
        let (id, end) = (self.proc.spec.id, state.progress.counts.end);
        let log = Log::open(&self.proc.dir, end)?;
        let page = log.read(self.cursor, MAX_PUSH_LEN as usize, None)?;
        let lagged = page.gap.map(|gap| Lagged { of: LaggedOf::Output, id: Some(id), from: gap.from, to: gap.to });
        if lagged.is_some() {
            self.carry = Default::default();
        }
        let mut outputs = Vec::new();
        let last = state.closed && page.next >= end;
        for Span { stream, from, to, at_ms } in joined(log.spans(page.from, page.next)?) {
            let bytes = page.bytes.get((from - page.from) as usize..(to - page.from) as usize).unwrap_or_default();
            let (start, carry) = &mut self.carry[usize::from(stream == Stream::Stderr)];
            if carry.is_empty() {
                *start = from;
            }
            carry.extend_from_slice(bytes);
            let more = if last || page.before_gap { PageEnd::Last } else { PageEnd::More };
            let (data, taken) = decode_page(carry, carry.len(), more, ansi);
            let cursor = *start;
            carry.drain(..taken);
            *start = to - carry.len() as u64;
            if !data.is_empty() {
                let (name, at) = (self.proc.spec.name.clone(), Some(rfc3339(at_ms)));
                outputs.push(Output { id, cursor, next_cursor: *start, stream, data, name, at });
            }
        }
        // A page that does not advance would be read for ever.
        self.cursor = if page.next > self.cursor { page.next } else { end };
        Ok((lagged, outputs))
    }
}

/// Joins adjacent spans of the same stream.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.stream == span.stream && last.to == span.from => last.to = span.to,
            Some(_) | None => joined.push(span),
        }
    }
    joined
}
