//! The grammar of escape sequences as a state machine over bytes.

use crate::ESC;

/// Cancels a sequence and is part of it.
const CAN: u8 = 0x18;
/// Does the same.
const SUB: u8 = 0x1a;
const BEL: u8 = 0x07;

/// The state of a terminal's parser after the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Between two characters or sequences.
    #[default]
    Ground,
    /// Inside a character that lacks this many bytes.
    Char(u8),
    /// After an ESC.
    Escape,
    /// Inside a sequence like `ESC ( 0`, before its last byte.
    EscapeIntermediate,
    /// Inside `ESC [ …`.
    Csi,
    /// Inside `ESC ] …`: a title or a link. BEL ends it, or ESC and a backslash.
    Osc,
    /// Inside another string (DCS, SOS, PM, APC). Only ESC and a backslash end it.
    String,
}

/// The effect of a byte on a sequence, for a reader that must not lose text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStep {
    /// The byte is part of the sequence, which continues.
    Continues(State),
    /// The byte is the last one of the sequence.
    Ends,
    /// The sequence ended before this byte, which is text or starts another sequence.
    EndsBefore,
}

impl State {
    /// Returns the state after one more byte, as a terminal sees it.
    // Always: with several callers it is not, and a page takes a sixth more instructions.
    #[inline(always)]
    pub fn after(self, byte: u8) -> State {
        match (self, byte) {
            (State::Char(1), 0x80..=0xbf) => State::Ground,
            (State::Char(n), 0x80..=0xbf) => State::Char(n - 1),
            (State::Ground | State::Char(_), 0xc2..=0xdf) => State::Char(1),
            (State::Ground | State::Char(_), 0xe0..=0xef) => State::Char(2),
            (State::Ground | State::Char(_), 0xf0..=0xf4) => State::Char(3),
            (_, ESC) => State::Escape,
            (State::Ground | State::Char(_), _) | (_, CAN | SUB) => State::Ground,
            (State::Escape, b'[') => State::Csi,
            (State::Escape, b']') => State::Osc,
            (State::Escape, b'P' | b'X' | b'^' | b'_') => State::String,
            (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => State::EscapeIntermediate,
            (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) => State::Ground,
            (State::Csi, 0x40..=0x7e) | (State::Osc, BEL) => State::Ground,
            // The terminal executes a control character and ignores any other byte; the sequence continues.
            (State::Escape | State::EscapeIntermediate | State::Csi | State::Osc | State::String, _) => self,
        }
    }

    /// Returns the state after more bytes.
    pub fn after_all(self, bytes: &[u8]) -> State {
        bytes.iter().fold(self, |state, byte| state.after(*byte))
    }

    /// Returns true if the state is inside the text of a string: a title, a link, an image.
    #[inline]
    pub fn is_string(self) -> bool {
        matches!(self, State::Osc | State::String)
    }

    /// Advances a sequence by one byte, for a reader that must not lose text. Only for states inside a sequence.
    #[inline]
    pub fn text_step(self, byte: u8) -> TextStep {
        let is_text = match self {
            // A title or link has no newline in it: this one was never ended, and output follows.
            State::Osc | State::String => matches!(byte, b'\n' | ESC),
            // Outside strings a sequence is printable ASCII: one that meets a character was torn off there. A terminal acts
            // on a control character, and a newline must not be lost.
            _ => !matches!(byte, 0x20..=0x7e | CAN | SUB),
        };
        if is_text {
            return TextStep::EndsBefore;
        }
        match self.after(byte) {
            State::Ground => TextStep::Ends,
            next => TextStep::Continues(next),
        }
    }
}

/// A safe start is searched in this many bytes.
const SAFE_START_SEARCH_LEN: usize = 4096;

/// Returns the first safe start in output whose start is missing: after a newline or at an escape.
pub fn safe_start(bytes: &[u8]) -> usize {
    let near = &bytes[..bytes.len().min(SAFE_START_SEARCH_LEN)];
    let safe = near.iter().position(|byte| matches!(*byte, b'\n' | ESC));
    safe.map_or(0, |at| if near[at] == b'\n' { at + 1 } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vte::{Parser, Perform};

    /// Records if the probe was printed.
    struct Probe(bool);

    impl Perform for Probe {
        fn print(&mut self, c: char) {
            self.0 = c == 'A';
        }
    }

    /// Returns true if `vte` is outside any sequence after the bytes: then it prints an `A`.
    fn vte_prints_after(bytes: &[u8]) -> bool {
        let (mut parser, mut probe) = (Parser::new(), Probe(false));
        parser.advance(&mut probe, bytes);
        probe.0 = false;
        parser.advance(&mut probe, b"A");
        probe.0
    }

    fn byte() -> impl Strategy<Value = u8> {
        let special = prop::sample::select(b"\x1b\x1b\x1b[]PX^_\\(?;0m \x07\x18\x1a\n\x7f".as_slice());
        // `vte` ends a DCS at the byte 0x9c, also inside a character. Here it is never a control.
        prop_oneof![2 => special, 1 => any::<u8>().prop_filter("the C1 terminator", |byte| *byte != 0x9c)]
    }

    #[test]
    fn every_kind_of_sequence_ends_where_a_terminal_ends_it() {
        let cases: [(&[u8], State); 16] = [
            (b"a", State::Ground),
            ("é".as_bytes(), State::Ground),
            (b"\xe2\x82", State::Char(1)),
            (b"\xf0\x9f\x1b", State::Escape),
            (b"\x1b7", State::Ground),
            (b"\x1b(", State::EscapeIntermediate),
            (b"\x1b(0", State::Ground),
            (b"\x1b[1;3", State::Csi),
            (b"\x1b[1\n\x80;31", State::Csi),
            (b"\x1b[1;31m", State::Ground),
            (b"\x1b]0;t\xc2\x9c", State::Osc),
            (b"\x1b]0;t\x07", State::Ground),
            (b"\x1bPq\x07", State::String),
            (b"\x1bPq\x1b\\", State::Ground),
            (b"\x1b]0;t\x1b[", State::Csi),
            (b"\x1b_x\x18", State::Ground),
        ];
        for (bytes, state) in cases {
            assert_eq!(State::default().after_all(bytes), state, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn text_inside_a_sequence_ends_it() {
        let step = |bytes: &[u8], byte| State::Ground.after_all(bytes).text_step(byte);
        let steps = [
            step(b"\x1b[3", b'\n'),
            step(b"\x1b[3", 0xc3),
            step(b"\x1b[3", ESC),
            step(b"\x1b[3", b'm'),
            step(b"\x1b[3", 0x18),
            step(b"\x1b]0;", b'\n'),
            step(b"\x1b]0;", ESC),
            step(b"\x1b]0;", 0xc3),
            step(b"\x1b]0;", b'\x07'),
            step(b"\x1b(", b' '),
        ];
        let expected = [
            TextStep::EndsBefore,
            TextStep::EndsBefore,
            TextStep::EndsBefore,
            TextStep::Ends,
            TextStep::Ends,
            TextStep::EndsBefore,
            TextStep::EndsBefore,
            TextStep::Continues(State::Osc),
            TextStep::Ends,
            TextStep::Continues(State::EscapeIntermediate),
        ];
        assert_eq!(steps, expected);
    }

    proptest! {
        #[test]
        fn the_state_is_that_of_vte(bytes in proptest::collection::vec(byte(), 0..40)) {
            let state = State::Ground.after_all(&bytes);
            let outside = matches!(state, State::Ground | State::Char(_));
            prop_assert_eq!(outside, vte_prints_after(&bytes), "{:?} after {}", state, bytes.escape_ascii());
        }
    }
}
