//! The exchange of messages with one running server: requests are named writes to its stdin, answers are lines in its log.
//!
//! Two tasks: one writes, one message after the other; one follows the log. Neither holds anything that the log and the shim do
//! not have too, so a later daemon goes on where this one ended.

use super::lines::{IdScan, Line, LineSplitter};
use super::message::{self, Incoming, RemoteError};
use super::writer::{NotWritten, Outgoing, write_all};
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::hold::{Claim, ConnectionHolds};
use crate::proc::output::read_stream;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use toold_format::Stream;

/// Messages that wait to be written. Further callers wait.
const MAX_QUEUED: usize = 64;
/// The number of this reader among those for which output is held. Connections of clients count from 1.
const OWN_READER: u64 = u64::MAX;
const PAGE_LEN: usize = 64 * 1024;
/// A line of this length is parsed where it delays no other task.
const LONG_LINE_LEN: usize = 1 << 20;

/// The end of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Result(Value),
    Error(RemoteError),
    /// The answer is longer than the bound, and is in the log from `from` on.
    TooLong {
        len: u64,
        from: u64,
    },
    /// The answer is there and cannot be read.
    Unreadable(String),
    /// A part of the log was dropped before it was read. The answer may have been in it.
    Dropped,
    /// The server ended without an answer.
    Ended,
}

/// Something that the server reports by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    ToolsChanged,
    /// Enough was read since the last checkpoint.
    Checkpoint,
}

#[derive(Default)]
struct Waiting {
    requests: HashMap<String, oneshot::Sender<Reply>>,
    /// Calls that are not waited for any more, and whose server does not know that.
    abandoned: HashSet<String>,
    /// Requests of the handshake that an earlier daemon may have sent: their answers may be read before they are waited for.
    early: HashMap<String, oneshot::Receiver<Reply>>,
    /// No request is taken any more.
    is_closed: bool,
    used: Option<Instant>,
}

/// One running server.
pub struct Session {
    pub proc: Arc<Proc>,
    waiting: Mutex<Waiting>,
    outgoing: mpsc::Sender<Outgoing>,
    /// True when the log was read to its end after the server had ended.
    ended: watch::Sender<bool>,
    /// The offset up to which everything was read and acted on.
    position: AtomicU64,
    /// Answers to requests that are not known, or not any more.
    pub strays: AtomicU64,
    pub garbage: AtomicU64,
    /// It is ended on purpose.
    pub is_retired: AtomicBool,
}

/// The fixed values of a session.
pub struct SessionOptions {
    /// The longest answer.
    pub max_line_len: usize,
    /// The file that has a long message while it is written.
    pub long_write: PathBuf,
    /// Bytes of log between two checkpoints.
    pub checkpoint_len: u64,
    /// Requests that may be answered in the log already.
    pub early: &'static [&'static str],
}

impl Session {
    /// Begins to read the log at `cursor`. `signal` is called by the task that reads.
    pub fn start(
        proc: Arc<Proc>,
        cursor: u64,
        options: SessionOptions,
        signal: impl Fn(Signal) + Send + 'static,
    ) -> Arc<Session> {
        let (outgoing, queue) = mpsc::channel(MAX_QUEUED);
        let session = Arc::new(Session {
            proc,
            waiting: Mutex::default(),
            outgoing,
            ended: watch::Sender::new(false),
            position: AtomicU64::new(cursor),
            strays: AtomicU64::new(0),
            garbage: AtomicU64::new(0),
            is_retired: AtomicBool::new(false),
        });
        for request in options.early {
            let (reply, answer) = oneshot::channel();
            let mut waiting = session.waiting();
            waiting.requests.insert((*request).into(), reply);
            waiting.early.insert((*request).into(), answer);
        }
        tokio::spawn(on_disk(write_all(session.proc.clone(), queue, options.long_write)));
        let reader = Reader { session: session.clone(), max_line_len: options.max_line_len };
        tokio::spawn(reader.follow(cursor, options.checkpoint_len, signal));
        session
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // A lock is poisoned only if a holder panicked, and no holder does more than look up and take.
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for the answer to a request from now on. None: no request is taken any more.
    pub fn expect(self: &Arc<Self>, request: &str) -> Option<Expected> {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return None;
        }
        let answer = waiting.early.remove(request).unwrap_or_else(|| {
            let (reply, answer) = oneshot::channel();
            waiting.requests.insert(request.into(), reply);
            answer
        });
        waiting.used = Some(Instant::now());
        Some(Expected { session: self.clone(), request: request.into(), answer, is_call: false, is_done: false })
    }

