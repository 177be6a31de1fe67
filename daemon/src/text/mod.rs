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
