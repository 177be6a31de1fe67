//! Any bytes as a slot of a record.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::slots(bytes));
