//! Any bytes as a log and its index.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::index(bytes));
