//! Output bytes as text: characters, escape sequences, budgets. Pure: bytes come as arguments.

mod ansi;
mod budget;
mod line;
mod page;

pub use ansi::{MAX_ESCAPE_LEN, escape_len, next_escape, strip, strip_to_rows, unterminated_len};
pub use budget::{ByteRun, OutputSource, fit_tokens};
pub use line::line_text;
pub use page::{LOOKAHEAD_LEN, PageEnd, PageStart, decode_page, incomplete_len, last_chars};
