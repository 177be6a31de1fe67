//! Secrets for tests. They are built at run time, so that this file holds none.

use toold_redact::{KnownValues, RedactConfig, Redactor};

pub const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Returns characters that look random and are the same every time.
pub fn noise(alphabet: &str, len: usize, seed: u64) -> String {
    let alphabet = alphabet.as_bytes();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(alphabet[(state >> 33) as usize % alphabet.len()])
    };
    (0..len).map(|_| next()).collect()
}

pub fn token(prefix: &str, len: usize) -> String {
    format!("{prefix}{}", noise(ALPHANUMERIC, len, len as u64))
}

/// Returns a private key of `lines` lines.
pub fn pem(lines: usize) -> String {
    let kind = ["PRI", "VATE KEY"].concat();
    let body: String = (0..lines).map(|n| noise(ALPHANUMERIC, 64, n as u64 + 7) + "\n").collect();
    format!("-----BEGIN {kind}-----\n{body}-----END {kind}-----")
}

pub fn redactor() -> Redactor {
    Redactor::new(RedactConfig::default())
}

pub fn known(values: &[(&str, &str)]) -> KnownValues {
    let mut known = KnownValues::new();
    values.iter().for_each(|(label, value)| assert!(known.insert(label, value.as_bytes())));
    known
}

/// Finds a part of a secret in a text, of `len` bytes. Returns it for the message.
pub fn leak<'a>(text: &str, secret: &'a str, len: usize) -> Option<&'a str> {
    let parts = (0..=secret.len() - len).filter_map(|at| secret.get(at..at + len));
    parts.into_iter().find(|part| !part.contains('\n') && text.contains(part))
}
