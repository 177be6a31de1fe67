//! What a scan has found, as much of it as an event shows.

use std::mem;

/// Lines that are shown.
const MAX_SHOWN_LINES: u64 = 20;
/// Characters that are shown, with the newlines between the lines.
const MAX_SHOWN_CHARS: usize = 2000;

/// The lines that matched. It grows until it is taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matches {
    /// How many lines.
    pub matches: u64,
    /// The pattern of the first one, as an index into the user's list.
    pub pattern: Option<usize>,
    /// The first lines, joined with newlines. An invalid byte is U+FFFD.
    pub output: String,
    /// `output` lacks some of what matched: lines, or the end of one.
    pub cut: bool,
    /// The characters in `output`.
    chars: usize,
}

impl Matches {
    /// Everything so far; what comes later is counted anew.
    pub fn take(&mut self) -> Matches {
        mem::take(self)
    }

    pub(super) fn line(&mut self, pattern: usize, text: &[u8]) {
        self.pattern.get_or_insert(pattern);
        self.matches += 1;
        if self.matches > MAX_SHOWN_LINES || self.cut {
            self.cut = true;
            return;
        }
        if self.matches > 1 {
            self.show("\n");
        }
        // A character has at most four bytes: one more than there is room for, so that a cut one is not shown.
        let most = (MAX_SHOWN_CHARS - self.chars + 1) * 4;
        self.show(&String::from_utf8_lossy(text.get(..most).unwrap_or(text)));
    }

    fn show(&mut self, text: &str) {
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
    fn twenty_lines_are_shown_and_all_are_counted() {
        let mut found = Matches::default();
        (0..20).for_each(|i| found.line(i + 3, format!("{i}").as_bytes()));
        let lines: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert_eq!((found.output.clone(), found.cut, found.pattern), (lines.join("\n"), false, Some(3)));
        found.line(0, b"more");
        assert_eq!((found.output.clone(), found.cut, found.matches), (lines.join("\n"), true, 21));
        assert_eq!((found.take().matches, found), (21, Matches::default()));
    }

    #[test]
    fn two_thousand_characters_are_shown_and_none_is_cut_in_half() {
        let mut found = Matches::default();
        found.line(0, "é".repeat(1998).as_bytes());
        found.line(0, "中中".as_bytes());
        assert_eq!((found.output.clone(), found.cut), (format!("{}\n中", "é".repeat(1998)), true));
        found.line(0, b"x");
        assert_eq!((found.output.chars().count(), found.matches), (2000, 3));
        let mut whole = Matches::default();
        whole.line(0, &[b'x'; 2000]);
        assert_eq!((whole.output.len(), whole.cut), (2000, false));
        whole.line(0, b"");
        assert_eq!((whole.output.len(), whole.cut), (2000, true));
    }

    #[test]
    fn empty_lines_are_lines_and_invalid_bytes_are_shown_as_such() {
        let mut found = Matches::default();
        [b"".as_slice(), b"", b"a\xffb"].iter().for_each(|line| found.line(0, line));
        assert_eq!(found.output, "\n\na\u{fffd}b");
    }
}
