//! The interface of the byte framings: bytes in, whole messages or an error out. No I/O.

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

/// The bytes that were read and are not yet framed.
#[derive(Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
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
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            if self.bytes.capacity() > MAX_IDLE_CAPACITY {
                self.bytes = Vec::new();
            }
        } else if self.start > self.bytes.len() / 2 {
            // Only if the rest is the smaller half, so that every byte moves once on average.
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.reserve(self.bytes.len().clamp(MIN_READ_LEN, MAX_READ_LEN));
        &mut self.bytes
    }
}
