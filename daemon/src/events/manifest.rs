//! The journal's list of its segments and of the numbers in use. With it, a segment that is gone or shorter than it was is
//! damage, not retention, and no number is used twice. The layout is stable: `docs/events.md`.

use super::disk::{can_pass, open_regular, quarantine, replace};
use super::segment::Segment;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const FILE_NAME: &str = "manifest";
const MAGIC: &[u8; 8] = b"toolman1";
/// The offset of the newest number and its checksum, which are overwritten in place.
const LAST_AT: u64 = 8;
const LAST_LEN: usize = 12;
/// The offset of the list: its checksum, the number of its entries, the entries.
const LIST_AT: usize = 24;
const ENTRY_LEN: usize = 24;
/// A longer list is damaged: a journal has at most a few hundred segments.
const MAX_ENTRIES: usize = 1 << 16;

/// A segment, as it was when the manifest was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestEntry {
    pub first: u64,
    /// The first number after it. 0 while records are appended to it.
    pub next: u64,
    /// The length of its records. 0 while records are appended to it.
    pub len: u64,
}

/// The parts of a manifest that are intact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// A number that is in use: the newest when it was written.
    pub last: Option<u64>,
    pub segments: Option<Vec<ManifestEntry>>,
}

impl Manifest {
    /// Returns the entry of a segment.
    pub fn entry(&self, first: u64) -> Option<ManifestEntry> {
        self.segments.iter().flatten().copied().find(|entry| entry.first == first)
    }

    pub fn is_whole(&self) -> bool {
        self.last.is_some() && self.segments.is_some()
    }

    /// Decodes a file.
    pub fn decode(bytes: &[u8]) -> Manifest {
        if !bytes.starts_with(MAGIC) {
            return Manifest::default();
        }
        Manifest { last: decode_last(bytes), segments: decode_list(bytes) }
    }

    pub fn encode(last: u64, segments: &[ManifestEntry]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&last_bytes(last));
        out.resize(LIST_AT + 4, 0);
        out.extend_from_slice(&(segments.len() as u32).to_le_bytes());
        for number in segments.iter().flat_map(|entry| [entry.first, entry.next, entry.len]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&out[LIST_AT + 4..]).to_le_bytes();
        out[LIST_AT..LIST_AT + 4].copy_from_slice(&sum);
        out
    }
}

fn last_bytes(last: u64) -> [u8; LAST_LEN] {
    let mut out = [0; LAST_LEN];
    out[..8].copy_from_slice(&last.to_le_bytes());
    out[8..].copy_from_slice(&crc32fast::hash(&last.to_le_bytes()).to_le_bytes());
    out
}

fn decode_last(bytes: &[u8]) -> Option<u64> {
    let slot: &[u8; LAST_LEN] = bytes.get(LAST_AT as usize..)?.first_chunk()?;
    let last = u64::from_le_bytes(*slot.first_chunk()?);
    (*slot == last_bytes(last)).then_some(last)
}

fn decode_list(bytes: &[u8]) -> Option<Vec<ManifestEntry>> {
    let count = u32::from_le_bytes(*bytes.get(LIST_AT + 4..)?.first_chunk()?) as usize;
    if count > MAX_ENTRIES {
        return None;
    }
    let list = bytes.get(LIST_AT + 4..LIST_AT + 8 + count * ENTRY_LEN)?;
    if crc32fast::hash(list).to_le_bytes() != bytes[LIST_AT..LIST_AT + 4] {
        return None;
    }
    let number = |b: &[u8], at: usize| b.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
    let entries = list[4..].chunks_exact(ENTRY_LEN);
    Some(entries.map(|e| ManifestEntry { first: number(e, 0), next: number(e, 8), len: number(e, 16) }).collect())
}

/// Reads the manifest in `dir`. Quarantines and reports a damaged one. A new journal has none.
pub fn load(dir: &Path, damage: &mut Vec<String>) -> io::Result<Manifest> {
    let path = dir.join(FILE_NAME);
    let read = open_regular(&path, File::options().read(true)).and_then(|mut file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes).map(|_| Manifest::decode(&bytes))
    });
    let (manifest, why) = match read {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Manifest::default()),
        Err(e) if can_pass(&e) => return Err(e),
        Err(e) => (Manifest::default(), e.to_string()),
        Ok(manifest) if manifest.is_whole() => return Ok(manifest),
        Ok(manifest) => (manifest, "its checksum is wrong".into()),
    };
    damage.push(format!("the list of journal segments in {} is damaged: {why}; it was written again", path.display()));
    quarantine(&path, damage);
    Ok(manifest)
}

/// The manifest of an open journal.
#[derive(Debug)]
pub struct ManifestFile {
    path: PathBuf,
    /// The number on disk.
    last: u64,
    /// The list on disk is older than the journal: the next write replaces all of it.
    stale: bool,
}

impl ManifestFile {
    pub fn new(dir: &Path) -> ManifestFile {
        ManifestFile { path: dir.join(FILE_NAME), last: 0, stale: true }
    }

    /// Replaces the file. A failure is repaired by the next write.
    pub fn store(&mut self, last: u64, segments: &[Arc<Segment>]) {
        let next = segments.iter().skip(1).map(|segment| segment.first);
        let sealed = segments.iter().zip(next);
        let mut entries: Vec<ManifestEntry> =
            sealed.map(|(segment, next)| ManifestEntry { first: segment.first, next, len: segment.len() }).collect();
        entries.extend(segments.last().map(|segment| ManifestEntry { first: segment.first, next: 0, len: 0 }));
        match replace(&self.path, &Manifest::encode(last, &entries)) {
            Ok(()) => (self.last, self.stale) = (last, false),
            Err(e) => {
                tracing::warn!(%e, path = %self.path.display(), "failed to write the list of journal segments");
                self.stale = true;
            }
        }
    }

    /// Stores the newest number, if it is not on disk yet.
    pub fn store_last(&mut self, last: u64, segments: &[Arc<Segment>]) {
        if last <= self.last && !self.stale {
            return;
        }
        let written = open_regular(&self.path, File::options().write(true))
            .and_then(|file| file.write_all_at(&last_bytes(last), LAST_AT));
        match written {
            Ok(()) if !self.stale => self.last = last,
            // Another program removed or replaced the file, or an earlier write failed.
            _ => self.store(last, segments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_reads_back_and_one_flipped_bit_is_noticed() {
        let entries = [ManifestEntry { first: 1, next: 20, len: 999 }, ManifestEntry { first: 20, next: 0, len: 0 }];
        let bytes = Manifest::encode(25, &entries);
        let whole = Manifest { last: Some(25), segments: Some(entries.to_vec()) };
        assert_eq!(Manifest::decode(&bytes), whole);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let read = Manifest::decode(&damaged);
            // Four bytes between the two parts are unused.
            assert!(!read.is_whole() || (20..24).contains(&(bit / 8)), "bit {bit}");
            assert!(read.last.is_none_or(|last| last == 25), "a part is as it was, or gone");
            assert!(read.segments.is_none_or(|list| list == entries), "a part is as it was, or gone");
        }
        for len in 0..bytes.len() {
            assert!(!Manifest::decode(&bytes[..len]).is_whole(), "cut to {len}");
        }
    }
}
