//! One event as bytes: header, state, text, newline. Pure. The layout is a promise: `docs/events.md`.

use std::io::Write;

/// The fixed part.
pub const HEADER_LEN: usize = 64;
/// The longest record. What is longer is refused before it is written, and no damaged length makes us read more.
pub const MAX_RECORD_LEN: usize = 4 << 20;
/// Flag: never pushed to subscribers.
pub const CANCELLED: u16 = 1;
/// The layout below. A record of another one is as good as damaged.
const FORMAT: u16 = 1;
/// The shortest record: a header, `{}` and a newline.
const MIN_RECORD_LEN: usize = HEADER_LEN + 3;

/// The fixed part, without what follows from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    pub seq: u64,
    pub wall_ms: u64,
    pub mono_ms: u64,
    pub kind: u16,
    pub flags: u16,
    /// Zero: about no process.
    pub process: u64,
    pub session: u64,
    pub task: u64,
}

/// A record that fits its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecord<'a> {
    pub header: EventHeader,
    pub state: &'a [u8],
    pub text: &'a [u8],
    /// All of it, in bytes.
    pub len: usize,
}

/// Puts the record into `out`, which is emptied first. `rest` is the text after the number.
pub fn encode(out: &mut Vec<u8>, header: &EventHeader, state: &[u8], rest: &[u8]) {
    out.clear();
    out.resize(8, 0);
    for number in [header.seq, header.wall_ms, header.mono_ms] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [header.kind, header.flags, state.len() as u16, FORMAT] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [header.process, header.session, header.task] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(state);
    // Writing into memory does not fail.
    let _ = write!(out, "{{\"seq\":{}", header.seq);
    out.extend_from_slice(rest);
    out.push(b'\n');
    let len = (out.len() as u32).to_le_bytes();
    out[..4].copy_from_slice(&len);
    let sum = crc32fast::hash(&out[8..]).to_le_bytes();
    out[4..8].copy_from_slice(&sum);
}

/// The length that a record's first bytes claim, if it can be one.
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    (MIN_RECORD_LEN..=MAX_RECORD_LEN).contains(&len).then_some(len)
}

/// The length of the record that `bytes` begin with. None: cut short, or not as it was written.
pub fn checked_len(bytes: &[u8]) -> Option<usize> {
    let len = claimed_len(bytes)?;
    let bytes = bytes.get(..len)?;
    let text_at = HEADER_LEN + usize::from(u16_at(bytes, 36));
    let whole = bytes[len - 1] == b'\n' && u16_at(bytes, 38) == FORMAT && text_at < len - 1;
    (whole && crc32fast::hash(&bytes[8..]).to_le_bytes() == bytes[4..8]).then_some(len)
}

/// The number of the record that `bytes` begin with.
pub fn seq(bytes: &[u8]) -> u64 {
    u64_at(bytes, 8)
}

/// The parts of a record that has been checked.
pub fn decode(bytes: &[u8]) -> EventRecord<'_> {
    let header = EventHeader {
        seq: seq(bytes),
        wall_ms: u64_at(bytes, 16),
        mono_ms: u64_at(bytes, 24),
        kind: u16_at(bytes, 32),
        flags: u16_at(bytes, 34),
        process: u64_at(bytes, 40),
        session: u64_at(bytes, 48),
        task: u64_at(bytes, 56),
    };
    let text_at = HEADER_LEN + usize::from(u16_at(bytes, 36));
    EventRecord { header, state: &bytes[HEADER_LEN..text_at], text: &bytes[text_at..bytes.len() - 1], len: bytes.len() }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b))
}
