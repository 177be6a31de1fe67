//! Output bytes as text: characters, escape sequences, budgets. Pure: bytes come as arguments.

mod ansi;
mod budget;
mod line;
mod page;

pub use ansi::{LONGEST, next, rows, sequence, strip, torn};
pub use budget::{Run, Source, fit_tokens};
pub use line::line_text;
pub use page::{LOOKAHEAD, PageEnd, Start, decode_page, incomplete_len, last_chars};
