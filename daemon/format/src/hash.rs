//! The checksum of slots and of names.

/// Hashes with FNV-1a, 64 bits: no protection against malice, enough against a torn write.
#[inline]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_published_test_vectors_hash_as_published() {
        let hashes = [b"".as_slice(), b"a", b"foobar"].map(fnv1a);
        assert_eq!(hashes, [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
    }
}
