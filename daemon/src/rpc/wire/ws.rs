//! Serves a WebSocket connection: the same calls, one JSON message per WebSocket message.

use super::connection::{Connection, Inbox, Transport};
use super::delivery::{Answer, Undelivered};
use super::pending::{Dispatched, FinishedCall};
use super::{STOP_FLUSH_TIMEOUT, StopSignal, reject};
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// The initial size of a connection's buffers. The library's default of 128 KiB each is much for a connection that is
/// mostly idle.
const BUFFER_LEN: usize = 16 * 1024;

/// Serves an upgraded client until it closes or the daemon stops. `bytes` came after the handshake.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    bytes: Vec<u8>,
    (connection, inbox): (Arc<Connection>, Inbox),
    stop: StopSignal,
) {
    let max = connection.wire.limits.max_message_bytes;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_LEN)
        .write_buffer_size(BUFFER_LEN)
        .max_message_size(Some(max))
        .max_frame_size(Some(max));
    let ws = WebSocketStream::from_partially_read(stream, bytes, Role::Server, Some(config)).await;
    let mut socket = Socket { ws, connection, inbox, stop, unsent: 0, undelivered: Undelivered::default() };
    let ended = socket.run().await;
    socket.connection.on_sending_ended();
    // An error means that the client has disconnected.
    if let Ok(Some(close)) = ended {
        let stopping = close.code == CloseCode::Away;
        let _ = tokio::time::timeout(STOP_FLUSH_TIMEOUT, socket.ws.close(Some(close))).await;
        if !stopping {
            reject::linger(socket.ws.into_inner()).await;
        }
    }
}

struct Socket<S> {
    ws: WebSocketStream<S>,
    connection: Arc<Connection>,
    inbox: Inbox,
    stop: StopSignal,
    /// Bytes handed to the library since its last complete flush.
    unsent: usize,
    /// The receipts of the answers in them.
    undelivered: Undelivered,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Runs until the client closes, or returns the reason for closing.
    async fn run(&mut self) -> Result<Option<CloseFrame>, Error> {
        loop {
            tokio::select! {
                message = self.ws.next() => match message {
                    Some(Ok(Message::Text(text))) => self.receive(text.as_bytes()).await?,
                    Some(Ok(Message::Binary(bytes))) => self.receive(&bytes).await?,
                    // The library answers pings and closes by itself.
                    Some(Ok(_)) => {}
                    Some(Err(Error::Capacity(_))) => {
                        let text = self.connection.too_long();
                        self.send(&text).await?;
                        self.flush().await?;
                        return Ok(Some(close(CloseCode::Size, "the message is over max_message_bytes")));
                    }
                    Some(Err(Error::Protocol(error))) => {
                        return Ok(Some(close(CloseCode::Protocol, &error.to_string())));
                    }
                    Some(Err(Error::Utf8(_))) => return Ok(Some(close(CloseCode::Invalid, "text must be UTF-8"))),
                    Some(Err(error)) => return Err(error),
                    None => return Ok(None),
                },
                Some(done) = self.inbox.answers.recv() => self.answer(done).await?,
                Some(push) = self.inbox.pushes.recv() => self.send(push.get()).await?,
                () = self.stop.wait() => return self.drain_on_stop().await,
            }
            while let Ok(done) = self.inbox.answers.try_recv() {
                self.answer(done).await?;
            }
            self.flush().await?;
            if self.inbox.pushes.is_empty() {
                self.connection.push_budget.on_drained();
            }
        }
    }

    async fn receive(&mut self, text: &[u8]) -> Result<(), Error> {
        match self.connection.receive(text, Transport::Stream) {
            Dispatched::NoAnswer => {}
            Dispatched::Answer(answer) => self.put(answer).await?,
            Dispatched::Pending(pending) => self.connection.spawn(pending),
        }
        Ok(())
    }

    async fn answer(&mut self, mut done: FinishedCall) -> Result<(), Error> {
        let Some(answer) = done.answer.take() else { return Ok(()) };
        self.connection.on_answer_queued(&answer.text);
        self.put(answer).await
    }

    async fn put(&mut self, Answer { text, receipts }: Answer) -> Result<(), Error> {
        self.undelivered.begin(receipts);
        self.send(&text).await
    }

    async fn send(&mut self, text: &str) -> Result<(), Error> {
        self.unsent += text.len();
        self.connection.set_buffered(self.unsent);
        self.ws.feed(Message::text(text)).await
    }

    /// Writes the buffer. If the daemon stops in the meantime, the rest has a bounded time.
    async fn flush(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            flushed = self.ws.flush() => flushed?,
            () = self.stop.wait() => match tokio::time::timeout(STOP_FLUSH_TIMEOUT, self.ws.flush()).await {
                Ok(flushed) => flushed?,
                Err(late) => return Err(Error::Io(late.into())),
            },
        }
        self.undelivered.delivered();
        self.unsent = 0;
        self.connection.set_buffered(0);
        Ok(())
    }

    /// Writes the finished answers when the daemon stops. Awaits urgent calls.
    async fn drain_on_stop(&mut self) -> Result<Option<CloseFrame>, Error> {
        let urgent = async {
            while self.connection.call_limit.has_urgent() {
                let Some(done) = self.inbox.answers.recv().await else { break };
                self.answer(done).await?;
            }
            Ok::<(), Error>(())
        };
        if let Ok(written) = tokio::time::timeout(STOP_FLUSH_TIMEOUT, urgent).await {
            written?;
        }
        while let Ok(done) = self.inbox.answers.try_recv() {
            self.answer(done).await?;
        }
        self.flush().await?;
        Ok(Some(close(CloseCode::Away, "the daemon stops")))
    }
}

fn close(code: CloseCode, reason: &str) -> CloseFrame {
    CloseFrame { code, reason: reason.to_owned().into() }
}
