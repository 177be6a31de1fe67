//! Decodes output bytes into text: characters, escape sequences, budgets. Pure: bytes are arguments.

mod budget;
mod collapse;
mod diff;
mod line;
mod page;
mod row;

pub use budget::{ByteRun, OutputSource, fit_tokens, omitted, token_bytes};
pub use collapse::{LineStart, Tail, TailBound, TextForm, collapse_page, show_text, tail};
pub use diff::{NO_FILE, UnifiedDiff, is_binary, unified_diff};
pub use line::line_text;
pub use page::{LOOKAHEAD_LEN, PageEnd, PageStart, decode_page, incomplete_len, last_chars};

/// Returns the end of the last whole character within the first `max` bytes.
pub fn last_char_end(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
