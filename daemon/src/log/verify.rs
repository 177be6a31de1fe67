//! Compares the files of a log with the checksums that its writer left in the record and in the indexes.

use super::segments::open;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use toold_format::log::{IndexHeader, LogSums, RECORD_LEN, SegmentName, SegmentSums, crc32, parse_log_name};

/// The length of a read.
const READ_LEN: usize = 64 * 1024;

/// The writer of a log: one that runs appends, and drops old segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    Ended,
    MayRun,
}

/// A file that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedFile {
    name: String,
    change: Change,
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Log,
    Index,
    /// There is no file to read. Found only while the writer may run; `check` describes it after its end.
    Gone(String),
}

impl ChangedFile {
    fn new(name: SegmentName, change: Change) -> ChangedFile {
        ChangedFile { name: name.as_str().to_owned(), change }
    }

    #[cfg(test)]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Quarantines an index: its log is still output, but the streams are unknown. Returns the description of any other
    /// file; `check` describes a quarantined index.
    pub fn quarantine(&self, dir: &Path) -> Option<String> {
        let text = match &self.change {
            Change::Index if std::fs::rename(dir.join(&self.name), dir.join(self.quarantined_name())).is_ok() => {
                return None;
            }
            Change::Index | Change::Log => format!("{} is damaged: its checksum is wrong", self.name),
            Change::Gone(text) => text.clone(),
        };
        Some(text)
    }

    /// Like `quarantine`, where `check` is not called: returns the description of an index too.
    pub fn quarantine_and_describe(&self, dir: &Path) -> String {
        self.quarantine(dir).unwrap_or_else(|| quarantined(&self.name, &self.quarantined_name()))
    }

    fn quarantined_name(&self) -> String {
        format!("{}.damaged-{}", self.name, std::process::id())
    }
}

/// Describes an index that was quarantined as `aside`.
pub fn quarantined(name: &str, aside: &str) -> String {
    format!("{name} was damaged and is quarantined as {aside}: streams are unknown")
}

/// Returns the files that were changed, or None if all files together have more than `max_bytes`. A writer that runs only
/// appends after the checksums, so what they cover does not change; a segment that it drops meanwhile is skipped.
pub fn verify(dir: &Path, sums: &LogSums, writer: Writer, max_bytes: u64) -> io::Result<Option<Vec<ChangedFile>>> {
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        starts.extend(parse_log_name(entry?.file_name().as_bytes()));
    }
    verify_segments(dir, starts, sums, writer, max_bytes)
}

/// Does the same with the starts of the log files that were listed.
pub(super) fn verify_segments(
    dir: &Path,
    mut starts: Vec<u64>,
    sums: &LogSums,
    writer: Writer,
    max_bytes: u64,
) -> io::Result<Option<Vec<ChangedFile>>> {
    if writer == Writer::MayRun && sums.has_head() && !starts.contains(&0) {
        starts.push(0);
    }
    // Later segments were written after the checksums.
    starts.retain(|start| *start <= sums.start);
    starts.sort_unstable_by(|a, b| b.cmp(a));
    let (mut changed, mut bytes, mut next) = (Vec::new(), 0, None);
    let mut buffer = Vec::new();
    for start in starts {
        let (log, idx) = (open(dir, SegmentName::log(start))?, open(dir, SegmentName::idx(start))?);
        let len = |file: &Option<File>| file.as_ref().map_or(Ok(0), |file| file.metadata().map(|m| m.len()));
        let (log_size, idx_size) = (len(&log)?, len(&idx)?);
        bytes += log_size + idx_size;
        if bytes > max_bytes {
            return Ok(None);
        }
        if writer == Writer::MayRun {
            changed.extend(gone(dir, start, sums, log.is_some(), idx.is_some())?);
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
        let (log_len, idx_len) = (log_len.min(log_size), idx_len.min(idx_size));
        let mut is_whole = |file: &Option<File>, len: u64, crc: Option<u32>| -> io::Result<bool> {
            let (Some(file), Some(crc)) = (file, crc) else { return Ok(true) };
            // Most logs are short, and a daemon starts with many.
            buffer.resize(buffer.len().max(READ_LEN.min(len as usize)), 0);
            Ok(checksum(file, len, &mut buffer)? == crc)
        };
        if !is_whole(&log, log_len, expected.map(|sums| sums.log))? {
            changed.push(ChangedFile::new(SegmentName::log(start), Change::Log));
        }
        let idx_is_whole = is_whole(&idx, idx_len, expected.map(|sums| sums.idx))?;
        if !idx_is_whole {
            changed.push(ChangedFile::new(SegmentName::idx(start), Change::Index));
        }
        // A changed index has no checksums to rely on.
        next = if expected.is_some() && idx_is_whole { previous(idx.as_ref())? } else { None };
    }
    Ok(Some(changed))
}

/// Returns the files of a segment that could not be opened, unless the running writer may have removed them: it drops any
/// segment but the head, its log first. A tail segment that is missing as a whole is found after the end, by the counts.
fn gone(dir: &Path, start: u64, sums: &LogSums, has_log: bool, has_idx: bool) -> io::Result<Vec<ChangedFile>> {
    let mut changed = Vec::new();
    let (log, idx) = (SegmentName::log(start), SegmentName::idx(start));
    let is_head = start == 0 && sums.has_head();
    if !has_log {
        let text = match is_other(dir, log)? {
            true => Some(format!("{} is not a regular file", log.as_str())),
            false => is_head.then(|| format!("{} is missing", log.as_str())),
        };
        changed.extend(text.map(|text| ChangedFile::new(log, Change::Gone(text))));
    }
    if !has_idx {
        let is_kept = is_head || std::fs::symlink_metadata(dir.join(log.as_str())).is_ok();
        let text = match is_other(dir, idx)? {
            true => Some(format!("{} is not a regular file", idx.as_str())),
            false if is_kept => Some(match quarantined_index(dir, idx)? {
                Some(aside) => quarantined(idx.as_str(), &aside),
                None => format!("{} is missing", idx.as_str()),
            }),
            false => None,
        };
        changed.extend(text.map(|text| ChangedFile::new(idx, Change::Gone(text))));
    }
    Ok(changed)
}

/// Returns true if there is something else than a regular file under this name.
fn is_other(dir: &Path, name: SegmentName) -> io::Result<bool> {
    match std::fs::symlink_metadata(dir.join(name.as_str())) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|found| !found.is_file()),
    }
}

/// Returns the name under which a daemon quarantined an index.
fn quarantined_index(dir: &Path, idx: SegmentName) -> io::Result<Option<String>> {
    for entry in std::fs::read_dir(dir)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.strip_prefix(idx.as_str()).is_some_and(|rest| rest.starts_with(".damaged-"))
        {
            return Ok(Some(name));
        }
    }
    Ok(None)
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
