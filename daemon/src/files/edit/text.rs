//! The text of a file with plain line feeds, and the way back to its bytes: byte order mark, charset and line ends. Pure.

use crate::files::content::{self, LineEnds};
use std::borrow::Cow;
use std::ops::Range;
use toold_proto::files::{Charset, LineEnding};

/// The decoded text of a file.
pub struct FileText<'a> {
    charset: Charset,
    mark: &'a [u8],
    /// With the line ends of the file.
    original: Cow<'a, str>,
    /// With line feeds only.
    pub plain: Cow<'a, str>,
    ending: Option<LineEnding>,
}

impl<'a> FileText<'a> {
    /// Decodes a file. Returns None if it is not valid in its charset.
    pub fn decode(bytes: &'a [u8]) -> Option<FileText<'a>> {
        let (charset, mark) = content::charset(bytes);
        let (mark, body) = bytes.split_at(mark);
        let original = match charset {
            Charset::Utf8 => Cow::Borrowed(std::str::from_utf8(body).ok()?),
            Charset::Utf16Le | Charset::Utf16Be => {
                let (text, is_lossy) = content::decode_utf16(body, charset);
                Cow::Owned((!is_lossy).then_some(text)?)
            }
        };
        let ending = LineEnds::of(original.as_bytes()).kind();
        let plain = match (&original, ending) {
            (Cow::Borrowed(text), None | Some(LineEnding::Lf)) => Cow::Borrowed(*text),
            (original, _) => Cow::Owned(plain(original, ending)),
        };
        Some(FileText { charset, mark, original, plain, ending })
    }

    /// Returns the text of a request in the form of `plain`. A request for a file with line feeds may add carriage returns.
    pub fn request(&self, text: &str, is_converted: bool) -> String {
        match self.ending {
            None | Some(LineEnding::Lf) if !is_converted => text.to_owned(),
            _ => text.replace("\r\n", "\n").replace('\r', "\n"),
        }
    }

    /// Returns the bytes of the file with the places of `plain` replaced. Untouched bytes stay as they are; new lines get the
    /// line end of the place, or of the file.
    pub fn replace(&self, places: &[(Range<usize>, String)]) -> Vec<u8> {
        let ranges: Vec<Range<usize>> = places.iter().map(|(range, _)| range.clone()).collect();
        let mut text = String::with_capacity(self.original.len());
        let mut at = 0;
        for (range, (_, new)) in self.locate(&ranges).into_iter().zip(places) {
            text.push_str(&self.original[at..range.start]);
            match self.end_for(range.clone()) {
                "\n" => text.push_str(new),
                end => text.push_str(&new.replace('\n', end)),
            }
            at = range.end;
        }
        text.push_str(&self.original[at..]);
        let body = match self.charset {
            Charset::Utf8 => text.into_bytes(),
            Charset::Utf16Le | Charset::Utf16Be => content::encode_utf16(&text, self.charset),
        };
        if self.mark.is_empty() { body } else { [self.mark, &body].concat() }
    }

    /// Returns the places in the original text. The ranges are in order.
    fn locate(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        if self.original.len() == self.plain.len() {
            return ranges.to_vec();
        }
        // Each `\r\n` before a place moves it by one. A place never begins or ends between the two.
        let mut pairs = memchr::memmem::find_iter(self.original.as_bytes(), b"\r\n").peekable();
        let mut moved = 0;
        let mut original = |at: usize| {
            while pairs.next_if(|pair| pair - moved < at).is_some() {
                moved += 1;
            }
            at + moved
        };
        ranges.iter().map(|range| original(range.start)..original(range.end)).collect()
    }

    /// Returns the line end for new lines in place of `range` of the original text.
    fn end_for(&self, range: Range<usize>) -> &'static str {
        let kind = match self.ending {
            // The first line end from the place on, else the last one before it.
            Some(LineEnding::Mixed) => first_end(&self.original[range.start..]),
            kind => kind,
        };
        match kind {
            Some(LineEnding::Crlf) => "\r\n",
            Some(LineEnding::Cr) => "\r",
            Some(LineEnding::Lf | LineEnding::Mixed) | None => "\n",
        }
    }
}

fn first_end(text: &str) -> Option<LineEnding> {
    let at = memchr::memchr2(b'\n', b'\r', text.as_bytes())?;
    match &text.as_bytes()[at..] {
        [b'\n', ..] => Some(LineEnding::Lf),
        [b'\r', b'\n', ..] => Some(LineEnding::Crlf),
        // A carriage return alone ends no line in a mixed file.
        _ => first_end(&text[at + 1..]),
    }
}

/// Returns the text with line feeds only. A carriage return alone ends lines only if nothing else does.
fn plain(text: &str, ending: Option<LineEnding>) -> String {
    match ending {
        None | Some(LineEnding::Lf) => text.to_owned(),
        Some(LineEnding::Cr) => text.replace('\r', "\n"),
        Some(LineEnding::Crlf | LineEnding::Mixed) => text.replace("\r\n", "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(file: &[u8], old: &str, new: &str) -> Vec<u8> {
        let text = FileText::decode(file).expect("text");
        let at = text.plain.find(old).expect("in the text");
        text.replace(&[(at..at + old.len(), new.to_owned())])
    }

    #[test]
    fn line_ends_and_the_mark_are_those_of_the_file() {
        let table: [(&[u8], &str, &str, &[u8]); 8] = [
            (b"a\nb\n", "a\nb", "x\ny", b"x\ny\n"),
            (b"a\r\nb\r\nc\r\n", "b\nc", "x\ny\nz", b"a\r\nx\r\ny\r\nz\r\n"),
            (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
            (b"a\rb\rc", "b", "x\ny", b"a\rx\ry\rc"),
            (b"a\nb\r\nc\n", "b", "x\ny", b"a\nx\r\ny\r\nc\n"),
            (b"a\nb\r\nc\n", "c", "x\ny", b"a\nb\r\nx\ny\n"),
            (b"\xef\xbb\xbfa\r\nb", "a\nb", "c\nd", b"\xef\xbb\xbfc\r\nd"),
            (b"\xff\xfea\0\n\0", "a", "\u{e4}", b"\xff\xfe\xe4\0\n\0"),
        ];
        for (file, old, new, expected) in table {
            assert_eq!(replaced(file, old, new), expected, "{file:?}");
        }
    }

    #[test]
    fn several_places_are_replaced_and_all_other_bytes_stay() {
        let text = FileText::decode(b"a\r\n-\na\r\n").expect("text");
        assert_eq!(text.plain, "a\n-\na\n");
        let new = text.replace(&[(0..2, "x\ny\n".into()), (4..5, "z".into())]);
        assert_eq!(new, b"x\r\ny\r\n-\nz\r\n");
    }

    #[test]
    fn a_file_that_is_not_valid_is_not_text() {
        assert!(FileText::decode(b"a\xffb").is_none());
        assert!(FileText::decode(b"\xff\xfea").is_none());
    }
}
