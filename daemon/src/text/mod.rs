//! Decodes output bytes into text: characters, escape sequences, budgets. Pure: bytes are arguments.

mod budget;
mod line;
mod page;

pub use budget::{ByteRun, OutputSource, fit_tokens};
pub use line::line_text;
pub use page::{LOOKAHEAD_LEN, PageEnd, PageStart, decode_page, incomplete_len, last_chars};
