//! Any bytes as a file beside the journal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::journal_files(bytes));
