//! Entry points for fuzzing: reads arbitrary bytes as each of the checksummed files beside the journal.

use super::consumers;
use super::manifest::{Manifest, ManifestEntry};

/// Reads the bytes as a manifest and as the files of consumers. Panics only on a bug.
pub fn files(bytes: &[u8]) {
    manifest(bytes);
    consumers::fuzz::files(bytes);
}

/// Reads a manifest, as it is and as one that was written with numbers from the bytes.
fn manifest(bytes: &[u8]) {
    let read = Manifest::decode(bytes);
    if let (Some(last), Some(segments)) = (read.last, &read.segments) {
        assert_eq!(Manifest::decode(&Manifest::encode(last, segments)), read);
    }
    let (numbers, _) = bytes.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|raw| u64::from_le_bytes(*raw)).collect();
    let Some((last, rest)) = numbers.split_first() else { return };
    let (entries, _) = rest.as_chunks::<3>();
    let entries: Vec<ManifestEntry> =
        entries.iter().map(|[first, next, len]| ManifestEntry { first: *first, next: *next, len: *len }).collect();
    let mut file = Manifest::encode(*last, &entries);
    let whole = Manifest { last: Some(*last), segments: Some(entries) };
    assert_eq!(Manifest::decode(&file), whole);
    flip(&mut file, *last);
    let damaged = Manifest::decode(&file);
    assert!(damaged.last.is_none() || damaged.last == whole.last, "a part is as it was, or gone");
    assert!(damaged.segments.is_none() || damaged.segments == whole.segments, "a part is as it was, or gone");
}

/// Flips the bit that `number` selects.
pub(super) fn flip(file: &mut [u8], number: u64) {
    let bits = file.len() as u64 * 8;
    if let Some(bit) = number.checked_rem(bits) {
        file[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}
