//! Serves a connection in one of the two byte framings: one task reads, runs and writes. While it cannot write answers it
//! does not read, and that is the whole back-pressure.

use super::connection::{Connection, Inbox, Transport};
use super::delivery::{Answer, Undelivered};
use super::frame::{Decode, Frame};
use super::hang_up::HangUp;
use super::opening::OpeningDeadline;
use super::pending::{Dispatched, FinishedCall};
use super::response::error_without_id;
use super::sniff::Framing;
use super::{STOP_FLUSH_TIMEOUT, StopSignal, reject};
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use toold_proto::{ErrorKind, RpcError};

/// Answers are collected up to this length before they are written, so that a burst is one write.
const FLUSH_THRESHOLD: usize = 256 * 1024;
/// An empty outgoing buffer with more capacity is freed.
const MAX_IDLE_CAPACITY: usize = 2 * FLUSH_THRESHOLD;

/// The start of a connection: its framing, the bytes that were read already, and the deadline of its first request.
pub(super) struct Start {
    pub framing: Framing,
    pub bytes: Vec<u8>,
    pub deadline: OpeningDeadline,
}

/// Serves a client until it hangs up or the daemon stops.
pub(super) async fn serve<D: Decode>(
    mut decoder: D,
    stream: UnixStream,
    Start { framing, bytes, deadline }: Start,
    (connection, inbox): (Arc<Connection>, Inbox),
    stop: StopSignal,
) {
    decoder.feed(&bytes);
    drop(bytes);
    let (reader, writer) = stream.into_split();
    let (out, undelivered) = (Vec::new(), Undelivered::default());
    let opening = Some(deadline);
    let mut stream = StreamConnection { decoder, connection, inbox, stop, reader, writer, out, undelivered, opening };
    let reason = stream.run().await;
    stream.connection.on_sending_ended();
    let StreamConnection { reader, writer, .. } = stream;
    match (reason, reader.reunite(writer)) {
        (Ok(CloseReason::Broken), Ok(stream)) => reject::linger(stream).await,
        (Ok(CloseReason::Overdue(error)), Ok(stream)) => reject::send_error_and_close(stream, framing, &error).await,
        // The client has disconnected, or has every answer.
        (Ok(CloseReason::Done | CloseReason::Broken | CloseReason::Overdue(_)) | Err(_), _) => {}
    }
}

struct StreamConnection<D> {
    decoder: D,
    connection: Arc<Connection>,
    inbox: Inbox,
    stop: StopSignal,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    out: Vec<u8>,
    /// The receipts of the answers in `out`.
    undelivered: Undelivered,
    /// None: the first request has come.
    opening: Option<OpeningDeadline>,
}

/// The reason why a connection ends.
enum CloseReason {
    /// The client has every answer.
    Done,
    /// The client's framing is broken, and the error was sent.
    Broken,
    /// The first request did not come in time.
    Overdue(Box<RpcError>),
}

/// An event that wakes the task of the connection.
enum Wakeup {
    Read(usize),
    Answer(FinishedCall),
    Push(Box<RawValue>),
    Stop,
    HungUp,
    /// The first request did not come in time.
    Overdue,
}

impl<D: Decode> StreamConnection<D> {
    async fn run(&mut self) -> io::Result<CloseReason> {
        loop {
            // Runs every message that has arrived before it writes.
            if let Some(why) = self.messages().await? {
                let error = RpcError::new(ErrorKind::ParseError, format!("{why}; the connection is closed"));
                D::encode(&mut self.out, &error_without_id(&error));
                self.flush().await?;
                return Ok(CloseReason::Broken);
            }
            self.flush().await?;
            let opening = async {
                match &mut self.opening {
                    Some(deadline) => deadline.passed().await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                read = self.reader.read_buf(self.decoder.read_buf()) => Wakeup::Read(read?),
                () = opening => Wakeup::Overdue,
                Some(done) = self.inbox.answers.recv() => Wakeup::Answer(done),
                Some(push) = self.inbox.pushes.recv() => Wakeup::Push(push),
                () = self.stop.wait() => Wakeup::Stop,
            };
            match event {
                Wakeup::Read(0) => return self.on_eof().await,
                Wakeup::Stop | Wakeup::HungUp => return self.drain_on_stop().await,
                Wakeup::Read(n) => self.received(n),
                Wakeup::Answer(done) => self.answer(done),
                Wakeup::Push(push) => D::encode(&mut self.out, push.get()),
                Wakeup::Overdue => {
                    let error = self.opening.as_ref().map(OpeningDeadline::error);
                    return Ok(error.map_or(CloseReason::Done, |error| CloseReason::Overdue(error.into())));
                }
            }
        }
    }

    fn received(&self, bytes: usize) {
        if let Some(deadline) = &self.opening {
            deadline.received().fetch_add(bytes, Relaxed);
        }
    }

    /// Runs the complete messages and takes the contents of the inbox. Returns the reason if the framing is broken.
    async fn messages(&mut self) -> io::Result<Option<&'static str>> {
        while let Some(frame) = self.decoder.next() {
            self.opening = None;
            match frame {
                Frame::Message(text) => {
                    let outcome = self.connection.receive(text, Transport::Stream);
                    self.outcome(outcome);
                }
                Frame::TooLong => D::encode(&mut self.out, &self.connection.too_long()),
                Frame::Broken(why) => return Ok(Some(why)),
            }
            if self.out.len() > FLUSH_THRESHOLD {
                self.flush().await?;
            }
        }
        self.inbox().await?;
        Ok(None)
    }

