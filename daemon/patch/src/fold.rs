//! Lines that are equal but for how they were typed.

use std::borrow::Cow;

/// A comparison of two lines, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    Equal,
    /// Blanks at the end do not count.
    TrimmedEnd,
    /// Blanks at both ends do not count.
    Trimmed,
    /// Nor do the forms of dashes, quotes and spaces.
    Folded,
}

impl Likeness {
    pub const ALL: [Likeness; 4] = [Likeness::Equal, Likeness::TrimmedEnd, Likeness::Trimmed, Likeness::Folded];

    /// The part of a line that counts. A line that is not UTF-8 counts as it is.
    pub fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        let Ok(text) = std::str::from_utf8(line) else { return Cow::Borrowed(line) };
        match self {
            Likeness::Equal => Cow::Borrowed(line),
            Likeness::TrimmedEnd => Cow::Borrowed(text.trim_end().as_bytes()),
            Likeness::Trimmed => Cow::Borrowed(text.trim().as_bytes()),
            Likeness::Folded if text.is_ascii() => Cow::Borrowed(text.trim().as_bytes()),
            Likeness::Folded => Cow::Owned(text.trim().chars().map(fold).collect::<String>().into_bytes()),
        }
    }
}

fn fold(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}
