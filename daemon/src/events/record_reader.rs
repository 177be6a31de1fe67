//! Reads a segment record by record, in big bufs, and finds the way again behind damage.

use super::record::{self, EventRecord, HEADER_LEN};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// One read. Big enough that a thousand events are two or three of them.
const READ_BUF_LEN: usize = 128 << 10;

/// What stands at a place of a segment.
#[derive(Debug)]
pub enum ReadStep<'a> {
    Record {
        at: u64,
        record: EventRecord<'a>,
    },
    /// No record fits here; the next one that does, or the end, is at `to`.
    Damage {
        from: u64,
        to: u64,
    },
}

/// A place in a segment's file.
pub struct RecordReader<'f> {
    file: &'f File,
    /// The bytes from `at` on that have been read, of which `used` are done with.
    buf: Vec<u8>,
    at: u64,
    used: usize,
    /// Nothing from here on is looked at.
    end: u64,
}

impl<'f> RecordReader<'f> {
    pub fn new(file: &'f File, from: u64, end: u64) -> RecordReader<'f> {
        RecordReader { file, buf: Vec::new(), at: from, used: 0, end }
    }

    fn offset(&self) -> u64 {
        self.at + self.used as u64
    }

    /// What is next, or none at the end. `above`: the number of the last good record, which the next one exceeds.
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

    /// The length of the record `ahead` bytes from here, if one is there and is in order.
    fn record_len_at(&mut self, ahead: usize, above: u64) -> io::Result<Option<usize>> {
        self.fill(ahead + HEADER_LEN)?;
        let Some(len) = self.buf.get(self.used + ahead..).and_then(record::claimed_len) else { return Ok(None) };
        self.fill(ahead + len)?;
        let bytes = self.buf.get(self.used + ahead..).unwrap_or_default();
        Ok(record::checked_len(bytes).filter(|_| record::seq(bytes) > above))
    }

    /// How far the next good record is, or the end. Its length may tell, where the damage is elsewhere in the record;
    /// else each newline may be the end of a record, and a text has none inside.
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

    /// Has `wanted` bytes from here on in memory, or all there are.
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
                // Shorter than it was said to be: the end is here.
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
