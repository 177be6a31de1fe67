//! The C1 controls in UTF-8, `U+0080` to `U+009F`: two bytes each, and the same as ESC and a letter. xterm acts on them.

use crate::State;
use memchr::memchr_iter;

/// The first byte of every C1 control in UTF-8, and of some harmless characters.
const LEAD: u8 = 0xc2;
/// The length of a C1 control in UTF-8.
pub const C1_LEN: usize = 2;

/// Returns the state after the C1 control at the start of `bytes`. None: there is none.
#[inline]
pub fn state_after(bytes: &[u8]) -> Option<State> {
    match *bytes {
        // ESC and the byte 0x40 less is the same control in two ASCII bytes.
        [LEAD, control @ 0x80..=0x9f, ..] => Some(State::Escape.after(control - 0x40)),
        _ => None,
    }
}

/// Returns true if the bytes start with the control that ends a string.
#[inline]
pub fn ends_string(bytes: &[u8]) -> bool {
    matches!(bytes, [LEAD, 0x9c, ..])
}

/// Returns the position of the first C1 control.
#[inline]
pub fn find(bytes: &[u8]) -> Option<usize> {
    memchr_iter(LEAD, bytes).find(|at| matches!(bytes.get(at + 1), Some(0x80..=0x9f)))
}

/// Returns true if the bytes are only the first byte of what may be a C1 control.
#[inline]
pub fn is_start(bytes: &[u8]) -> bool {
    matches!(bytes, [LEAD])
}
