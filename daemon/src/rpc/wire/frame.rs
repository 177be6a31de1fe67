//! The interface of the byte framings: bytes in, whole messages or an error out. No I/O.

use std::mem::MaybeUninit;

/// The least free space for a read. A request is a few hundred bytes; an idle connection should not hold more than this.
const MIN_READ_LEN: usize = 8 * 1024;
/// The most free space for a read, while a large message arrives.
const MAX_READ_LEN: usize = 256 * 1024;
/// An empty buffer with more capacity is freed: one large message must not cost memory for ever.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

/// The next unit of a byte stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One whole message, as it was sent.
    Message(&'a [u8]),
    /// A message over the size limit. It is reported once, and its bytes are dropped as they arrive.
    TooLong,
    /// The framing is broken and no later byte can be trusted: answer and close.
    Broken(&'static str),
}

/// A framing as a state machine: the same bytes give the same frames, wherever reads cut them.
pub trait Decode {
    /// Returns the buffer for the next read, with free space.
    fn read_buf(&mut self) -> &mut Vec<u8>;

    /// Returns the next complete frame. None: more bytes are needed.
    fn next(&mut self) -> Option<Frame<'_>>;

    /// Returns the frame that the end of the stream completes, if there is one.
    fn last(&mut self) -> Option<Frame<'_>>;

    /// Appends one framed answer to `out`.
    fn encode(out: &mut Vec<u8>, json: &str);

    /// Puts one large answer into an empty `out`, without a copy where the framing allows that.
    fn encode_owned(out: &mut Vec<u8>, json: Box<str>) {
        Self::encode(out, &json);
    }

    /// Adds bytes that were already read.
    fn feed(&mut self, bytes: &[u8]) {
        self.read_buf().extend_from_slice(bytes);
    }
}

/// The bytes that were read and are not yet framed. Those of messages that were taken are wiped before the next read: a
/// message may have values of environment variables, and a connection lives long.
#[derive(Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    /// The length of the part before `start` that is wiped.
    wiped: usize,
}

impl ReadBuffer {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes `n` bytes off the front; they stay readable until the next `read_buf`.
    pub fn take(&mut self, n: usize) -> std::ops::Range<usize> {
        let taken = self.start..self.start + n.min(self.bytes.len() - self.start);
        self.start = taken.end;
        taken
    }

    pub fn get(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    pub fn clear(&mut self) {
        self.start = self.bytes.len();
    }

    pub fn read_buf(&mut self) -> &mut Vec<u8> {
        self.bytes[self.wiped..self.start].fill(0);
        self.wiped = self.start;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            (self.start, self.wiped) = (0, 0);
            if self.bytes.capacity() > MAX_IDLE_CAPACITY {
                self.bytes = Vec::new();
            }
        } else if self.start > self.bytes.len() / 2 {
            // Only if the rest is the smaller half, so that every byte moves once on average.
            self.bytes.drain(..self.start);
            self.bytes.spare_capacity_mut()[..self.start].fill(MaybeUninit::new(0));
            (self.start, self.wiped) = (0, 0);
        }
        self.bytes.reserve(self.bytes.len().clamp(MIN_READ_LEN, MAX_READ_LEN));
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::ReadBuffer;

    #[test]
    fn a_taken_message_is_wiped_before_the_next_read_and_the_rest_is_not() {
        // Taken with the larger half left, which stays; with the smaller half left, which moves; taken whole.
        for rest in [100, 3, 0] {
            let mut buffer = ReadBuffer::default();
            buffer.read_buf().extend_from_slice(&[&b"s3cret"[..], &vec![b'r'; rest]].concat());
            assert_eq!(buffer.take(6), 0..6);
            let is_kept = buffer.read_buf().windows(6).any(|window| window == b"s3cret");
            assert_eq!((is_kept, buffer.bytes()), (false, &vec![b'r'; rest][..]), "{rest}");
            buffer.read_buf().extend_from_slice(b"next");
            assert_eq!(buffer.bytes(), [&vec![b'r'; rest][..], b"next"].concat(), "{rest}");
        }
    }
}
