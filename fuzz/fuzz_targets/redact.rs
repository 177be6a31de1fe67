//! Any bytes as a known value and a text that is redacted.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::redact(bytes));
