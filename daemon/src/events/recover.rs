//! Opens a journal after a crash, a power cut or disk damage: keeps valid records and quarantines the rest.

use super::disk::{can_pass, open_regular, quarantine_path};
use super::manifest::{self, Manifest};
use super::record::HEADER_LEN;
use super::record_reader::{ReadStep, RecordReader};
use super::segment::{Segment, SegmentStats, parse_name};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// The bytes at the journal's end that are verified at start. Older segments were complete when they were sealed, and are
/// checked as they are read: a start must not read hundreds of megabytes.
const MAX_VERIFIED_BYTES: u64 = 32 << 20;

/// Findings of opening a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Descriptions of damage that was quarantined, for a person.
    pub damage: Vec<String>,
    /// For each process (by its bits; 0 for no process) the number of its newest event with a state in the last two segments,
    /// and that state. A checkpoint that is older was about to be written when the daemon ended.
    pub states: HashMap<u64, (u64, Vec<u8>)>,
    /// The last number that the files account for. Events above it were published and are gone.
    pub last_found: u64,
}

pub(super) struct Recovered {
    pub segments: Vec<Arc<Segment>>,
    pub last: u64,
    /// A higher number than `last` that is in use.
    pub at_least: u64,
    pub opened: RecoveryReport,
}

/// Content of a segment's file.
#[derive(Default)]
struct SegmentScan {
    stats: SegmentStats,
    last: u64,
    /// The ranges of valid records, from and to.
    good: Vec<(u64, u64)>,
    /// The numbers that may be lost to damage.
    lost: Vec<super::SeqSpan>,
    /// The offset after which there are no records.
    torn_at: Option<u64>,
    states: HashMap<u64, (u64, Vec<u8>)>,
}

pub(super) fn recover(dir: &Path) -> io::Result<Recovered> {
    let mut out = Recovered { segments: Vec::new(), last: 0, at_least: 0, opened: RecoveryReport::default() };
    create_dir(dir, &mut out.opened.damage)?;
    let manifest = manifest::load(dir, &mut out.opened.damage)?;
    let mut firsts = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        firsts.extend(parse_name(name));
        if name.ends_with(".tmp") {
            let _ = std::fs::remove_file(dir.join(name));
        }
    }
    firsts.sort_unstable();
    report_removed(dir, &manifest, &firsts, &mut out);
    let unverified = unverified_count(dir, &firsts);
    for (i, first) in firsts.iter().enumerate() {
        let listed = manifest.entry(*first).filter(|entry| entry.next != 0);
        let file = SegmentFile {
            dir,
            first: *first,
            next: firsts.get(i + 1).copied(),
            listed_len: listed.map(|entry| entry.len),
            with_states: i + 2 >= firsts.len(),
        };
        out.last = out.last.max(first - 1);
        out.opened.last_found = out.opened.last_found.max(first - 1);
        if i < unverified
            && let Some(segment) = file.open_unverified()
        {
            out.segments.push(Arc::new(segment));
            continue;
        }
        match file.load(&mut out.opened.damage) {
            Ok((segment, scan)) => {
                out.last = out.last.max(scan.last);
                out.opened.last_found = out.opened.last_found.max(scan.last);
                out.segments.push(Arc::new(segment));
                out.opened.states.extend(scan.states);
            }
            Err(e) if can_pass(&e) => return Err(e),
            Err(e) => out.last = out.last.max(file.quarantine(&e, &mut out.opened.damage)),
        }
    }
    if let Some(last) = manifest.last.filter(|last| *last > out.last) {
        let (from, dir) = (out.last + 1, dir.display());
        out.opened.damage.push(format!("events {from} to {last} are not in {dir} any more"));
        out.at_least = last;
    }
    Ok(out)
}

