//! Terminal escape sequences: one grammar (`State`), and output without them (`strip`). Pure: bytes in, bytes out.
//!
//! `State` follows a terminal byte by byte, as `vte` and xterm do in UTF-8 mode: bytes from 0x80 on are characters and never
//! C1 controls. Two readers need the same grammar with another policy for what is malformed:
//!
//! - A reader of text (`State::text_step`, `escape_len`, `strip`) must not lose output, so a sequence ends before a control
//!   character or a character that cannot be part of it, and a string that has no end is text.
//! - A terminal executes control characters inside a sequence and continues it (`State::after`).

mod state;
mod strip;

pub use state::{State, TextStep};
pub use strip::{
    MAX_ESCAPE_LEN, escape_len, next_escape, starts_escape, strip, strip_complete, strip_to_rows, unterminated_len,
};

/// The first byte of every escape sequence.
pub const ESC: u8 = 0x1b;
