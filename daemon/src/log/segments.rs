//! The files of a log segment: its bytes, and its index by offset and by line. Damage makes the segment shorter.

use super::cached;
use nix::errno::Errno;
use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io;
use std::path::Path;
use toold_format::Stream;
use toold_format::log::{IndexHeader, IndexRecord, RECORD_LEN, SegmentName};

/// The number of records read at once: a 4 KiB block.
const RECORDS_PER_BLOCK: usize = 128;

/// A segment by name. Its files are opened on demand: a log may have many, a page needs one.
#[derive(Debug)]
pub struct SegmentSlot {
    pub start: u64,
    segment: OnceCell<Option<SegmentBytes>>,
    index: OnceCell<Index>,
    /// The number of its newlines, if it was counted.
    pub newlines: OnceCell<u64>,
}

impl SegmentSlot {
    pub fn named(start: u64) -> SegmentSlot {
        SegmentSlot { start, segment: OnceCell::new(), index: OnceCell::new(), newlines: OnceCell::new() }
    }

    /// Returns a segment in unnamed files, for fuzzing.
    pub fn of_files(start: u64, log: File, idx: Option<File>) -> io::Result<SegmentSlot> {
        let segment = SegmentBytes::new(start, log)?;
        let index = Index::new(idx, start, segment.end)?;
        Ok(SegmentSlot { start, segment: Some(segment).into(), index: index.into(), newlines: OnceCell::new() })
    }

    /// Opens the bytes. Returns None if the segment was dropped since it was listed, or is empty.
    pub fn segment(&self, dir: &Path) -> io::Result<Option<&SegmentBytes>> {
        if self.segment.get().is_none() {
            let segment =
                open(dir, SegmentName::log(self.start))?.map(|log| SegmentBytes::new(self.start, log)).transpose()?;
            let _ = self.segment.set(segment);
        }
        Ok(self.segment.get().and_then(Option::as_ref).filter(|segment| segment.start < segment.end))
    }

    pub fn index(&self, dir: &Path) -> io::Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let end = self.segment(dir)?.map_or(self.start, |segment| segment.end);
        let index = Index::new(open(dir, SegmentName::idx(self.start))?, self.start, end)?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Returns the number of bytes read from its files.
    #[cfg(test)]
    pub fn bytes_read(&self) -> u64 {
        let log = self.segment.get().and_then(Option::as_ref).map_or(0, |segment| segment.bytes_read.get());
        log + self.index.get().map_or(0, |index| index.bytes_read.get())
    }
}

