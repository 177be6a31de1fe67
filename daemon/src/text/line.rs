//! The text of a line that patterns match. `log` with `grep`, `wait` and watches use the same text.

use super::page::PageEnd;
use std::borrow::Cow;
use toold_ansi::{strip, strip_complete};
use toold_proto::params::Ansi;

/// Returns a line without its end, which is CR LF from a terminal, and with `Strip` without its escape sequences. With
/// `More`, an incomplete sequence is left out: it may become a title, which is not text.
pub fn line_text(line: &[u8], end: PageEnd, ansi: Ansi) -> Cow<'_, [u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let text = match (ansi, end) {
        (Ansi::Keep, _) => Cow::Borrowed(line),
        (Ansi::Strip, PageEnd::Last) => strip(line),
        (Ansi::Strip, PageEnd::More) => strip_complete(line),
    };
    // A program that writes CR LF itself gets a second CR from the terminal.
    let len = text.len() - text.iter().rev().take_while(|byte| **byte == b'\r').count();
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..len).unwrap_or(text)),
        Cow::Owned(mut text) => {
            text.truncate(len);
            Cow::Owned(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_end_and_no_escape_sequences() {
        let cases: [(&[u8], PageEnd, Ansi, &[u8]); 7] = [
            (b"line1\r\n", PageEnd::Last, Ansi::Strip, b"line1"),
            (b"line1\r\r\n", PageEnd::Last, Ansi::Keep, b"line1"),
            (b"10%\r20%\r\x1b[K\n", PageEnd::Last, Ansi::Strip, b"10%\r20%"),
            (b"\x1b[32mok\x1b[0mgo", PageEnd::More, Ansi::Strip, b"okgo"),
            (b"\x1b[32mok\r\n", PageEnd::Last, Ansi::Keep, b"\x1b[32mok"),
            (b"a\x1b]0;READY", PageEnd::More, Ansi::Strip, b"a"),
            (b"a\x1b]0;READY", PageEnd::Last, Ansi::Strip, b"a]0;READY"),
        ];
        for (line, end, ansi, expected) in cases {
            assert_eq!(line_text(line, end, ansi).escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}
