//! Any bytes as a file beside a record.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::record_files(bytes));
