//! Detects the framing of a connection by its first byte that is not blank.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// The size of the first read: enough for a small request.
const FIRST_READ_LEN: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON message per line.
    Lines,
    /// `Content-Length` headers before each message.
    Headers,
    /// HTTP/1.1, and WebSocket by way of it.
    Http,
    /// Not a framing of toold.
    Unknown,
}

/// Returns the framing that starts with this text, and its offset. None: the text is blank.
pub fn detect(text: &[u8]) -> Option<(Framing, usize)> {
    let start = text.iter().position(|b| !b.is_ascii_whitespace())?;
    let framing = match text[start] {
        b'{' | b'[' => Framing::Lines,
        // The only HTTP method with a C is CONNECT, and toold is not a proxy.
        b'C' | b'c' => Framing::Headers,
        b'A'..=b'Z' => Framing::Http,
        // Lower-case letters, digits and binary are another protocol.
        _ => Framing::Unknown,
    };
    Some((framing, start))
}

/// The start of a connection.
pub(crate) enum Opening {
    /// The framing, and the bytes read so far.
    Detected(Framing, Vec<u8>),
    /// No byte came in time.
    TimedOut,
    Closed,
}

/// Reads until the framing is detected, or until `deadline`.
pub(crate) async fn read_opening(stream: &mut (impl AsyncRead + Unpin), deadline: Instant) -> Opening {
    match tokio::time::timeout_at(deadline, first_bytes(stream)).await {
        Ok(Ok((framing, bytes))) => Opening::Detected(framing, bytes),
        Ok(Err(_)) => Opening::Closed,
        Err(_) => Opening::TimedOut,
    }
}

async fn first_bytes(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Framing, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(FIRST_READ_LEN);
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((framing, start)) = detect(&bytes) {
            bytes.drain(..start);
            return Ok((framing, bytes));
        }
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_not_blank_decides() {
        assert_eq!(detect(b" \r\n\t{"), Some((Framing::Lines, 4)));
        assert_eq!(detect(b"[1]"), Some((Framing::Lines, 0)));
        assert_eq!(detect(b"content-length: 1"), Some((Framing::Headers, 0)));
        assert_eq!(detect(b"POST / HTTP/1.1"), Some((Framing::Http, 0)));
        for text in [b"get".as_slice(), b"\x16\x03", b"9", b"\"x\"", b"\xef\xbb\xbf{"] {
            assert_eq!(detect(text), Some((Framing::Unknown, 0)));
        }
        assert_eq!(detect(b" \n"), None);
    }
}
