//! Any bytes as a rule file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::rule_files(bytes));