/// Opens a segment's file. A link, a directory or a pipe in its place counts as missing: it would yield bytes that are not
/// the program's, or block.
pub(super) fn open(dir: &Path, name: SegmentName) -> io::Result<Option<File>> {
    let file = match cached::open(&dir.join(name.as_str())) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A link or a socket.
        Err(e) if [Errno::ELOOP, Errno::ENXIO].iter().any(|no| e.raw_os_error() == Some(*no as i32)) => {
            return Ok(None);
        }
        opened => opened?,
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// A segment's bytes. The open file stays readable when the segment is dropped.
#[derive(Debug)]
pub struct SegmentBytes {
    pub start: u64,
    /// The first offset after it.
    pub end: u64,
    log: File,
    /// Bytes read, so that a test can prove the cost of a page.
    bytes_read: Cell<u64>,
}

impl SegmentBytes {
    pub fn new(start: u64, log: File) -> io::Result<SegmentBytes> {
        let len = log.metadata()?.len();
        Ok(SegmentBytes { start, end: start.saturating_add(len), log, bytes_read: Cell::new(0) })
    }

    /// Fills `buf` from offset `at` on; partly if the file became shorter.
    pub fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match cached::read_at(&self.log, rest, at - self.start + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.bytes_read.set(self.bytes_read.get() + done as u64);
        Ok(done)
    }
}

/// The valid index records of a segment: those about bytes it has. Empty without a valid index file.
#[derive(Debug)]
pub struct Index {
    file: Option<File>,
    pub header: Option<IndexHeader>,
    len: usize,
    block: RefCell<(usize, Vec<u8>)>,
    /// The result of the last search; the next one is usually adjacent.
    hint: Cell<usize>,
    /// The first record is that of the segment's start. Kept, because the look needs the first block.
    covers_start: OnceCell<bool>,
    bytes_read: Cell<u64>,
}

impl Index {
    pub fn new(file: Option<File>, start: u64, end: u64) -> io::Result<Index> {
        let size = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|m| m.len()))?;
        let records = usize::try_from(size / RECORD_LEN as u64).unwrap_or(usize::MAX).saturating_sub(1);
        let block = RefCell::new((usize::MAX, Vec::new()));
        let mut index = Index {
            file,
            header: None,
            len: records,
            block,
            hint: Cell::new(0),
            covers_start: OnceCell::new(),
            bytes_read: Cell::new(0),
        };
        index.header = index.read_header()?.filter(|header| header.start == start);
        if index.header.is_none() {
            index.len = 0;
        }
        // Torn, zeroed or early records are at the end, so the valid ones are a prefix.
        index.len = index.partition(|r| r.is_some_and(|r| (start..end).contains(&r.start)))?;
        Ok(index)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the records start where the segment does.
    pub fn covers_start(&self, start: u64) -> io::Result<bool> {
        if let Some(covers) = self.covers_start.get() {
            return Ok(*covers);
        }
        let covers = self.get(0)?.is_some_and(|record| record.start == start);
        Ok(*self.covers_start.get_or_init(|| covers))
    }

    pub fn get(&self, i: usize) -> io::Result<Option<IndexRecord>> {
        let (number, slot) = (i / RECORDS_PER_BLOCK, i % RECORDS_PER_BLOCK * RECORD_LEN);
        let mut block = self.block.borrow_mut();
        if block.0 != number {
            *block = (number, self.read_block(number)?);
        }
        Ok(block.1.get(slot..slot + RECORD_LEN).and_then(|raw| raw.try_into().ok()).and_then(IndexRecord::decode))
    }

    /// Returns the number of records that start at `at` or before.
    pub fn until(&self, at: u64) -> io::Result<usize> {
        let hint = self.hint.get();
        for n in [hint, hint + 1, hint.saturating_sub(1)] {
            if n > 0 && n <= self.len && self.starts_by(n - 1, at)? && (n == self.len || !self.starts_by(n, at)?) {
                self.hint.set(n);
                return Ok(n);
            }
        }
        let n = self.partition(|r| r.is_some_and(|r| r.start <= at))?;
        self.hint.set(n);
        Ok(n)
    }

    /// Returns the number of records with fewer than `newlines` newlines before them.
    pub fn until_newlines(&self, stream: Option<Stream>, newlines: u64) -> io::Result<usize> {
        self.partition(|r| r.is_some_and(|r| r.newlines(stream) < newlines))
    }

    fn starts_by(&self, i: usize, at: u64) -> io::Result<bool> {
        Ok(self.get(i)?.is_some_and(|r| r.start <= at))
    }

    fn partition(&self, before: impl Fn(Option<IndexRecord>) -> bool) -> io::Result<usize> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.get(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn read_header(&self) -> io::Result<Option<IndexHeader>> {
        let mut raw = [0; RECORD_LEN];
        let n = self.read_at(0, &mut raw)?;
        Ok(if n == RECORD_LEN { IndexHeader::decode(&raw) } else { None })
    }

    fn read_block(&self, number: usize) -> io::Result<Vec<u8>> {
        let first = number * RECORDS_PER_BLOCK;
        let mut raw = vec![0; RECORDS_PER_BLOCK.min(self.len.saturating_sub(first)) * RECORD_LEN];
        let n = self.read_at(((first + 1) * RECORD_LEN) as u64, &mut raw)?;
        raw.truncate(n);
        Ok(raw)
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &self.file else { return Ok(0) };
        loop {
            match cached::read_at(file, buf, at) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(n) => {
                    if n < buf.len() {
                        // The rest may be on the disk.
                        cached::check_may_wait()?;
                    }
                    self.bytes_read.set(self.bytes_read.get() + n as u64);
                    return Ok(n);
                }
                Err(e) => return Err(e),
            }
        }
    }
}