    fn outcome(&mut self, outcome: Dispatched) {
        match outcome {
            Dispatched::NoAnswer => {}
            Dispatched::Answer(answer) => self.put(answer),
            Dispatched::Pending(pending) => self.connection.spawn(pending),
        }
    }

    fn answer(&mut self, mut done: FinishedCall) {
        if let Some(answer) = done.answer.take() {
            self.connection.on_answer_queued(&answer.text);
            self.put(answer);
        }
    }

    fn put(&mut self, Answer { text, receipts }: Answer) {
        self.undelivered.begin(receipts);
        if self.out.is_empty() && text.len() > FLUSH_THRESHOLD {
            D::encode_owned(&mut self.out, text);
        } else {
            D::encode(&mut self.out, &text);
        }
    }

    /// Takes the contents of the inbox.
    async fn inbox(&mut self) -> io::Result<()> {
        while let Ok(done) = self.inbox.answers.try_recv() {
            self.answer(done);
            if self.out.len() > FLUSH_THRESHOLD {
                self.flush().await?;
            }
        }
        // Only those that are there now: a subscription that never pauses must not stop the reading.
        for _ in 0..self.inbox.pushes.len() {
            let Ok(push) = self.inbox.pushes.try_recv() else { break };
            D::encode(&mut self.out, push.get());
            if self.out.len() > FLUSH_THRESHOLD {
                self.flush().await?;
            }
        }
        if self.inbox.pushes.is_empty() {
            self.connection.push_budget.on_drained();
        }
        Ok(())
    }

    /// Writes the buffer. If the daemon stops in the meantime, the rest has a bounded time.
    ///
    /// A client that serves tools may write a long answer before it reads its next request. Both sides would wait for each other
    /// for ever, so it is read meanwhile, up to the length of one message.
    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.connection.set_buffered(self.out.len());
        let mut rest = &self.out[..];
        let max_ahead = if self.connection.serves_tools() { self.connection.wire.limits.max_message_bytes } else { 0 };
        let mut is_open = true;
        loop {
            let reads_on = is_open && max_ahead > 0 && self.decoder.read_buf().len() < max_ahead;
            tokio::select! {
                biased;
                written = self.writer.write_all_buf(&mut rest) => break written?,
                () = self.stop.wait() => {
                    break tokio::time::timeout(STOP_FLUSH_TIMEOUT, self.writer.write_all_buf(&mut rest)).await??;
                }
                read = self.reader.read_buf(self.decoder.read_buf()), if reads_on => is_open = read? > 0,
            }
        }
        self.undelivered.delivered();
        self.out.clear();
        if self.out.capacity() > MAX_IDLE_CAPACITY {
            self.out = Vec::new();
        }
        self.connection.set_buffered(0);
        Ok(())
    }

    /// Answers the calls of a client that has stopped sending but may still read, like `printf ... | nc -N`. Ends if the
    /// client has closed both directions.
    async fn on_eof(&mut self) -> io::Result<CloseReason> {
        if let Some(Frame::Message(text)) = self.decoder.last() {
            let outcome = self.connection.receive(text, Transport::Stream);
            self.outcome(outcome);
        }
        self.connection.on_sending_ended();
        self.inbox().await?;
        self.flush().await?;
        if self.is_finished() {
            return Ok(CloseReason::Done);
        }
        let hang_up = HangUp::new(self.reader.as_ref());
        let hang_up = async || match &hang_up {
            Ok(hang_up) => hang_up.wait().await,
            // Without a descriptor, only the write of an answer shows that the client is gone.
            Err(_) => std::future::pending().await,
        };
        while !self.is_finished() {
            let event = tokio::select! {
                Some(done) = self.inbox.answers.recv() => Wakeup::Answer(done),
                Some(push) = self.inbox.pushes.recv() => Wakeup::Push(push),
                () = self.stop.wait() => Wakeup::Stop,
                () = hang_up() => Wakeup::HungUp,
            };
            match event {
                Wakeup::Stop => return self.drain_on_stop().await,
                Wakeup::HungUp => break,
                Wakeup::Answer(done) => self.answer(done),
                Wakeup::Push(push) => D::encode(&mut self.out, push.get()),
                // Unreachable: nothing is read any more.
                Wakeup::Read(_) | Wakeup::Overdue => {}
            }
            self.inbox().await?;
            self.flush().await?;
        }
        Ok(CloseReason::Done)
    }

    fn is_finished(&self) -> bool {
        self.connection.call_limit.is_idle() && !self.connection.is_subscribed()
    }

    /// Writes the finished answers when the daemon stops. Awaits urgent calls: one of them is the `daemon.shutdown` that
    /// stops it.
    async fn drain_on_stop(&mut self) -> io::Result<CloseReason> {
        let connection = self.connection.clone();
        let wait = async {
            while connection.call_limit.has_urgent() {
                let Some(done) = self.inbox.answers.recv().await else { break };
                self.answer(done);
            }
        };
        // Calls that take longer are not awaited; the finished answers are still written.
        let _ = tokio::time::timeout(STOP_FLUSH_TIMEOUT, wait).await;
        self.inbox().await?;
        self.flush().await?;
        Ok(CloseReason::Done)
    }
}
