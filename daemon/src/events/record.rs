//! One event as bytes: header, state, text, newline. Pure. The layout is stable: `docs/events.md`.

use std::io::Write;

/// The length of the fixed part.
pub const HEADER_LEN: usize = 64;
/// The maximum length of a record. A longer event is rejected, and a damaged length cannot cause a longer read.
pub const MAX_RECORD_LEN: usize = 4 << 20;
/// The flag of events that are never pushed to subscribers.
pub const CANCELLED: u16 = 1;
/// The version of the layout. A record of another version counts as damaged.
const FORMAT: u16 = 1;
/// The minimum length of a record: a header, `{}` and a newline.
const MIN_RECORD_LEN: usize = HEADER_LEN + 3;

/// The fixed part, without lengths and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    pub seq: u64,
    pub wall_ms: u64,
    pub mono_ms: u64,
    pub kind: u16,
    pub flags: u16,
    /// Zero if the event is not about a process.
    pub process: u64,
    pub session: u64,
    pub task: u64,
}

/// A record with a valid checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecord<'a> {
    pub header: EventHeader,
    pub state: &'a [u8],
    pub text: &'a [u8],
    /// The length of the whole record.
    pub len: usize,
}

/// Encodes a record into `out`, which is cleared first. `rest` is the text after the number.
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
    // Writing to memory does not fail.
    let _ = write!(out, "{{\"seq\":{}", header.seq);
    out.extend_from_slice(rest);
    out.push(b'\n');
    let len = (out.len() as u32).to_le_bytes();
    out[..4].copy_from_slice(&len);
    let sum = crc32fast::hash(&out[8..]).to_le_bytes();
    out[4..8].copy_from_slice(&sum);
}

/// Returns the length that a record's first bytes claim, if it is a possible length.
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    (MIN_RECORD_LEN..=MAX_RECORD_LEN).contains(&len).then_some(len)
}

/// Returns the length of the record at the start of `bytes`, or None if it is truncated or damaged.
pub fn checked_len(bytes: &[u8]) -> Option<usize> {
    let len = claimed_len(bytes)?;
    let bytes = bytes.get(..len)?;
    let text_at = HEADER_LEN + usize::from(u16_at(bytes, 36));
    let whole = bytes[len - 1] == b'\n' && u16_at(bytes, 38) == FORMAT && text_at < len - 1;
    (whole && crc32fast::hash(&bytes[8..]).to_le_bytes() == bytes[4..8]).then_some(len)
}

/// Returns the number of the record at the start of `bytes`.
pub fn seq(bytes: &[u8]) -> u64 {
    u64_at(bytes, 8)
}

/// Decodes a record that was checked.
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
