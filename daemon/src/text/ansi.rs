//! Where a terminal escape sequence ends, and output without them. The two shifts of character sets count as such.
//!
//! `vte` knows the grammar. What it lacks is a bound: a title that never ends would swallow all output after it, and a
//! page could not tell where to stop. `strip-ansi-escapes`, which is built on it, also drops tabs and carriage returns.

use memchr::memchr3;
use std::borrow::Cow;
use vte::{Params, Parser, Perform};

/// The longest sequence that is believed to be one. After so many bytes without an end it is text.
pub const MAX_ESCAPE_LEN: usize = 4096;

pub const ESC: u8 = 0x1b;
/// To the other character set and back. ncurses ends colours with the second, and no terminal shows them.
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// What a sequence ends with that goes to a row: that of a number, or so many up or down.
const ROW_MOVES: [char; 7] = ['H', 'f', 'd', 'A', 'B', 'E', 'F'];

/// Where the next escape sequence or shift begins.
pub fn next_escape(bytes: &[u8]) -> Option<usize> {
    memchr3(ESC, SHIFT_OUT, SHIFT_IN, bytes)
}

/// Whether one begins here.
pub fn starts_escape(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(ESC | SHIFT_OUT | SHIFT_IN)))
}

/// The length of the escape sequence or shift that `bytes` begins with. None: it is not over yet.
///
/// Another ESC ends it, so that no byte is looked at for more than one sequence: noise full of ESC would cost a
/// thousand times its length otherwise.
pub fn escape_len(bytes: &[u8]) -> Option<usize> {
    if matches!(bytes.first(), Some(&(SHIFT_OUT | SHIFT_IN))) {
        return Some(1);
    }
    let mut parser = Parser::new();
    let mut seen = Seen::Nothing;
    let string = is_string(bytes);
    for (i, &byte) in bytes.iter().take(MAX_ESCAPE_LEN).enumerate() {
        if byte == ESC && i > 0 {
            // The terminator of a string is ESC and a backslash.
            return match bytes.get(i + 1) {
                Some(b'\\') if string => Some(i + 2),
                None if string => None,
                _ => Some(i),
            };
        }
        // No title or link has a newline in it: this one was never ended, and what follows is output. Waiting for the
        // end hid all of it for as long as the program ran.
        if byte == b'\n' && string {
            return Some(unterminated_len(bytes));
        }
        // Outside of strings a sequence is ASCII: one that meets a character was torn off there.
        if byte >= 0x80 && !string {
            return Some(i);
        }
        parser.advance(&mut seen, &[byte]);
        match seen {
            Seen::Nothing => {}
            Seen::Text => return Some(i),
            Seen::Whole => return Some(i + 1),
        }
    }
    (bytes.len() >= MAX_ESCAPE_LEN).then(|| unterminated_len(bytes))
}

/// How much of an escape sequence without an end is not text. A string may have real output in it, so only its ESC is
/// taken; anything else has only parameters.
pub fn unterminated_len(bytes: &[u8]) -> usize {
    if is_string(bytes) { 1 } else { bytes.len().min(MAX_ESCAPE_LEN) }
}

/// Whether it is a title, a link, an image: text up to a terminator.
fn is_string(bytes: &[u8]) -> bool {
    matches!(bytes.get(1), Some(b']' | b'P' | b'X' | b'^' | b'_'))
}

/// Bytes without their escape sequences. Everything else stays, tabs and carriage returns too.
pub fn strip(bytes: &[u8]) -> Cow<'_, [u8]> {
    strip_by(bytes, |rest| Some(escape_len(rest).unwrap_or_else(|| unterminated_len(rest))))
}

/// The same, up to a sequence that is not over yet.
pub fn strip_whole(bytes: &[u8]) -> Cow<'_, [u8]> {
    strip_by(bytes, escape_len)
}

/// Text without its escape sequences, and with a line's end where one of them goes to another row of the screen: what was drawn
/// in different places is not one word.
pub fn strip_to_rows(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = next_escape(rest.as_bytes()) {
        let (before, found) = rest.split_at(at);
        kept.push_str(before);
        let len = escape_len(found.as_bytes()).unwrap_or_else(|| unterminated_len(found.as_bytes()));
        // One that is too long to be one may end within a character.
        let end = (len..found.len()).find(|at| found.is_char_boundary(*at)).unwrap_or(found.len());
        let (gone, after) = found.split_at(end);
        if gone.starts_with("\x1b[") && gone.ends_with(ROW_MOVES) && !kept.is_empty() && !kept.ends_with('\n') {
            kept.push('\n');
        }
        rest = after;
    }
    kept + rest
}

