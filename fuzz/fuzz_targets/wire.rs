//! Any bytes as the messages of a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::wire(bytes));
