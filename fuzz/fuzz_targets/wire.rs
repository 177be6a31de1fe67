//! Any bytes as what a client sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::wire(bytes));