/// Reports the listed segments that are gone.
fn report_removed(dir: &Path, manifest: &Manifest, firsts: &[u64], out: &mut Recovered) {
    for entry in manifest.segments.iter().flatten().filter(|entry| !firsts.contains(&entry.first)) {
        let path = dir.join(super::segment::file_name(entry.first));
        let end = if entry.next != 0 { entry.next - 1 } else { manifest.last.unwrap_or(0) };
        out.opened.damage.push(if end < entry.first {
            format!("{} is gone; it had no events", path.display())
        } else {
            format!("events {} to {end} are gone with {}", entry.first, path.display())
        });
        out.last = out.last.max(end).max(entry.first - 1);
    }
}

/// Returns the number of oldest segments that are not verified.
fn unverified_count(dir: &Path, firsts: &[u64]) -> usize {
    let mut left = MAX_VERIFIED_BYTES;
    for (i, first) in firsts.iter().enumerate().rev() {
        let size = std::fs::metadata(dir.join(super::segment::file_name(*first))).map_or(0, |meta| meta.len());
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => return i,
        }
    }
    0
}

/// Creates the directory. Renames and reports another file of that name.
pub(super) fn create_dir(dir: &Path, damage: &mut Vec<String>) -> io::Result<()> {
    let make = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    match make() {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::rename(dir, quarantine_path(dir))?;
            damage.push(format!("{} is not a directory and was renamed", dir.display()));
            make()
        }
        made => made,
    }
}

/// A segment's file, and the first number of the next segment.
struct SegmentFile<'a> {
    dir: &'a Path,
    first: u64,
    next: Option<u64>,
    /// Its length in the manifest, if it was complete.
    listed_len: Option<u64>,
    /// The states of its events are needed.
    with_states: bool,
}

