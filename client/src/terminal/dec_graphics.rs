//! Lines and corners for an emulator that does not know the character set they come in: the same as Unicode. Pure.

use super::escape_state::At;

/// What `` ` `` to `~` are in that set.
const DRAWN: [char; 31] = [
    '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴',
    '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

#[derive(Default)]
pub struct Boxes {
    at: At,
    /// Which of the two sets is being named, and whether each is that of lines.
    naming: Option<usize>,
    lines: [bool; 2],
    shifted: bool,
}

impl Boxes {
    /// The same bytes with lines and corners in place of the letters that stand for them.
    pub fn drawn(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let was = self.at;
            self.at = was.after(*byte);
            match (was, *byte) {
                (At::Escape, b'(') => self.naming = Some(0),
                (At::Escape, b')') => self.naming = Some(1),
                (At::Escape, b'c') => *self = Boxes::default(),
                (At::Designation, set) => {
                    if let Some(which) = self.naming.take() {
                        self.lines[which] = set == b'0';
                    }
                }
                (At::Ground, 0x0e) => self.shifted = true,
                (At::Ground, 0x0f) => self.shifted = false,
                (At::Ground, b'`'..=b'~') if self.lines[usize::from(self.shifted)] => {
                    out.extend(DRAWN[usize::from(byte - b'`')].to_string().bytes());
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
    fn lines_are_drawn_in_either_way_and_letters_stay_letters() {
        let drawn = |pieces: &[&str]| {
            let mut boxes = Boxes::default();
            String::from_utf8(pieces.iter().flat_map(|piece| boxes.drawn(piece.as_bytes())).collect())
                .expect("it is text")
        };
        assert_eq!(drawn(&["\x1b(0lqk\x1b[31mx\x1b(Bxé"]), "\x1b(0┌─┐\x1b[31m│\x1b(Bxé");
        assert_eq!(drawn(&["\x1b)0a\x0eq\x0fq"]), "\x1b)0a\x0e─\x0fq");
        assert_eq!(drawn(&["\x1b", "(", "0", "q", "\x1b]0;qq\x07q\x1bcq"]), "\x1b(0─\x1b]0;qq\x07─\x1bcq");
    }
}
