//! Finds where a terminal's output can be cut: never inside a character or an escape sequence. Pure.

use toold_ansi::{ESC, State};

/// Returns the number of bytes before the sequence or character that is incomplete.
pub fn boundary_len(bytes: &[u8]) -> usize {
    let mut state = State::Ground;
    let mut end = 0;
    for (i, byte) in bytes.iter().enumerate() {
        state = state.after(*byte);
        if state == State::Ground {
            end = i + 1;
        }
    }
    end
}

/// Splits bytes into runs of text and single escape sequences.
pub fn split_sequences(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let end = match first {
            ESC => {
                let mut state = State::Ground;
                rest.iter().position(|byte| {
                    state = state.after(*byte);
                    state == State::Ground
                })
            }
            _ => rest.iter().position(|byte| *byte == ESC).and_then(|at| at.checked_sub(1)),
        };
        let (piece, left) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = left;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_is_never_inside_a_character_or_a_sequence() {
        let cases: [(&[u8], usize); 12] = [
            (b"abc", 3),
            (b"abc\x1b", 3),
            (b"abc\x1b[3", 3),
            (b"abc\x1b[31m", 8),
            ("aé".as_bytes(), 3),
            (&"a€".as_bytes()[..3], 1),
            (b"a\x1b]0;title", 1),
            (b"a\x1b]0;title\x07", 11),
            (b"a\x1b]0;title\x1b", 1),
            (b"a\x1b]0;title\x1b\\b", 13),
            (b"a\x1b(", 1),
            (b"a\x1b(0q", 5),
        ];
        for (bytes, end) in cases {
            assert_eq!(boundary_len(bytes), end, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn each_sequence_is_a_piece_and_each_run_of_text_too() {
        let found: Vec<&[u8]> = split_sequences(b"ab\x1b[31mc\x1b]0;t\x1b\\\x1b7\x1b[").collect();
        let expected: [&[u8]; 6] = [b"ab", b"\x1b[31m", b"c", b"\x1b]0;t\x1b\\", b"\x1b7", b"\x1b["];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn the_pieces_contain_all_bytes(bytes in proptest::collection::vec(prop_oneof![Just(0x1b), Just(b'['), Just(b']'), any::<u8>()], 0..60)) {
            prop_assert_eq!(split_sequences(&bytes).collect::<Vec<_>>().concat(), bytes.clone());
            prop_assert!(boundary_len(&bytes) <= bytes.len());
        }
    }
}
