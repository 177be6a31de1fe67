//! Checks the log of a process that has ended, by file sizes and the ends of its indexes.

use super::segments::{Index, open};
use super::verify::{Writer, quarantined as quarantined_index, verify_segments};
use std::collections::BTreeMap;
use std::fs::FileType;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use toold_format::Stream;
use toold_format::log::{Counts, IndexRecord, LogSums, MAX_SPAN_LEN, SegmentName, parse_idx_name, parse_log_name};

/// Returns descriptions of missing or damaged parts, or nothing. Reads no output, so bytes that were changed in place go
/// unnoticed. The process must have ended: a growing log is always shorter than its counts. Fails if the log cannot be
/// read.
pub fn check(dir: &Path, counts: &Counts) -> io::Result<Vec<String>> {
    SegmentList::list(dir)?.check(dir, counts)
}

/// Also compares the files with their checksums. An index that was changed is quarantined: it would move output between
/// the streams.
pub fn check_whole(dir: &Path, counts: &Counts, sums: &LogSums) -> io::Result<Vec<String>> {
    let files = SegmentList::list(dir)?;
    let starts = files.0.iter().filter(|(_, files)| files.log.is_some()).map(|(start, _)| *start).collect();
    let changed = verify_segments(dir, starts, sums, Writer::Ended, u64::MAX)?.unwrap_or_default();
    if changed.is_empty() {
        return files.check(dir, counts);
    }
    let damage = changed.iter().filter_map(|file| file.quarantine(dir)).collect::<Vec<_>>();
    Ok(damage.into_iter().chain(check(dir, counts)?).collect())
}

/// The files of a segment in the directory.
#[derive(Default)]
struct SegmentFiles {
    log: Option<FileType>,
    idx: Option<FileType>,
    /// The name of an index that was quarantined.
    quarantined: Option<String>,
}

/// The bytes of a segment, with the first and last record of its index.
struct SegmentRange {
    start: u64,
    end: u64,
    first: Option<IndexRecord>,
    last: Option<IndexRecord>,
}

struct SegmentList(BTreeMap<u64, SegmentFiles>);

impl SegmentList {
    fn list(dir: &Path) -> io::Result<SegmentList> {
        let mut segments: BTreeMap<u64, SegmentFiles> = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(start) = parse_log_name(name.as_bytes()) {
                segments.entry(start).or_default().log = Some(entry.file_type()?);
            } else if let Some(start) = parse_idx_name(name.as_bytes()) {
                segments.entry(start).or_default().idx = Some(entry.file_type()?);
            } else if let Some((idx, _)) = name.to_str().and_then(|name| name.split_once(".damaged-"))
                && let Some(start) = parse_idx_name(idx.as_bytes())
            {
                segments.entry(start).or_default().quarantined = name.to_str().map(str::to_owned);
            }
        }
        Ok(SegmentList(segments))
    }

    fn check(&self, dir: &Path, counts: &Counts) -> io::Result<Vec<String>> {
        let (mut damage, mut ranges) = (Vec::new(), Vec::new());
        for (&start, files) in self.0.iter().filter(|(start, _)| **start < counts.end) {
            let (log, idx) = (SegmentName::log(start), SegmentName::idx(start));
            for (name, kind) in [(log, files.log), (idx, files.idx)] {
                if kind.is_some_and(|kind| !kind.is_file()) {
                    damage.push(format!("{} is not a regular file", name.as_str()));
                }
            }
            let len = open(dir, log)?.map_or(Ok(0), |file| file.metadata().map(|m| m.len()))?;
            let end = start.saturating_add(len).min(counts.end);
            if end > start {
                let (range, index_damage) = check_index(dir, start, end, files.quarantined.as_deref())?;
                // An index that is not a regular file was reported above.
                damage.extend(index_damage.filter(|_| files.idx.is_none_or(|kind| kind.is_file())));
                ranges.push(range);
            }
        }
        damage.extend(uncovered_bytes(&ranges));
        damage.extend(stream_mismatch(&ranges, counts));
        let kept: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let expected = counts.end.saturating_sub(counts.dropped).saturating_sub(counts.unstored);
        if kept < expected {
            damage.push(self.missing(kept, expected));
        }
        Ok(damage)
    }

    /// Describes missing bytes. An index without a log file names the missing one; alone it is not damage, since a crash may
    /// leave one.
    fn missing(&self, kept: u64, expected: u64) -> String {
        let gone = self.0.iter().filter(|(_, files)| files.log.is_none()).map(|(start, _)| SegmentName::log(*start));
        let gone: Vec<String> = gone.map(|name| format!("{} is missing", name.as_str())).collect();
        let short = format!("{} of {expected} bytes of output are gone", expected - kept);
        if gone.is_empty() { format!("a log file is short: {short}") } else { format!("{}: {short}", gone.join(", ")) }
    }
}

