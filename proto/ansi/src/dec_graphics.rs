//! DEC Special Graphics as Unicode, for an emulator that does not know that character set. Pure.

use crate::State;

/// The characters that `` ` `` to `~` stand for in that set.
const SPECIAL_GRAPHICS: [char; 31] = [
    '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴',
    '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// Converts output that may arrive in pieces.
#[derive(Default)]
pub struct DecGraphics {
    at: State,
    /// The set (G0 or G1) that the current sequence designates.
    designating: Option<usize>,
    /// True for G0 and G1 if they are the graphics set.
    is_graphics: [bool; 2],
    /// G1 is in use instead of G0.
    shift_out: bool,
}

impl DecGraphics {
    /// Returns the same bytes with Unicode lines and corners in place of the letters that stand for them.
    pub fn translate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let was = self.at;
            self.at = was.after(*byte);
            match (was, *byte) {
                (State::Escape, b'(') => self.designating = Some(0),
                (State::Escape, b')') => self.designating = Some(1),
                (State::Escape, b'c') => *self = DecGraphics::default(),
                (State::EscapeIntermediate, set) => {
                    if let Some(which) = self.designating.take() {
                        self.is_graphics[which] = set == b'0';
                    }
                }
                (State::Ground, 0x0e) => self.shift_out = true,
                (State::Ground, 0x0f) => self.shift_out = false,
                (State::Ground, b'`'..=b'~') if self.is_graphics[usize::from(self.shift_out)] => {
                    out.extend(SPECIAL_GRAPHICS[usize::from(byte - b'`')].to_string().bytes());
                    continue;
                }
                // Text, or inside a sequence.
                _ => {}
            }
            out.push(*byte);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphics_of_both_sets_become_unicode_and_letters_stay_letters() {
        let drawn = |pieces: &[&str]| {
            let mut graphics = DecGraphics::default();
            String::from_utf8(pieces.iter().flat_map(|piece| graphics.translate(piece.as_bytes())).collect())
                .expect("it is text")
        };
        assert_eq!(drawn(&["\x1b(0lqk\x1b[31mx\x1b(Bxé"]), "\x1b(0┌─┐\x1b[31m│\x1b(Bxé");
        assert_eq!(drawn(&["\x1b)0a\x0eq\x0fq"]), "\x1b)0a\x0e─\x0fq");
        assert_eq!(drawn(&["\x1b", "(", "0", "q", "\x1b]0;qq\x07q\x1bcq"]), "\x1b(0─\x1b]0;qq\x07─\x1bcq");
    }
}
