//! The position of a scan in a few numbers, from which another scan can continue.
//!
//! To continue, create a `Scanner` with it and feed it both streams of the log from `ScanPosition::from` on. The scanner
//! skips bytes that it does not need, and finds no match twice. Matches that are not published yet are not part of the
//! position: record both together.

use toold_format::Stream;

/// The part of a line that has to be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinePart {
    /// The whole line, which starts at `start`.
    #[default]
    Whole,
    /// The rest of an over-long line. The text before `start` did not match.
    Rest,
    /// Nothing: an over-long line that matched. Its rest is skipped.
    Matched,
}

/// The unfinished line of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenLine {
    /// The offset of the first byte that is needed again. Without an open line it is `scanned_to`.
    pub start: u64,
    pub part: LinePart,
}

/// The position of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanPosition {
    /// All bytes before this offset were fed: no line that ended before is searched again.
    pub scanned_to: u64,
    pub out: OpenLine,
    pub err: OpenLine,
}

impl ScanPosition {
    /// Returns the position of a scan that starts at this offset, with a new line on both streams.
    pub fn at(offset: u64) -> ScanPosition {
        let line = OpenLine { start: offset, part: LinePart::Whole };
        ScanPosition { scanned_to: offset, out: line, err: line }
    }

    /// Returns the offset to feed from.
    pub fn from(&self) -> u64 {
        self.out.start.min(self.err.start).min(self.scanned_to)
    }

    /// Returns the offset before which bytes of this stream are not needed.
    pub fn from_of(&self, stream: Stream) -> u64 {
        self.of(stream).start.min(self.scanned_to)
    }

    pub(super) fn of(&self, stream: Stream) -> OpenLine {
        match stream {
            Stream::Stdout => self.out,
            Stream::Stderr => self.err,
        }
    }

    /// Encodes the numbers, little-endian: `scanned_to`, the starts of both lines, and their parts.
    pub fn to_bytes(&self) -> [u8; ScanPosition::BYTES] {
        let mut bytes = [0; ScanPosition::BYTES];
        let numbers = [self.scanned_to, self.out.start, self.err.start].map(u64::to_le_bytes);
        let parts = [self.out.part, self.err.part].map(|part| part as u8);
        bytes.iter_mut().zip(numbers.iter().flatten().chain(&parts)).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Decodes a position. Returns None if the bytes are not valid.
    pub fn from_bytes(bytes: &[u8; ScanPosition::BYTES]) -> Option<ScanPosition> {
        let ([scanned_to, out, err], [out_part, err_part]) = bytes.as_chunks::<8>() else { return None };
        let part = |byte: u8| {
            [LinePart::Whole, LinePart::Rest, LinePart::Matched].into_iter().find(|part| *part as u8 == byte)
        };
        let line = |start: &[u8; 8], byte: u8| Some(OpenLine { start: u64::from_le_bytes(*start), part: part(byte)? });
        Some(ScanPosition {
            scanned_to: u64::from_le_bytes(*scanned_to),
            out: line(out, *out_part)?,
            err: line(err, *err_part)?,
        })
    }

    /// The length of an encoded position.
    pub const BYTES: usize = 26;
}
