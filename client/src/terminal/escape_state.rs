//! Where a terminal's output can be cut: never inside a character or an escape sequence. Pure.

/// What the bytes so far end in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EscapeState {
    /// Between two characters or sequences.
    #[default]
    Ground,
    /// A character that lacks so many bytes.
    Char(u8),
    Escape,
    /// A sequence like `ESC ( 0` before its last byte.
    Designation,
    Csi,
    /// A title or another text that only the terminal reads, and its possible end.
    Text,
    TextEscape,
}

impl EscapeState {
    pub fn after(self, byte: u8) -> EscapeState {
        match (self, byte) {
            (EscapeState::Char(1), 0x80..=0xbf) => EscapeState::Ground,
            (EscapeState::Char(n), 0x80..=0xbf) => EscapeState::Char(n - 1),
            (EscapeState::Ground | EscapeState::Char(_), 0xc2..=0xdf) => EscapeState::Char(1),
            (EscapeState::Ground | EscapeState::Char(_), 0xe0..=0xef) => EscapeState::Char(2),
            (EscapeState::Ground | EscapeState::Char(_), 0xf0..=0xf4) => EscapeState::Char(3),
            (EscapeState::Text, 0x1b) => EscapeState::TextEscape,
            (_, 0x1b) => EscapeState::Escape,
            (EscapeState::Ground | EscapeState::Char(_), _) | (_, 0x18 | 0x1a) => EscapeState::Ground,
            (EscapeState::Escape | EscapeState::TextEscape, b'[') => EscapeState::Csi,
            (EscapeState::Escape | EscapeState::TextEscape, b']' | b'P' | b'X' | b'^' | b'_') => EscapeState::Text,
            (EscapeState::Escape | EscapeState::TextEscape | EscapeState::Designation, 0x20..=0x2f) => {
                EscapeState::Designation
            }
            (EscapeState::Escape | EscapeState::TextEscape | EscapeState::Designation, _) => EscapeState::Ground,
            (EscapeState::Csi, 0x40..=0x7e) | (EscapeState::Text, 0x07) => EscapeState::Ground,
            (EscapeState::Csi, _) => EscapeState::Csi,
            (EscapeState::Text, _) => EscapeState::Text,
        }
    }

    pub fn after_all(self, bytes: &[u8]) -> EscapeState {
        bytes.iter().fold(self, |at, byte| at.after(*byte))
    }
}

/// How many of the bytes are before the sequence or character that is not all there.
pub fn boundary_len(bytes: &[u8]) -> usize {
    let mut at = EscapeState::Ground;
    let mut end = 0;
    for (i, byte) in bytes.iter().enumerate() {
        at = at.after(*byte);
        if at == EscapeState::Ground {
            end = i + 1;
        }
    }
    end
}

/// The pieces of the bytes: runs of text, and escape sequences each on its own.
pub fn split_sequences(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let end = match first {
            0x1b => {
                let mut at = EscapeState::Ground;
                rest.iter().position(|byte| {
                    at = at.after(*byte);
                    at == EscapeState::Ground
                })
            }
            _ => rest.iter().position(|byte| *byte == 0x1b).and_then(|at| at.checked_sub(1)),
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
    fn sequences_stand_alone_and_text_is_together() {
        let found: Vec<&[u8]> = split_sequences(b"ab\x1b[31mc\x1b]0;t\x1b\\\x1b7\x1b[").collect();
        let expected: [&[u8]; 6] = [b"ab", b"\x1b[31m", b"c", b"\x1b]0;t\x1b\\", b"\x1b7", b"\x1b["];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn the_pieces_are_all_the_bytes(bytes in proptest::collection::vec(prop_oneof![Just(0x1b), Just(b'['), Just(b']'), any::<u8>()], 0..60)) {
            prop_assert_eq!(split_sequences(&bytes).collect::<Vec<_>>().concat(), bytes.clone());
            prop_assert!(boundary_len(&bytes) <= bytes.len());
        }
    }
}
