//! The daemon's end of a connection to a shim: whole frames in both directions.

use std::io;
use tokio::net::UnixStream;
use toold_format::frame::{self, BadFrame, MAX_FROM_SHIM_LEN, ToShim};

/// Length that is reserved for a read: an exit and the frames that follow it arrive with one read.
const READ_BUF_LEN: usize = 512;

/// A connection to a shim.
pub struct ShimConnection {
    stream: UnixStream,
    input: Vec<u8>,
    /// Start of the first frame in `input` that was not returned yet.
    at: usize,
}

/// The receiving half of a `ShimConnection`.
pub struct FrameReader<'a> {
    stream: &'a UnixStream,
    input: &'a mut Vec<u8>,
    at: &'a mut usize,
}

/// The sending half of a `ShimConnection`.
#[derive(Clone, Copy)]
pub struct FrameWriter<'a> {
    stream: &'a UnixStream,
}

impl ShimConnection {
    pub fn new(stream: UnixStream) -> ShimConnection {
        ShimConnection { stream, input: Vec::new(), at: 0 }
    }

    /// Splits the connection, so that a received frame can be handled while others are sent.
    pub fn split(&mut self) -> (FrameReader<'_>, FrameWriter<'_>) {
        let ShimConnection { stream, input, at } = self;
        (FrameReader { stream, input, at }, FrameWriter { stream })
    }

    pub fn writer(&self) -> FrameWriter<'_> {
        FrameWriter { stream: &self.stream }
    }

    /// Waits until the shim has sent something or closed the connection.
    pub async fn readable(&self) {
        let _ = self.stream.readable().await;
    }
}

impl FrameWriter<'_> {
    pub async fn send(self, frame: &ToShim<'_>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(64);
        frame.put(&mut bytes);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl FrameReader<'_> {
    /// Returns kind and body of the next frame, or None if the shim closed the connection or sent a malformed frame.
    /// Safe to cancel: bytes that were read stay in the buffer.
    pub async fn next(&mut self) -> Option<(u8, &[u8])> {
        let (kind, body) = loop {
            match frame::next_frame(&self.input[*self.at..], MAX_FROM_SHIM_LEN) {
                Ok(Some((kind, body, length))) => {
                    let body_len = body.len();
                    *self.at += length;
                    break (kind, *self.at - body_len..*self.at);
                }
                Ok(None) => self.fill().await?,
                Err(BadFrame) => return None,
            }
        };
        Some((kind, &self.input[body]))
    }

    /// Reads more bytes. Returns None at the end of the stream.
    async fn fill(&mut self) -> Option<()> {
        self.input.drain(..*self.at);
        *self.at = 0;
        self.input.reserve(READ_BUF_LEN);
        loop {
            self.stream.readable().await.ok()?;
            match self.stream.try_read_buf(self.input) {
                Ok(0) => return None,
                Ok(_) => return Some(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }
}
