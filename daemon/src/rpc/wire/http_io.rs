//! The socket of an HTTP client, and the bodies that are written to it: an answer counts as delivered once hyper has
//! flushed it.

use super::delivery::{Answer, Receipt, Undelivered};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// The receipts of the bodies that hyper has taken and not yet flushed.
type Taken = Arc<Mutex<Undelivered>>;

/// A socket whose first bytes were read already.
pub(super) struct HttpIo {
    first: io::Cursor<Vec<u8>>,
    stream: Arc<UnixStream>,
    received: Arc<AtomicUsize>,
    taken: Taken,
}

impl HttpIo {
    pub fn new(stream: Arc<UnixStream>, first: Vec<u8>, received: Arc<AtomicUsize>) -> HttpIo {
        HttpIo { first: io::Cursor::new(first), stream, received, taken: Taken::default() }
    }

    pub fn taken(&self) -> Taken {
        self.taken.clone()
    }
}

impl AsyncRead for HttpIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let n = self.first.read(buf.initialize_unfilled())?;
        if n > 0 {
            buf.advance(n);
            if self.first.position() == self.first.get_ref().len() as u64 {
                // A message may be in it, and a connection lives long.
                self.first = io::Cursor::default();
            }
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buf.initialize_unfilled()) {
                Ok(n) => {
                    buf.advance(n);
                    self.received.fetch_add(n, Relaxed);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for HttpIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write_vectored(bufs) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Delivers what hyper has taken: it flushes the socket only when its own buffer is empty.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).delivered();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Write)?))
    }
}

/// The body of a response: one piece, with its receipts.
#[derive(Default)]
pub(super) struct AnswerBody {
    bytes: Option<Bytes>,
    receipts: Vec<Receipt>,
    taken: Taken,
}

impl AnswerBody {
    /// Makes the body of an answer. The newline is for curl in a terminal.
    pub fn answer(Answer { text, receipts }: Answer, taken: Taken) -> AnswerBody {
        let mut text = String::from(text);
        text.push('\n');
        AnswerBody { bytes: Some(text.into()), receipts, taken }
    }

    pub fn text(text: String) -> AnswerBody {
        AnswerBody { bytes: Some(text.into()), ..AnswerBody::default() }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let receipts = std::mem::take(&mut self.receipts);
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).begin(receipts);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
