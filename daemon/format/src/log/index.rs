//! The log's file names and index records, as bytes. Pure: no files here. `docs/log-format.md` describes them.

use super::sums::SegmentSums;
use crate::Stream;
use std::ffi::CStr;

/// The length of an index's header, and of each of its records.
pub const RECORD_LEN: usize = 32;

/// The number of bytes that a record covers at most, so that finding a byte or a line scans no more than this.
pub const MAX_SPAN_LEN: u64 = 64 * 1024;

/// The time that a record covers at most.
pub const MAX_SPAN_MS: u64 = 100;

const MAGIC: [u8; 8] = *b"toolidx1";
const TIME_BITS: u64 = 48;
const OUT_OPEN: u8 = 1;
const ERR_OPEN: u8 = 2;

/// A segment's file name, built on the stack: the writer may not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentName([u8; 24]);

impl SegmentName {
    /// Names the file with the bytes of the segment that starts at `start`.
    pub fn log(start: u64) -> SegmentName {
        SegmentName::build(*b"log", start)
    }

    /// Names the index beside it.
    pub fn idx(start: u64) -> SegmentName {
        SegmentName::build(*b"idx", start)
    }

    pub fn as_c_str(&self) -> &CStr {
        // The last byte is never written, so there always is a NUL.
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"log")
    }

    pub fn as_str(&self) -> &str {
        self.as_c_str().to_str().unwrap_or("log")
    }

    fn build(kind: [u8; 3], start: u64) -> SegmentName {
        let mut name = [0; 24];
        name[..3].copy_from_slice(&kind);
        if start > 0 {
            name[3] = b'.';
            for (i, byte) in name[4..20].iter_mut().enumerate() {
                let digit = (start >> (60 - 4 * i)) & 15;
                *byte = b"0123456789abcdef"[digit as usize];
            }
        }
        SegmentName(name)
    }
}

/// Returns the start of the segment of a `log*` file; none for any other file.
pub fn parse_log_name(name: &[u8]) -> Option<u64> {
    parse_name(*b"log", name)
}

/// Returns the same for an `idx*` file.
pub fn parse_idx_name(name: &[u8]) -> Option<u64> {
    parse_name(*b"idx", name)
}

fn parse_name(kind: [u8; 3], name: &[u8]) -> Option<u64> {
    let rest = name.strip_prefix(&kind)?;
    if rest.is_empty() {
        return Some(0);
    }
    let start = u64::from_str_radix(std::str::from_utf8(rest.strip_prefix(b".")?).ok()?, 16).ok()?;
    // One spelling only: `log.+5` and `log.0` are not ours.
    (start > 0 && SegmentName::build(kind, start).as_str().as_bytes() == name).then_some(start)
}

/// The first 32 bytes of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHeader {
    pub start: u64,
    /// Bytes before `start` that the disk refused.
    pub unstored: u64,
    /// The checksums of the segment that was written before. Zero in the first one, and from earlier versions.
    pub previous: SegmentSums,
}

impl IndexHeader {
    pub fn encode(&self) -> [u8; RECORD_LEN] {
        let mut raw = [0; RECORD_LEN];
        raw[..8].copy_from_slice(&MAGIC);
        raw[8..16].copy_from_slice(&self.start.to_le_bytes());
        raw[16..24].copy_from_slice(&self.unstored.to_le_bytes());
        raw[24..28].copy_from_slice(&self.previous.log.to_le_bytes());
        raw[28..].copy_from_slice(&self.previous.idx.to_le_bytes());
        raw
    }

    pub fn decode(raw: &[u8; RECORD_LEN]) -> Option<IndexHeader> {
        let sums = u64_at(raw, 3);
        let previous = SegmentSums { log: sums as u32, idx: (sums >> 32) as u32 };
        (raw[..8] == MAGIC).then(|| IndexHeader { start: u64_at(raw, 1), unstored: u64_at(raw, 2), previous })
    }
}

/// The bytes from `start` until the next record, which are of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRecord {
    pub start: u64,
    /// Newlines of each stream before `start`, kept or not.
    pub out_newlines: u64,
    pub err_newlines: u64,
    /// The time of the first byte, milliseconds since 1970.
    pub time_ms: u64,
    pub stream: Stream,
    /// The stream's last byte before `start` was not a newline.
    pub out_open: bool,
    pub err_open: bool,
}

