//! Terminal escape sequences: one grammar (`State`), and output without them (`strip`). Pure: bytes in, bytes out.
//!
//! `State` follows a terminal byte by byte, as `vte` and xterm do in UTF-8 mode: bytes from 0x80 on are characters and never
//! C1 controls. Two readers need the same grammar with another policy for what is malformed:
//!
//! - A reader of text (`State::text_step`, `escape_len`, `strip`) must not lose output, so a sequence ends before a control
//!   character or a character that cannot be part of it, and a string that has no end is text. It takes the C1 controls
//!   in UTF-8 (`U+009B` for `ESC [`) for what they are to xterm.
//! - A terminal executes control characters inside a sequence and continues it (`State::after`).

mod c1;
mod dec_graphics;
mod state;
mod strip;

pub use dec_graphics::DecGraphics;
pub use state::{State, TextStep, safe_start};
pub use strip::{
    MAX_ESCAPE_LEN, escape_len, next_escape, next_escape_start, starts_escape, strip, strip_complete, strip_to_rows,
    unterminated_len,
};

/// The first byte of every escape sequence.
pub const ESC: u8 = 0x1b;
