//! Any bytes as a patch and the file that it changes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::patch(bytes));