impl IndexRecord {
    pub fn encode(&self) -> [u8; RECORD_LEN] {
        let stream = match self.stream {
            Stream::Stdout => 1_u64,
            Stream::Stderr => 2,
        };
        let flags = u64::from(self.out_open) * u64::from(OUT_OPEN) + u64::from(self.err_open) * u64::from(ERR_OPEN);
        let time = self.time_ms & ((1 << TIME_BITS) - 1);
        let mut raw = [0; RECORD_LEN];
        raw[..8].copy_from_slice(&self.start.to_le_bytes());
        raw[8..16].copy_from_slice(&self.out_newlines.to_le_bytes());
        raw[16..24].copy_from_slice(&self.err_newlines.to_le_bytes());
        raw[24..].copy_from_slice(&(time | stream << TIME_BITS | flags << 56).to_le_bytes());
        raw
    }

    /// Reads a record. None for bytes that no writer wrote, such as the zeroes that a power cut leaves behind, or more
    /// newlines than bytes.
    #[inline]
    pub fn decode(raw: &[u8; RECORD_LEN]) -> Option<IndexRecord> {
        if u64_at(raw, 1).checked_add(u64_at(raw, 2))? > u64_at(raw, 0) {
            return None;
        }
        let stream = match raw[30] {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            // A stream that no writer writes: damage.
            _ => return None,
        };
        Some(IndexRecord {
            start: u64_at(raw, 0),
            out_newlines: u64_at(raw, 1),
            err_newlines: u64_at(raw, 2),
            time_ms: u64_at(raw, 3) & ((1 << TIME_BITS) - 1),
            stream,
            out_open: raw[31] & OUT_OPEN != 0,
            err_open: raw[31] & ERR_OPEN != 0,
        })
    }

    /// Counts the newlines before `start` in one stream, or in both.
    #[inline]
    pub fn newlines(&self, stream: Option<Stream>) -> u64 {
        match stream {
            None => self.out_newlines.saturating_add(self.err_newlines),
            Some(Stream::Stdout) => self.out_newlines,
            Some(Stream::Stderr) => self.err_newlines,
        }
    }
}

#[inline]
fn u64_at(raw: &[u8; RECORD_LEN], i: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&raw[8 * i..8 * i + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_segment_has_the_plain_names_and_later_ones_their_start() {
        let names = [SegmentName::log(0), SegmentName::idx(0), SegmentName::log(0x1f00), SegmentName::idx(u64::MAX)];
        let found: Vec<&str> = names.iter().map(SegmentName::as_str).collect();
        assert_eq!(found, ["log", "idx", "log.0000000000001f00", "idx.ffffffffffffffff"]);
    }

    #[test]
    fn only_names_that_the_writer_makes_are_segments() {
        let names =
            ["log", "log.0000000000000010", "log.0000000000000000", "log.10", "log.", "idx", "log.000000000000001G"];
        let found: Vec<Option<u64>> = names.iter().map(|n| parse_log_name(n.as_bytes())).collect();
        assert_eq!(found, [Some(0), Some(16), None, None, None, None, None]);
    }

    #[test]
    fn a_record_is_these_bytes() {
        let record = IndexRecord {
            start: 7,
            out_newlines: 2,
            err_newlines: 3,
            time_ms: 0x0102_0304_0506,
            stream: Stream::Stderr,
            out_open: true,
            err_open: false,
        };
        let mut raw = [0; RECORD_LEN];
        (raw[0], raw[8], raw[16]) = (7, 2, 3);
        raw[24..].copy_from_slice(&[6, 5, 4, 3, 2, 1, 2, 1]);
        assert_eq!((record.encode(), IndexRecord::decode(&raw)), (raw, Some(record)));
    }

    #[test]
    fn more_newlines_than_bytes_are_damage() {
        let mut raw = [0; RECORD_LEN];
        (raw[0], raw[8], raw[16], raw[30]) = (5, 2, 3, 1);
        assert!(IndexRecord::decode(&raw).is_some());
        raw[16] = 4;
        assert_eq!(IndexRecord::decode(&raw), None);
        // The reader accepted it, and counting the lines of both streams overflowed.
        raw[8..24].fill(0xff);
        assert_eq!(IndexRecord::decode(&raw), None);
    }

    proptest! {
        #[test]
        fn names_headers_and_records_come_back(start: u64, unstored: u64, log: u32, raw: [u8; RECORD_LEN]) {
            prop_assert_eq!(parse_log_name(SegmentName::log(start).as_str().as_bytes()), Some(start));
            prop_assert_eq!(parse_idx_name(SegmentName::idx(start).as_str().as_bytes()), Some(start));
            let header = IndexHeader { start, unstored, previous: SegmentSums { log, idx: !log } };
            prop_assert_eq!(IndexHeader::decode(&header.encode()), Some(header));
            if let Some(record) = IndexRecord::decode(&raw) {
                prop_assert_eq!(IndexRecord::decode(&record.encode()), Some(record));
            }
        }
    }
}
