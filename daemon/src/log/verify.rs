//! Compares the files of a log with the checksums that its writer left in the record and in the indexes.

use super::segments::open;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use toold_format::log::{IndexHeader, LogSums, RECORD_LEN, SegmentName, SegmentSums, crc32, parse_log_name};

/// The length of a read.
const READ_LEN: usize = 64 * 1024;

/// A file that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedFile {
    name: String,
    is_index: bool,
}

impl ChangedFile {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Quarantines an index: its log is still output, but the streams are unknown. Returns the description of any other
    /// file; `check` describes a quarantined index.
    pub fn quarantine(&self, dir: &Path) -> Option<String> {
        let from = dir.join(&self.name);
        let to = dir.join(format!("{}.damaged-{}", self.name, std::process::id()));
        if self.is_index && std::fs::rename(&from, to).is_ok() {
            return None;
        }
        Some(format!("{} is damaged: its checksum is wrong", self.name))
    }
}

/// Returns the files that were changed, or None if all files together have more than `max_bytes`.
pub fn verify(dir: &Path, sums: &LogSums, max_bytes: u64) -> io::Result<Option<Vec<ChangedFile>>> {
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        starts.extend(parse_log_name(entry?.file_name().as_bytes()));
    }
    // Later segments were written after the checksums.
    starts.retain(|start| *start <= sums.start);
    starts.sort_unstable_by(|a, b| b.cmp(a));
    let (mut changed, mut bytes, mut next) = (Vec::new(), 0, None);
    let mut buffer = vec![0; READ_LEN];
    for start in starts {
        let (log, idx) = (open(dir, SegmentName::log(start))?, open(dir, SegmentName::idx(start))?);
        let len = |file: &Option<File>| file.as_ref().map_or(Ok(0), |file| file.metadata().map(|m| m.len()));
        bytes += len(&log)? + len(&idx)?;
        if bytes > max_bytes {
            return Ok(None);
        }
        let is_last = start == sums.start;
        let expected = if is_last {
            Some(sums.last)
        } else if start == 0 {
            Some(sums.head)
        } else {
            next
        };
        let (log_len, idx_len) =
            if is_last { (sums.end.saturating_sub(start), sums.idx_len) } else { (u64::MAX, u64::MAX) };
        let mut is_whole = |file: &Option<File>, len: u64, crc: Option<u32>| -> io::Result<bool> {
            let (Some(file), Some(crc)) = (file, crc) else { return Ok(true) };
            Ok(checksum(file, len, &mut buffer)? == crc)
        };
        if !is_whole(&log, log_len, expected.map(|sums| sums.log))? {
            changed.push(ChangedFile { name: SegmentName::log(start).as_str().to_owned(), is_index: false });
        }
        let idx_is_whole = is_whole(&idx, idx_len, expected.map(|sums| sums.idx))?;
        if !idx_is_whole {
            changed.push(ChangedFile { name: SegmentName::idx(start).as_str().to_owned(), is_index: true });
        }
        // A changed index has no checksums to rely on.
        next = if expected.is_some() && idx_is_whole { previous(idx.as_ref())? } else { None };
    }
    Ok(Some(changed))
}

fn checksum(mut file: &File, len: u64, buffer: &mut [u8]) -> io::Result<u32> {
    let (mut crc, mut left) = (0, len);
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match file.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(n) => {
                crc = crc32(crc, &buffer[..n]);
                left -= n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(crc)
}

/// Returns the checksums of the segment before the one of this index.
fn previous(idx: Option<&File>) -> io::Result<Option<SegmentSums>> {
    use std::os::unix::fs::FileExt;
    let (Some(idx), mut header) = (idx, [0; RECORD_LEN]) else { return Ok(None) };
    match idx.read_exact_at(&mut header, 0) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| IndexHeader::decode(&header).map(|header| header.previous)),
    }
}
