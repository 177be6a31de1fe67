//! Any bytes as shell text that is judged.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toold_fuzz::shell_text(bytes));
