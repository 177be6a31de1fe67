//! Any bytes as the frames of a shim's connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::frames(bytes));
