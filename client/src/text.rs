//! Text and times as `toolctl` formats them, for the programs beside it.

pub use crate::local_time::now_ms;
pub use crate::render::text::{bytes, columns, count, cut, escape_control, last_line, pad, without_escapes};
pub use crate::render::time::{duration, unix_ms};
pub use crate::sys::{local_time_of_day, suspend};

/// Returns the start of a text, at most this long, that ends with a whole character.
pub fn cut_bytes(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
