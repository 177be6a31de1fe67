//! Reads a segment record by record through a large buffer, and resynchronises after damage.

use super::record::{self, EventRecord, HEADER_LEN};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The length of one read. A thousand events take two or three.
const READ_BUF_LEN: usize = 128 << 10;

/// One item of a segment.
#[derive(Debug)]
pub enum ReadStep<'a> {
    Record {
        at: u64,
        record: EventRecord<'a>,
    },
    /// Bytes that are not a record. The next record, or the end, is at `to`.
    Damage {
        from: u64,
        to: u64,
    },
}

/// Reads the records of a segment's file.
pub struct RecordReader<'f> {
    file: &'f File,
    /// The bytes that were read from offset `at` on, of which `used` are consumed.
    buf: Vec<u8>,
    at: u64,
    used: usize,
    /// The offset at which reading ends.
    end: u64,
}

impl<'f> RecordReader<'f> {
    pub fn new(file: &'f File, from: u64, end: u64) -> RecordReader<'f> {
        RecordReader { file, buf: Vec::new(), at: from, used: 0, end }
    }

    fn offset(&self) -> u64 {
        self.at + self.used as u64
    }

    /// Returns the next item, or None at the end. The next record must have a higher number than `above`, the last one.
    pub fn next(&mut self, above: u64) -> io::Result<Option<ReadStep<'_>>> {
        if self.offset() >= self.end {
            return Ok(None);
        }
        let at = self.offset();
        match self.record_len_at(0, above)? {
            Some(len) => {
                let from = self.used;
                self.used += len;
                Ok(Some(ReadStep::Record { at, record: record::decode(&self.buf[from..from + len]) }))
            }
            None => {
                let skipped = self.distance_to_next(above)?;
                self.used += skipped;
                Ok(Some(ReadStep::Damage { from: at, to: self.offset() }))
            }
        }
    }

    /// Returns the length of the record `ahead` bytes from the position, if there is a valid one.
    fn record_len_at(&mut self, ahead: usize, above: u64) -> io::Result<Option<usize>> {
        self.fill(ahead + HEADER_LEN)?;
        let Some(len) = self.buf.get(self.used + ahead..).and_then(record::claimed_len) else { return Ok(None) };
        self.fill(ahead + len)?;
        let bytes = self.buf.get(self.used + ahead..).unwrap_or_default();
        Ok(record::checked_len(bytes).filter(|_| record::seq(bytes) > above))
    }

    /// Returns the distance to the next valid record, or to the end. The length of the damaged record leads there if the
    /// damage is elsewhere in it; otherwise each newline may be the end of a record, since a text contains none.
    fn distance_to_next(&mut self, above: u64) -> io::Result<usize> {
        if let Some(len) = self.buf.get(self.used..).and_then(record::claimed_len)
            && self.record_len_at(len, above)?.is_some()
        {
            return Ok(len);
        }
        let mut ahead = 0;
        loop {
            self.fill(ahead + 1)?;
            let Some(rest) = self.buf.get(self.used + ahead..).filter(|rest| !rest.is_empty()) else {
                return Ok((self.end - self.offset()) as usize);
            };
            match memchr::memchr(b'\n', rest) {
                Some(newline) => {
                    ahead += newline + 1;
                    if self.record_len_at(ahead, above)?.is_some() {
                        return Ok(ahead);
                    }
                }
                None => ahead += rest.len(),
            }
        }
    }

    /// Buffers `wanted` bytes from the position on, or all there are.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        let have = self.buf.len() - self.used;
        if have >= wanted {
            return Ok(());
        }
        self.buf.drain(..self.used);
        self.at += self.used as u64;
        self.used = 0;
        let left = (self.end - self.at) as usize - have;
        let more = (wanted - have).max(READ_BUF_LEN).min(left);
        self.buf.resize(have + more, 0);
        let (mut got, from) = (have, self.at);
        while got < have + more {
            match self.file.read_at(&mut self.buf[got..have + more], from + got as u64) {
                // The file is shorter than expected: it ends here.
                Ok(0) => {
                    self.end = from + got as u64;
                    break;
                }
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.buf.truncate(got);
        Ok(())
    }
}