/// Returns the range of a segment, and the damage of its index.
fn check_index(
    dir: &Path,
    start: u64,
    end: u64,
    quarantined: Option<&str>,
) -> io::Result<(SegmentRange, Option<String>)> {
    let name = SegmentName::idx(start);
    let file = open(dir, name)?;
    let there = file.is_some();
    let index = Index::new(file, start, end)?;
    let first = index.get(0)?.filter(|record| record.start == start && index.len() > 0);
    let last = index.len().checked_sub(1).map_or(Ok(None), |i| index.get(i))?;
    let damage = match (there, index.header, first) {
        (false, ..) => Some(match quarantined {
            Some(aside) => quarantined_index(name.as_str(), aside),
            None => format!("{} is missing", name.as_str()),
        }),
        (true, None, _) => Some(format!("{} is damaged: it has no header", name.as_str())),
        (true, Some(_), None) => Some(format!("{} is damaged: it has no first record", name.as_str())),
        (true, Some(_), Some(_)) => None,
    };
    Ok((SegmentRange { start, end, first, last: last.filter(|_| first.is_some()) }, damage))
}

/// Reports indexes whose last record is followed by more bytes than a record covers: later records are missing.
fn uncovered_bytes(ranges: &[SegmentRange]) -> impl Iterator<Item = String> {
    let short = ranges.iter().filter(|s| s.last.is_some_and(|last| s.end - last.start > MAX_SPAN_LEN));
    short.map(|s| format!("{} is short", SegmentName::idx(s.start).as_str()))
}

/// Reports indexes whose last records are missing: after the last record only its stream wrote, so the line counts of the
/// other stream must be those at the end.
fn stream_mismatch(ranges: &[SegmentRange], counts: &Counts) -> Vec<String> {
    let mut damage = Vec::new();
    for (i, range) in ranges.iter().enumerate() {
        let after = match ranges.get(i + 1) {
            Some(next) if next.start == range.end => next.first.map(LineCounts::before),
            // The counts after a gap are unknown.
            Some(_) => None,
            None => (range.end == counts.end).then(|| LineCounts::at_end(counts)),
        };
        let (Some(last), Some(after)) = (range.last, after) else { continue };
        let covered = range.end - last.start <= MAX_SPAN_LEN;
        if covered && !LineCounts::before(last).is_consistent_with(&after, last.stream) {
            damage.push(format!("{} is short", SegmentName::idx(range.start).as_str()));
        }
    }
    damage
}

/// The newlines of both streams, and whether their last lines are open.
#[derive(Clone, Copy)]
struct LineCounts {
    out: (u64, bool),
    err: (u64, bool),
}

impl LineCounts {
    fn before(record: IndexRecord) -> LineCounts {
        LineCounts { out: (record.out_newlines, record.out_open), err: (record.err_newlines, record.err_open) }
    }

    fn at_end(counts: &Counts) -> LineCounts {
        LineCounts { out: (counts.out_newlines, counts.out_open), err: (counts.err_newlines, counts.err_open) }
    }

    /// Returns true if possibly only `stream` wrote between the two.
    fn is_consistent_with(&self, after: &LineCounts, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => self.err == after.err && self.out.0 <= after.out.0,
            Stream::Stderr => self.out == after.out && self.err.0 <= after.err.0,
        }
    }
}
