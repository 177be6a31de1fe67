//! Checksums of a log's files. Each index has those of the segment before it, the record has those of the first and the
//! last one, so every byte is covered and none is written twice.

/// The CRC-32 (IEEE) of a segment's bytes and of its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentSums {
    pub log: u32,
    pub idx: u32,
}

/// The checksums in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSums {
    /// The last segment, up to an offset and a length of its index.
    pub start: u64,
    pub end: u64,
    pub idx_len: u64,
    pub last: SegmentSums,
    /// The segment that starts at offset 0. The index after it may be dropped.
    pub head: SegmentSums,
}

impl LogSums {
    /// Returns true if there is a head segment, which is never dropped. A log with a tiny cap has none.
    pub fn has_head(&self) -> bool {
        self.head != SegmentSums::default()
    }
}

/// Continues a checksum over more bytes. The first one starts at 0.
#[inline]
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_published_test_vector_has_its_checksum_in_any_pieces() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
    }
}
