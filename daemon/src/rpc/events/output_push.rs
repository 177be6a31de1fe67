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
use std::ops::Range;
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
    /// By stream.
    carry: [Carry; 2],
}

/// An incomplete character or escape sequence: the rest of it may follow.
#[derive(Default)]
struct Carry {
    bytes: Vec<u8>,
    from: u64,
    to: u64,
    at_ms: u64,
}

impl Carry {
    fn add(&mut self, span: &Span, bytes: &[u8]) {
        if self.bytes.is_empty() {
            self.from = span.from;
        }
        self.bytes.extend_from_slice(bytes);
        (self.to, self.at_ms) = (span.to, span.at_ms);
    }

    /// Takes out what is complete, with its range. With `Last`, that is everything.
    fn take(&mut self, end: PageEnd, ansi: Ansi) -> (Range<u64>, String) {
        let (data, taken) = decode_page(&self.bytes, self.bytes.len(), end, ansi);
        self.bytes.drain(..taken);
        let next = self.to - self.bytes.len() as u64;
        (std::mem::replace(&mut self.from, next)..next, data)
    }
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
                for output in followed.take_rest(self.ansi) {
                    pushes.send(&output).await?;
                }
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

impl OutputPush {
    /// Pushes the output of a process that is closed, to the last byte. Only for the subscription whose turn it is.
    pub async fn push_to_end(&mut self, id: ProcId, pushes: &Pushes) -> Result<(), Disconnected> {
        while self.push_page(id, pushes).await? {}
        let Some(followed) = self.procs.get_mut(&id) else { return Ok(()) };
        for output in followed.take_rest(self.ansi) {
            pushes.send(&output).await?;
        }
        Ok(())
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
        for span in joined(log.spans(page.from, page.next)?) {
            let range = (span.from - page.from) as usize..(span.to - page.from) as usize;
            self.carry[usize::from(span.stream == Stream::Stderr)]
                .add(&span, page.bytes.get(range).unwrap_or_default());
            outputs.extend(self.take(span.stream, PageEnd::More, ansi));
        }
        if page.before_gap {
            outputs.extend(self.take_rest(ansi));
        }
        // A page that does not advance would be read for ever.
        self.cursor = if page.next > self.cursor { page.next } else { end };
        Ok((lagged, outputs))
    }

    /// Takes out what is complete of a stream. With `Last`, that is everything.
    fn take(&mut self, stream: Stream, end: PageEnd, ansi: Ansi) -> Option<Output> {
        let carry = &mut self.carry[usize::from(stream == Stream::Stderr)];
        let (range, data) = carry.take(end, ansi);
        let (at, name) = (Some(rfc3339(carry.at_ms)), self.proc.spec.name.clone());
        let (id, cursor, next_cursor) = (self.proc.spec.id, range.start, range.end);
        (!data.is_empty()).then_some(Output { id, cursor, next_cursor, stream, data, name, at })
    }

    /// Takes out what stays incomplete, because no more follows.
    fn take_rest(&mut self, ansi: Ansi) -> impl Iterator<Item = Output> {
        [Stream::Stdout, Stream::Stderr].map(|stream| self.take(stream, PageEnd::Last, ansi)).into_iter().flatten()
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
