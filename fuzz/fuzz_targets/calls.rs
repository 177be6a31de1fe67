//! Any bytes as the journal of the calls of a script.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::calls(bytes));