fn strip_by(bytes: &[u8], sequence_len: impl Fn(&[u8]) -> Option<usize>) -> Cow<'_, [u8]> {
    let Some(first) = next_escape(bytes) else { return Cow::Borrowed(bytes) };
    let mut kept = Vec::with_capacity(bytes.len());
    let (before, mut rest) = bytes.split_at(first);
    kept.extend_from_slice(before);
    while let Some(len) = sequence_len(rest).filter(|_| !rest.is_empty()) {
        rest = rest.get(len..).unwrap_or_default();
        let (text, after) = rest.split_at(next_escape(rest).unwrap_or(rest.len()));
        kept.extend_from_slice(text);
        rest = after;
    }
    Cow::Owned(kept)
}

/// What the parser made of a byte.
#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    /// The end of a sequence.
    Whole,
    /// No part of any sequence.
    Text,
}

impl Perform for Seen {
    fn print(&mut self, _: char) {
        *self = Seen::Text;
    }

    fn execute(&mut self, byte: u8) {
        // CAN and SUB end a sequence and are part of it. Another control character inside of one is output: a
        // terminal would act on it, and a newline must not be lost.
        *self = if matches!(byte, 0x18 | 0x1a) { Seen::Whole } else { Seen::Text };
    }

    fn unhook(&mut self) {
        *self = Seen::Whole;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        *self = Seen::Whole;
    }

    fn csi_dispatch(&mut self, _: &Params, _: &[u8], _: bool, _: char) {
        *self = Seen::Whole;
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        *self = Seen::Whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_in_another_row_is_in_another_line() {
        let screen =
            "\x1b[?1049h\x1b[2J\x1b[H\x1b[1;5Hrow 1\x1b[2;5Hrow\x1b[31m 2\x1b[m\x1b[24;1H-- INSERT --\x1b[2;3H";
        assert_eq!(strip_to_rows(screen), "row 1\nrow 2\n-- INSERT --\n");
        assert_eq!(strip_to_rows("plain \x1b[1mbold\x1b[0m\r\nnext\x1b[K \x1b[3Cright"), "plain bold\r\nnext right");
        assert_eq!(strip_to_rows("\x1b]0;title Hé\x07a\x1b[12"), "a");
        assert_eq!(strip_to_rows("no end \x1b]0;é"), "no end ]0;é");
    }

    #[test]
    fn sequences_go_and_everything_else_stays() {
        let cases: [(&[u8], &[u8]); 15] = [
            (b"\x1b[31mred\x1b(B\x0f\x1b[m \x0elqk\x0f", b"red lqk"),
            (b"\x1b)0\x1b*B\x1b+B\x1b-A\x1b%Gset", b"set"),
            (b"\x1b[3\x0f1mtorn\x0f", b"1mtorn"),
            (b"\x1b[1;31merror\x1b[0m:\ta\r\n", b"error:\ta\r\n"),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", b"alinkb"),
            (b"\x1bPq#0;2;0\x1b\\sixel\x1b(Bascii\x1b=\x1b7", b"sixelascii"),
            (b"\x1b_apc\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c", b"abc"),
            (b"\x1b[31\nnot lost", b"\nnot lost"),
            (b"\x1b[3\xc3\xa9", b"\xc3\xa9"),
            (b"\x1b[?25l\x1b[1?5xmalformed", b"malformed"),
            (b"\x1b\x1b\x1b[1\x1b[2ma\x1b]0;cut off\x1b[31mb", b"ab"),
            (b"\x1b]0;x\x18can\x1b[1\x1asub", b"cansub"),
            (b"a\x1b", b"a"),
            (b"a\x1b[31", b"a"),
            (b"a\x1b]0;never ends\nb", b"a]0;never ends\nb"),
        ];
        let stripped: Vec<Vec<u8>> = cases.iter().map(|(raw, _)| strip(raw).into_owned()).collect();
        assert_eq!(stripped, cases.map(|(_, plain)| plain.to_vec()));
    }

    #[test]
    fn a_newline_in_a_string_makes_it_text_at_once() {
        let raw = [b"\x1b]0;title\nERROR".as_slice(), b"\x1bPq\n\x1b\\", b"\x1b]0;title", b"\x1b]0;title\x07\n"];
        assert_eq!(raw.map(escape_len), [Some(1), Some(1), None, Some(10)]);
        assert_eq!(strip(b"a\x1b]0;title\nERROR\x07").into_owned(), b"a]0;title\nERROR\x07");
    }

    #[test]
    fn a_string_without_end_is_text_after_four_kilobytes() {
        let mut raw = b"\x1b]0;".to_vec();
        raw.resize(5000, b'x');
        let shown = strip(&raw).into_owned();
        assert_eq!(
            (shown.len(), escape_len(&raw), escape_len(raw.get(..4000).unwrap_or_default())),
            (4999, Some(1), None)
        );
    }
}
