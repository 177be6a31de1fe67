//! Any bytes as what the other end of a shim's connection sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::frames(bytes));
