//! Bytes that are overwritten when they are dropped.

/// The bytes of a secret. It has no `Debug` and no `Clone`, so that no copy is made by accident.
pub(crate) struct Wiped(Vec<u8>);

impl Wiped {
    pub(crate) fn new(bytes: Vec<u8>) -> Wiped {
        Wiped(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites bytes. `black_box` keeps the compiler from removing the writes as dead ones.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::wipe;

    #[test]
    fn wiping_overwrites_every_byte() {
        let mut bytes = b"a value".to_vec();
        wipe(&mut bytes);
        assert_eq!(bytes, [0; 7]);
    }
}
