//! Any bytes as a request to edit and a file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::edit(bytes));
