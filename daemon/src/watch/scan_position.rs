//! Where a scan stands, in a few numbers, so that another one can go on from there.
//!
//! To go on, make a new `Scanner` with it, and feed it the log again from `ScanPosition::from` on, both streams. It leaves out
//! what it does not need, and finds again nothing that was found. What was found and not yet told is not in here: record
//! both together.

use toold_format::Stream;

/// How much of a line is still to be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinePart {
    /// All of it: it begins at `start`.
    #[default]
    Whole,
    /// It is over-long. What comes before `start` was searched, and did not match.
    Rest,
    /// None: it is over-long and has matched. What is left up to its newline is skipped.
    Matched,
}

/// The line of one stream that has not ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenLine {
    /// The place in the log of the first byte that is needed again. Without an open line it is `scanned_to`.
    pub start: u64,
    pub part: LinePart,
}

/// Where a scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanPosition {
    /// Everything below was fed: no line that ended before is scanned_to again.
    pub scanned_to: u64,
    pub out: OpenLine,
    pub err: OpenLine,
}

impl ScanPosition {
    /// A scan of what comes at and after this place in the log, which begins a line on both streams.
    pub fn at(place: u64) -> ScanPosition {
        let line = OpenLine { start: place, part: LinePart::Whole };
        ScanPosition { scanned_to: place, out: line, err: line }
    }

    /// The place in the log to feed from.
    pub fn from(&self) -> u64 {
        self.out.start.min(self.err.start).min(self.scanned_to)
    }

    /// The place in the log below which bytes of this stream are not needed.
    pub fn from_of(&self, stream: Stream) -> u64 {
        self.of(stream).start.min(self.scanned_to)
    }

    pub(super) fn of(&self, stream: Stream) -> OpenLine {
        match stream {
            Stream::Stdout => self.out,
            Stream::Stderr => self.err,
        }
    }

    /// The numbers, little-endian: `scanned_to`, and for each line its start and its part.
    pub fn to_bytes(&self) -> [u8; ScanPosition::BYTES] {
        let mut bytes = [0; ScanPosition::BYTES];
        let numbers = [self.scanned_to, self.out.start, self.err.start].map(u64::to_le_bytes);
        let parts = [self.out.part, self.err.part].map(|part| part as u8);
        bytes.iter_mut().zip(numbers.iter().flatten().chain(&parts)).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// None: they are not of a scan.
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

    /// How many bytes it takes.
    pub const BYTES: usize = 26;
}