impl SegmentFile<'_> {
    fn path(&self) -> std::path::PathBuf {
        self.dir.join(super::segment::file_name(self.first))
    }

    /// Opens the segment from its file's metadata alone, or returns None if it must be verified.
    fn open_unverified(&self) -> Option<Segment> {
        let meta = std::fs::symlink_metadata(self.path()).ok().filter(|meta| meta.is_file())?;
        if self.listed_len.is_some_and(|len| meta.len() < len) {
            return None;
        }
        let newest = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let stats = SegmentStats { len: meta.len(), newest_ms: newest.as_millis() as u64, marks: Vec::new() };
        Some(Segment::new(self.dir, self.first, stats))
    }

    fn load(&self, damage: &mut Vec<String>) -> io::Result<(Segment, SegmentScan)> {
        let path = self.path();
        let mut file = open_regular(&path, File::options().read(true).append(self.next.is_none()))?;
        let mut scan = self.scan(&file)?;
        let mut writable = self.next.is_none();
        if let (None, Some(tail)) = (self.next, scan.torn_at) {
            // A write that a crash cut short: no client has seen this event. Without space for a copy of a damaged end,
            // the file stays as it is, and the next record starts a segment.
            writable = match self.cut_end(&file, tail, damage) {
                Ok(()) => true,
                Err(e) => {
                    damage.push(format!("the end of {} is damaged: {e}", path.display()));
                    false
                }
            };
        }
        if !scan.lost.is_empty() {
            let ranges: Vec<String> = scan.lost.iter().map(|r| format!("{} to {}", r.start(), r.end())).collect();
            damage.push(format!("events {} are damaged in {}", ranges.join(", "), path.display()));
            match rewrite(&path, &file, &scan.good) {
                Ok(()) => {
                    file = open_regular(&path, File::options().read(true).append(self.next.is_none()))?;
                    scan = SegmentScan { lost: Vec::new(), ..self.scan(&file)? };
                }
                // Readers skip the damage, and the next start tries again.
                Err(e) => damage.push(format!("quarantine {}: {e}", path.display())),
            }
        }
        let segment = Segment::new(self.dir, self.first, std::mem::take(&mut scan.stats));
        Ok((if writable { segment.writable(file) } else { segment }, scan))
    }

    /// Cuts the invalid end off, and quarantines a copy if it was damaged.
    fn cut_end(&self, file: &File, tail: u64, damage: &mut Vec<String>) -> io::Result<()> {
        let path = self.path();
        tracing::warn!(path = %path.display(), at = tail, "truncated the torn end of the journal");
        if let Some(damaged) = damaged_end(file, tail)? {
            std::fs::write(quarantine_path(&path), damaged)?;
            damage.push(format!("the end of {} was damaged and is quarantined", path.display()));
        }
        file.set_len(tail)
    }

    fn scan(&self, file: &File) -> io::Result<SegmentScan> {
        let size = file.metadata()?.len();
        let mut reader = RecordReader::new(file, 0, size);
        let mut scan = SegmentScan { last: self.first - 1, ..SegmentScan::default() };
        let mut damaged = false;
        while let Some(step) = reader.next(scan.last)? {
            match step {
                ReadStep::Damage { from, to } if to >= size => {
                    scan.torn_at = Some(from);
                    break;
                }
                ReadStep::Damage { .. } => damaged = true,
                // An abandoned record, whose number was reused in the next segment.
                ReadStep::Record { record, .. } if self.next.is_some_and(|next| record.header.seq >= next) => break,
                ReadStep::Record { at, record } => {
                    let header = record.header;
                    if std::mem::take(&mut damaged) {
                        scan.lost.push(scan.last + 1..=header.seq - 1);
                    }
                    scan.last = header.seq;
                    scan.stats.add_record(header.seq, at, record.len, header.wall_ms);
                    match scan.good.last_mut() {
                        Some(run) if run.1 == at => run.1 = at + record.len as u64,
                        // The first record, or the first one after damage.
                        _ => scan.good.push((at, at + record.len as u64)),
                    }
                    if self.with_states && !record.state.is_empty() {
                        scan.states.insert(header.process, (header.seq, record.state.to_vec()));
                    }
                }
            }
        }
        // The torn end of an abandoned segment loses nothing: its number was reused.
        let is_cut = scan.torn_at.is_some() || self.listed_len.is_some_and(|len| size < len);
        if let Some(next) = self.next.filter(|next| is_cut && scan.last + 1 < *next) {
            scan.lost.push(scan.last + 1..=next - 1);
        }
        Ok(scan)
    }

    /// Quarantines the file. Returns the highest number that may have been in it.
    fn quarantine(&self, why: &io::Error, damage: &mut Vec<String>) -> u64 {
        let path = self.path();
        let size = std::fs::symlink_metadata(&path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
        damage.push(format!("the events from {} on in {} cannot be read: {why}", self.first, path.display()));
        // The maximum that fits in it: a used number is not reused.
        let most = self.first - 1 + size / HEADER_LEN as u64;
        match std::fs::rename(&path, quarantine_path(&path)) {
            Ok(()) => self.next.map_or(most, |_| self.first - 1),
            Err(e) => {
                damage.push(format!("rename {}: {e}", path.display()));
                self.next.map_or(most.max(self.first), |_| self.first - 1)
            }
        }
    }
}

/// Returns the invalid end of a segment, unless it may be a write that was cut short, which is shorter than it claims.
fn damaged_end(file: &File, tail: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; file.metadata()?.len().saturating_sub(tail) as usize];
    file.read_exact_at(&mut bytes, tail)?;
    let short = bytes.len() < HEADER_LEN || super::record::claimed_len(&bytes).is_some_and(|len| len > bytes.len());
    Ok((!short && bytes.iter().any(|byte| *byte != 0)).then_some(bytes))
}

/// Keeps the damaged file under another name and replaces it atomically by one with the valid records.
fn rewrite(path: &Path, file: &File, good: &[(u64, u64)]) -> io::Result<()> {
    let fresh = path.with_extension("tmp");
    let out = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let mut end = 0;
    for (from, to) in good {
        let mut bytes = vec![0; (to - from) as usize];
        file.read_exact_at(&mut bytes, *from)?;
        out.write_all_at(&bytes, end)?;
        end += bytes.len() as u64;
    }
    out.sync_data()?;
    match std::fs::hard_link(path, quarantine_path(path)) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        // Done now, or earlier by this process.
        _ => {}
    }
    std::fs::rename(&fresh, path)
}
