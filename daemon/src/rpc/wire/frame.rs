//! What the byte framings have in common: bytes in, whole messages or a complaint out. No I/O.

/// The least free space offered to a read. A request is a few hundred bytes; an idle connection
/// should not hold more than this.
const MIN_READ_LEN: usize = 8 * 1024;
/// The most free space offered at once, while a large message is coming in.
const MAX_READ_LEN: usize = 256 * 1024;
/// An empty buffer larger than this is given back: one large message must not be paid for ever.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One whole message, as it was sent.
    Message(&'a [u8]),
    /// A message over the size limit. It is told once, and its bytes are thrown away as they come.
    TooLong,
    /// The framing itself is broken and no later byte can be trusted: answer and close.
    Broken(&'static str),
}

/// A framing as a state machine: the same bytes give the same frames, however they are cut.
pub trait Decode {
    /// Where the next bytes go, with room for some.
    fn read_buf(&mut self) -> &mut Vec<u8>;

    /// The next frame that is complete. None: more bytes are needed.
    fn next(&mut self) -> Option<Frame<'_>>;

    /// The frame that the end of the stream completes, if it does.
    fn last(&mut self) -> Option<Frame<'_>>;

    /// Puts one answer into `out`, framed.
    fn encode(out: &mut Vec<u8>, json: &str);

    /// The same for a large answer that nothing waits before: where the framing allows it, it is not copied.
    fn encode_owned(out: &mut Vec<u8>, json: Box<str>) {
        Self::encode(out, &json);
    }

    /// Takes bytes that were already read.
    fn feed(&mut self, bytes: &[u8]) {
        self.read_buf().extend_from_slice(bytes);
    }
}

/// Bytes read and not yet framed.
#[derive(Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl ReadBuffer {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes `n` bytes off the front; they stay readable until the next `room`.
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
            // Only when the rest is the smaller half, so that every byte is moved once on average.
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.reserve(self.bytes.len().clamp(MIN_READ_LEN, MAX_READ_LEN));
        &mut self.bytes
    }
}