    /// Waits for no further answer that came early: the handshake is done.
    pub fn end_early(&self) {
        let mut waiting = self.waiting();
        let early = std::mem::take(&mut waiting.early);
        waiting.requests.retain(|request, _| !early.contains_key(request));
    }

    /// Asks the server to end a call that is not waited for any more.
    pub fn cancel(&self, request: &str) {
        if self.waiting().abandoned.remove(request) {
            let params = message::object([("requestId", request.into()), ("reason", "cancelled by the caller".into())]);
            let data = message::notification("notifications/cancelled", Some(params));
            self.post(format!("toold-cancel/{request}"), data);
        }
    }

    /// Writes a message. Returns when the server's pipe has all of it. A dropped future withdraws a message that was not started.
    pub async fn write(&self, write_id: String, data: Vec<u8>) -> Result<(), NotWritten> {
        let (done, written) = oneshot::channel();
        // The task that writes ends with the server.
        self.outgoing.send(Outgoing { write_id, data, done: Some(done) }).await.map_err(|_| NotWritten::Unsent)?;
        written.await.unwrap_or(Err(NotWritten::Unknown))
    }

    /// Queues a message that is not waited for. It is dropped if too many wait.
    pub fn post(&self, write_id: String, data: Vec<u8>) {
        if self.outgoing.try_send(Outgoing { write_id, data, done: None }).is_err() {
            tracing::debug!(id = %self.proc.spec.id, "dropped a message to an MCP server that reads too slowly");
        }
    }

    /// Takes no further request, if none waits and none was made for this long. Returns the time until then otherwise.
    pub fn close_if_idle(&self, idle: Duration) -> Result<(), Duration> {
        let mut waiting = self.waiting();
        let unused = waiting.used.get_or_insert_with(Instant::now).elapsed();
        if !waiting.requests.is_empty() {
            return Err(idle);
        }
        if unused < idle {
            return Err(idle - unused);
        }
        waiting.is_closed = true;
        Ok(())
    }

    /// Takes no further request. Those that wait go on.
    pub fn close(&self) {
        self.waiting().is_closed = true;
    }

    /// Returns true if requests are taken.
    pub fn is_open(&self) -> bool {
        !self.waiting().is_closed
    }

    /// Returns true if a request waits for its answer.
    pub fn is_busy(&self) -> bool {
        !self.waiting().requests.is_empty()
    }

    pub fn position(&self) -> u64 {
        self.position.load(Relaxed)
    }

    /// Waits until the server has ended and all that it wrote was read.
    pub async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    fn deliver(&self, request: &str, reply: Reply) {
        let waiter = {
            let mut waiting = self.waiting();
            waiting.abandoned.remove(request);
            waiting.requests.remove(request)
        };
        match waiter {
            // The caller may have given up.
            Some(waiter) => drop(waiter.send(reply)),
            None => drop(self.strays.fetch_add(1, Relaxed)),
        }
    }

    fn deliver_to_all(&self, reply: &Reply) {
        let all = std::mem::take(&mut self.waiting().requests);
        for waiter in all.into_values() {
            let _ = waiter.send(reply.clone());
        }
    }

    /// Acts on a line. Returns a signal for the owner.
    fn on_line(&self, line: Line<'_>) -> Option<Signal> {
        let (line, from) = match line {
            Line::TooLong { id: Some(id), len, from } => {
                self.deliver(&id, Reply::TooLong { len, from });
                return None;
            }
            Line::TooLong { id: None, .. } => {
                self.garbage.fetch_add(1, Relaxed);
                return None;
            }
            Line::Whole { bytes, from } => (bytes, from),
        };
        match parse(line) {
            Ok(messages) => messages.into_iter().filter_map(|message| self.on_message(message, from)).last(),
            Err(e) => {
                match IdScan::find(line) {
                    Some(id) => self.deliver(&id, Reply::Unreadable(e.to_string())),
                    None => drop(self.garbage.fetch_add(1, Relaxed)),
                }
                None
            }
        }
    }

