//! The file `writes` of a process: all named writes that its shim remembered at the exit, if the record's page has too few
//! places for them. Frozen.
//!
//! `tooldwri`, number of entries u64, FNV-1a checksum of the entries u64, then the entries in any order. An entry is the
//! fingerprint of the `write_id` (16 bytes) and the bytes done u64, with the highest bit set when the write was finished.

use crate::fnv1a;

pub const FILE_NAME: &str = "writes";
/// Named writes of one process that are remembered. The oldest is dropped first.
pub const MAX_WRITES: usize = 4096;
pub const ENTRY_LEN: usize = 24;
pub const HEADER_LEN: usize = 24;
/// The bit of the bytes done that marks a finished write.
pub const FINISHED: u64 = 1 << 63;

const MAGIC: [u8; 8] = *b"tooldwri";

/// Makes the header of a file with these entries.
pub fn header(entries: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = [0u8; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&((entries.len() / ENTRY_LEN) as u64).to_le_bytes());
    header[16..].copy_from_slice(&fnv1a(entries).to_le_bytes());
    header
}

/// Checks a file and returns its entries. None: it is damaged, or was not written to its end.
pub fn entries(file: &[u8]) -> Option<&[u8]> {
    let (header, rest) = file.split_first_chunk::<HEADER_LEN>()?;
    let (magic, count, checksum) = (&header[..8], &header[8..16], &header[16..]);
    let count = usize::try_from(u64::from_le_bytes(count.try_into().ok()?)).ok()?;
    let entries = rest.get(..count.checked_mul(ENTRY_LEN)?)?;
    (magic == MAGIC && checksum == fnv1a(entries).to_le_bytes()).then_some(entries)
}

/// Finds a write: the bytes done, and true when it was finished.
pub fn find(entries: &[u8], id: &[u8; 16]) -> Option<(u64, bool)> {
    let (entries, _) = entries.as_chunks::<ENTRY_LEN>();
    entries.iter().find(|entry| entry[..16] == id[..]).map(|entry| {
        let done = u64::from_le_bytes([
            entry[16], entry[17], entry[18], entry[19], entry[20], entry[21], entry[22], entry[23],
        ]);
        (done & !FINISHED, done & FINISHED != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_and_any_flipped_bit_or_cut_is_noticed() {
        let mut rows = Vec::new();
        for (id, done) in [([1u8; 16], 7 | FINISHED), ([2; 16], 9)] {
            rows.extend(id);
            rows.extend(done.to_le_bytes());
        }
        let file = [header(&rows).as_slice(), &rows].concat();
        let found = entries(&file).expect("it is whole");
        assert_eq!((find(found, &[1; 16]), find(found, &[2; 16])), (Some((7, true)), Some((9, false))));
        assert_eq!(find(found, &[3; 16]), None);
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(entries(&damaged), None, "bit {bit}");
        }
        for len in 0..file.len() {
            assert_eq!(entries(&file[..len]), None, "{len} bytes");
        }
    }
}
