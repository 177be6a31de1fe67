//! The matches of a scan, with as much output as an event contains.

use std::mem;

/// The maximum number of lines in `output`.
const MAX_SHOWN_LINES: u64 = 20;
/// The maximum number of characters in `output`, including newlines.
const MAX_SHOWN_CHARS: usize = 2000;

/// The lines that matched, collected until they are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matches {
    /// The number of lines.
    pub matches: u64,
    /// The pattern of the first line, as an index into the user's list.
    pub pattern: Option<usize>,
    /// The first lines, joined with newlines and decoded like `String::from_utf8_lossy`.
    pub output: String,
    /// `output` lacks matching lines, or the end of one.
    pub cut: bool,
    /// The number of characters in `output`.
    chars: usize,
}

impl Matches {
    /// Returns all matches and resets the counts.
    pub fn take(&mut self) -> Matches {
        mem::take(self)
    }

    pub(super) fn add_line(&mut self, pattern: usize, text: &[u8]) {
        self.pattern.get_or_insert(pattern);
        self.matches += 1;
        if self.matches > MAX_SHOWN_LINES || self.cut {
            self.cut = true;
            return;
        }
        if self.matches > 1 {
            self.push_output("\n");
        }
        // A character has at most four bytes. Decode one character more than fits, so that a cut one is not included.
        let max = (MAX_SHOWN_CHARS - self.chars + 1) * 4;
        self.push_output(&String::from_utf8_lossy(text.get(..max).unwrap_or(text)));
    }

    fn push_output(&mut self, text: &str) {
        let room = MAX_SHOWN_CHARS - self.chars;
        let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
        self.cut |= end < text.len();
        self.chars += text.get(..end).map_or(0, |shown| shown.chars().count());
        self.output.push_str(text.get(..end).unwrap_or(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_lines_are_included_and_all_are_counted() {
        let mut matches = Matches::default();
        (0..20).for_each(|i| matches.add_line(i + 3, format!("{i}").as_bytes()));
        let lines: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert_eq!((matches.output.clone(), matches.cut, matches.pattern), (lines.join("\n"), false, Some(3)));
        matches.add_line(0, b"more");
        assert_eq!((matches.output.clone(), matches.cut, matches.matches), (lines.join("\n"), true, 21));
        assert_eq!((matches.take().matches, matches), (21, Matches::default()));
    }

    #[test]
    fn two_thousand_characters_are_included_and_none_is_cut_in_half() {
        let mut matches = Matches::default();
        matches.add_line(0, "é".repeat(1998).as_bytes());
        matches.add_line(0, "中中".as_bytes());
        assert_eq!((matches.output.clone(), matches.cut), (format!("{}\n中", "é".repeat(1998)), true));
        matches.add_line(0, b"x");
        assert_eq!((matches.output.chars().count(), matches.matches), (2000, 3));
        let mut whole = Matches::default();
        whole.add_line(0, &[b'x'; 2000]);
        assert_eq!((whole.output.len(), whole.cut), (2000, false));
        whole.add_line(0, b"");
        assert_eq!((whole.output.len(), whole.cut), (2000, true));
    }

    #[test]
    fn empty_lines_count_and_invalid_bytes_are_replaced() {
        let mut matches = Matches::default();
        [b"".as_slice(), b"", b"a\xffb"].iter().for_each(|line| matches.add_line(0, line));
        assert_eq!(matches.output, "\n\na\u{fffd}b");
    }
}