    fn on_message(&self, message: Incoming, from: u64) -> Option<Signal> {
        match message {
            Incoming::Answer { id: Value::String(id), result } => {
                self.deliver(&id, result.map_or_else(Reply::Error, Reply::Result));
                None
            }
            Incoming::Answer { .. } => {
                self.strays.fetch_add(1, Relaxed);
                None
            }
            Incoming::Request { id, method } => {
                // The same name after a restart, when the line is read again: the server gets one answer. Its id is not enough: some
                // servers use one id for all requests.
                self.post(format!("toold-answer/{from}/{id}"), message::answer(&id, &method));
                None
            }
            Incoming::Notification { method, .. } => {
                (method == "notifications/tools/list_changed").then_some(Signal::ToolsChanged)
            }
        }
    }
}

fn parse(line: &[u8]) -> Result<Vec<Incoming>, serde_json::Error> {
    if line.len() < LONG_LINE_LEN {
        return message::parse(line);
    }
    tokio::task::block_in_place(|| message::parse(line))
}

/// A request whose answer is waited for. Dropped: it is not waited for any more.
pub struct Expected {
    session: Arc<Session>,
    request: String,
    answer: oneshot::Receiver<Reply>,
    is_call: bool,
    is_done: bool,
}

impl Expected {
    /// Returns the same request as one that can be cancelled.
    pub fn of_call(mut self) -> Expected {
        self.is_call = true;
        self
    }

    /// Waits for the reply. Ready once.
    pub async fn reply(&mut self) -> Reply {
        let reply = (&mut self.answer).await.unwrap_or(Reply::Ended);
        self.is_done = true;
        reply
    }

    /// Notes that the request was not sent.
    pub fn withdraw(mut self) {
        self.is_done = true;
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut waiting = self.session.waiting();
        waiting.requests.remove(&self.request);
        waiting.used = Some(Instant::now());
        if self.is_call && !self.is_done {
            waiting.abandoned.insert(self.request.clone());
        }
    }
}

/// The task that follows the log.
struct Reader {
    session: Arc<Session>,
    max_line_len: usize,
}

impl Reader {
    async fn follow(self, mut cursor: u64, checkpoint_len: u64, signal: impl Fn(Signal)) {
        let Reader { session, max_line_len } = self;
        let proc = session.proc.clone();
        let mut lines = LineSplitter::new(cursor, max_line_len);
        // The server is held back rather than that a part of its log is dropped that was not read.
        let holds = ConnectionHolds::default();
        holds.take(OWN_READER, &proc, cursor, Claim::Own);
        let (mut updates, mut checkpoint) = (proc.subscribe(), cursor);
        loop {
            updates.mark_unchanged();
            let state = proc.state();
            let end = state.progress.counts.end;
            while cursor < end {
                let page = match read_stream(&proc, &state, cursor, PAGE_LEN, Stream::Stdout).await {
                    Ok(page) => page,
                    Err(e) => {
                        tracing::warn!(id = %proc.spec.id, ?e, "the answers of an MCP server cannot be read");
                        lines.reset(end);
                        session.deliver_to_all(&Reply::Dropped);
                        cursor = end;
                        break;
                    }
                };
                if page.gap.is_some() {
                    lines.reset(page.from);
                    session.deliver_to_all(&Reply::Dropped);
                }
                lines.feed(
                    &page.bytes,
                    page.next,
                    |len| page.cursor(len),
                    |line| {
                        if let Some(found) = session.on_line(line) {
                            signal(found);
                        }
                    },
                );
                cursor = page.next;
            }
            if end > proc.spec.log_max_bytes / 2 {
                proc.note_read(OWN_READER, cursor);
            }
            session.position.store(lines.start(), Relaxed);
            if lines.start() >= checkpoint + checkpoint_len {
                checkpoint = lines.start();
                signal(Signal::Checkpoint);
            }
            if state.has_ended() {
                break;
            }
            proc.notify_past(end);
            let _ = updates.changed().await;
        }
        session.close();
        session.deliver_to_all(&Reply::Ended);
        session.ended.send_replace(true);
    }
}

/// Returns the reply to a request in a line.
pub fn read_reply(line: &[u8], request: &str) -> Option<Reply> {
    match parse(line) {
        Ok(messages) => messages.into_iter().find_map(|message| match message {
            Incoming::Answer { id: Value::String(id), result } if id == request => {
                Some(result.map_or_else(Reply::Error, Reply::Result))
            }
            Incoming::Answer { .. } | Incoming::Request { .. } | Incoming::Notification { .. } => None,
        }),
        Err(e) => IdScan::find(line).filter(|id| id == request).map(|_| Reply::Unreadable(e.to_string())),
    }
}
