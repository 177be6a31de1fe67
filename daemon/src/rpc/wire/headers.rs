//! Content-Length framing, as in the Language Server Protocol: headers, a blank line, a body.

use super::frame::{Decode, Frame, ReadBuffer};
use std::io::Write;

/// The most bytes of headers of one message. Two lines of 40 bytes are usual.
const MAX_HEADERS_LEN: usize = 8 * 1024;
/// The longest body over the limit that is skipped. A longer one breaks the connection: skipping it would leave the
/// connection silent for too long.
const MAX_SKIPPED_LEN: u64 = 1 << 32;

const TOO_MANY: &str = "the headers are longer than 8 KiB";
const NOT_A_HEADER: &str = "a header line must be `Name: value`";
const NO_LENGTH: &str = "a message must have a Content-Length header before the blank line";
const BAD_LENGTH: &str = "Content-Length must be one decimal number below 4 GiB";

enum State {
    /// Between two header lines: the bytes of the block so far, and its Content-Length.
    Headers {
        seen: usize,
        length: Option<u64>,
    },
    Body {
        length: usize,
    },
    Skip {
        left: u64,
    },
    Broken,
}

const START: State = State::Headers { seen: 0, length: None };

/// Cuts bytes into bodies of at most `max` bytes.
pub struct Headers {
    buffer: ReadBuffer,
    state: State,
    /// The length of the unread prefix without a newline.
    scanned: usize,
    max: usize,
}

impl Headers {
    pub fn new(max: usize) -> Headers {
        Headers { buffer: ReadBuffer::default(), state: START, scanned: 0, max }
    }

    /// Reads one header line. None: more bytes are needed.
    fn header(&mut self, seen: usize, length: Option<u64>) -> Option<Result<State, &'static str>> {
        let unread = self.buffer.bytes();
        let found = memchr::memchr(b'\n', &unread[self.scanned..]);
        let end = found.map_or(unread.len(), |at| self.scanned + at + 1);
        if seen + end > MAX_HEADERS_LEN {
            return Some(Err(TOO_MANY));
        }
        self.scanned = unread.len();
        found?;
        self.scanned = 0;
        let line = self.buffer.take(end);
        let line = self.buffer.get(line).trim_ascii();
        Some(match (line.is_empty(), length) {
            // Some editors send a blank line after a body.
            (true, None) if seen == 0 => Ok(START),
            (true, None) => Err(NO_LENGTH),
            (true, Some(length)) => Ok(match usize::try_from(length) {
                Ok(length) if length <= self.max => State::Body { length },
                // Over the limit: `next` reports it and skips exactly this many bytes.
                _ => State::Skip { left: length },
            }),
            (false, length) => field(line, length).map(|length| State::Headers { seen: seen + end, length }),
        })
    }
}

/// Returns the Content-Length after one more header line.
fn field(line: &[u8], length: Option<u64>) -> Result<Option<u64>, &'static str> {
    let colon = memchr::memchr(b':', line).ok_or(NOT_A_HEADER)?;
    if !line[..colon].trim_ascii().eq_ignore_ascii_case(b"content-length") {
        return Ok(length);
    }
    let digits = line[colon + 1..].trim_ascii();
    // `parse` alone would take `+5`.
    let decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(digits).ok().filter(|_| decimal).and_then(|text| text.parse().ok());
    match value {
        Some(value) if value < MAX_SKIPPED_LEN && length.is_none_or(|before| before == value) => Ok(Some(value)),
        // Not a number, too large, or different from the length before.
        _ => Err(BAD_LENGTH),
    }
}

impl Decode for Headers {
    fn read_buf(&mut self) -> &mut Vec<u8> {
        self.buffer.read_buf()
    }

    fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            match self.state {
                State::Headers { seen, length } => match self.header(seen, length)? {
                    Ok(state) => {
                        let too_long = matches!(state, State::Skip { .. });
                        self.state = state;
                        if too_long {
                            return Some(Frame::TooLong);
                        }
                    }
                    Err(why) => {
                        self.state = State::Broken;
                        return Some(Frame::Broken(why));
                    }
                },
                State::Body { length } => {
                    if self.buffer.bytes().len() < length {
                        return None;
                    }
                    self.state = START;
                    let body = self.buffer.take(length);
                    return Some(Frame::Message(self.buffer.get(body)));
                }
                State::Skip { left: 0 } => self.state = START,
                State::Skip { left } => {
                    let here = (self.buffer.bytes().len() as u64).min(left);
                    if here == 0 {
                        return None;
                    }
                    self.buffer.take(here as usize);
                    self.state = State::Skip { left: left - here };
                }
                State::Broken => {
                    self.buffer.clear();
                    return None;
                }
            }
        }
    }

    fn last(&mut self) -> Option<Frame<'_>> {
        // A body shorter than its length is not a message.
        None
    }

    fn encode(out: &mut Vec<u8>, json: &str) {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "Content-Length: {}\r\n\r\n{json}", json.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(max: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, &'static str>> {
        let mut headers = Headers::new(max);
        let mut found = Vec::new();
        for chunk in chunks {
            headers.feed(chunk);
            while let Some(frame) = headers.next() {
                found.push(match frame {
                    Frame::Message(body) => Ok(body.to_vec()),
                    Frame::TooLong => Err("too long"),
                    Frame::Broken(why) => Err(why),
                });
            }
        }
        found
    }

    #[test]
    fn other_headers_any_case_and_bare_newlines_are_accepted() {
        let text = b"content-length:2\nContent-Type: application/vscode-jsonrpc; charset=utf-8\n\n{}\r\n\
            CONTENT-LENGTH: 03\r\n\r\n[1]Content-Length: 0\r\n\r\n";
        assert_eq!(all(9, &[text]), [Ok(b"{}".to_vec()), Ok(b"[1]".to_vec()), Ok(Vec::new())]);
    }

    #[test]
    fn a_body_over_the_limit_is_skipped_to_the_byte() {
        assert_eq!(
            all(3, &[b"Content-Length: 4\r\n\r\nabcdContent-Length: 2\r\n\r\n{}"]),
            [Err("too long"), Ok(b"{}".to_vec())]
        );
    }

    #[test]
    fn an_invalid_length_breaks_the_connection() {
        for value in ["-1", "+5", "", "1e3", "0x10", "5 5", "99999999999999999999", "4294967296"] {
            assert_eq!(
                all(9, &[format!("Content-Length: {value}\r\n\r\n{{}}").as_bytes()]),
                [Err(BAD_LENGTH)],
                "{value}"
            );
        }
        assert_eq!(all(9, &[b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"]), [Err(BAD_LENGTH)]);
        assert_eq!(all(9, &[b"Content-Type: x\r\n\r\n{}"]), [Err(NO_LENGTH)]);
        assert_eq!(all(9, &[b"CONNECT host:1 HTTP/1.1\r\nnothing\r\n\r\n"]), [Err(NOT_A_HEADER)]);
        assert_eq!(all(9, &[format!("C{}", "x".repeat(9000)).as_bytes()]), [Err(TOO_MANY)]);
    }

    proptest! {
        #[test]
        fn bytes_cut_anywhere_are_the_same_bodies(
            bodies in proptest::collection::vec((0usize..12, any::<bool>()), 0..12),
            noise in proptest::collection::vec(any::<u8>(), 0..40),
            cuts in proptest::collection::vec(0usize..400, 0..20),
            max in 0usize..12,
        ) {
            let mut text = Vec::new();
            for (length, typed) in bodies {
                if typed {
                    text.extend_from_slice(b"Content-Type: x\r\n");
                }
                Headers::encode(&mut text, &"x".repeat(length));
            }
            text.extend_from_slice(&noise);
            prop_assert_eq!(all(max, &super::super::cut(&text, &cuts)), all(max, &[&text]));
        }
    }
}
