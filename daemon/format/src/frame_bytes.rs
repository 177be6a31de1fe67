//! The bytes around the body of every frame.

pub const VERSION: u8 = 1;
pub const HEADER_LEN: usize = 8;

/// A buffer that frames are written to: on the heap in the daemon, a fixed one in the shim.
pub trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts the bytes and drops them.
struct LengthCounter(usize);

impl Sink for LengthCounter {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// Writes a frame: its header, then what `body` writes.
pub(crate) fn put_frame(kind: u8, out: &mut dyn Sink, body: impl Fn(&mut dyn Sink)) {
    let mut length = LengthCounter(0);
    body(&mut length);
    out.put(&(length.0 as u32).to_le_bytes());
    out.put(&[VERSION, kind, 0, 0]);
    body(out);
}

/// A frame's kind, its body and its length, header included.
pub type RawFrame<'a> = (u8, &'a [u8], usize);

/// Splits off the frame at the start of `bytes`. None: it is not whole yet.
/// An error: longer than `max`, or of version 0, which does not exist.
#[inline]
pub fn next_frame(bytes: &[u8], max: usize) -> Result<Option<RawFrame<'_>>, BadFrame> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if length > max || header[4] == 0 {
        return Err(BadFrame);
    }
    Ok(rest.get(..length).map(|body| (header[5], body, HEADER_LEN + length)))
}

/// The other side does not use this protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct BadFrame;
