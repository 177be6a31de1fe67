//! Finds escape sequences in output, and removes them. The two shifts of character sets count as such.
//!
//! A sequence is bounded: a title that never ends would swallow all output after it, and a page could not find where to
//! stop. `strip-ansi-escapes` has no such bound, and also drops tabs and carriage returns.

use crate::{ESC, State, TextStep, c1};
use memchr::memchr3;
use std::borrow::Cow;

/// The longest escape sequence. One that has no end after this many bytes is text.
pub const MAX_ESCAPE_LEN: usize = 4096;

/// Switches to the other character set.
const SHIFT_OUT: u8 = 0x0e;
/// Switches back. ncurses ends colours with it, and no terminal shows either of them.
const SHIFT_IN: u8 = 0x0f;

/// Final bytes of the sequences that move the cursor to another row, absolute or relative.
const ROW_MOVES: [char; 7] = ['H', 'f', 'd', 'A', 'B', 'E', 'F'];

/// Returns the position of the next escape sequence or shift.
#[inline]
pub fn next_escape(bytes: &[u8]) -> Option<usize> {
    let ascii = memchr3(ESC, SHIFT_OUT, SHIFT_IN, bytes);
    // Only what is before it: a search of everything for every sequence would take quadratic time.
    c1::find(&bytes[..ascii.unwrap_or(bytes.len())]).or(ascii)
}

/// Returns the same for bytes after which more may come: their last byte may be the first one of a C1 control.
#[inline]
pub fn next_escape_start(bytes: &[u8]) -> Option<usize> {
    next_escape(bytes).or_else(|| bytes.len().checked_sub(1).filter(|last| c1::is_start(&bytes[*last..])))
}

/// Returns true if the bytes start with an escape sequence or shift.
#[inline]
pub fn starts_escape(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(ESC | SHIFT_OUT | SHIFT_IN))) || c1::state_after(bytes).is_some()
}

/// Returns the length of the escape sequence or shift at the start of `bytes`, or None if its end has not come yet.
///
/// Another ESC ends it, so that no byte is read for more than one sequence: noise full of ESC would cost a thousand times
/// its length otherwise.
pub fn escape_len(bytes: &[u8]) -> Option<usize> {
    let bounded = bytes.get(..MAX_ESCAPE_LEN).unwrap_or(bytes);
    let (mut state, start_len) = match (*bytes.first()?, c1::state_after(bytes)) {
        (SHIFT_OUT | SHIFT_IN, _) => return Some(1),
        (ESC, _) => (State::Escape, 1),
        (_, Some(State::Ground)) => return Some(c1::C1_LEN),
        (_, Some(state)) => (state, c1::C1_LEN),
        (_, None) if c1::is_start(bytes) => return None,
        // Not an escape sequence.
        (_, None) => return Some(0),
    };
    for (i, &byte) in bounded.iter().enumerate().skip(start_len) {
        if state.is_string() && c1::ends_string(&bounded[i..]) {
            return Some(i + c1::C1_LEN);
        }
        match state.text_step(byte) {
            TextStep::Continues(next) => state = next,
            TextStep::Ends => return Some(i + 1),
            TextStep::EndsBefore if state.is_string() => {
                return match (byte, bytes.get(i + 1)) {
                    // Waiting for the end of a string hid all output after it for as long as the program ran.
                    (b'\n', _) => Some(unterminated_len(bytes)),
                    // ESC and a backslash end a string.
                    (_, Some(b'\\')) => Some(i + 2),
                    (_, None) => None,
                    (_, Some(_)) => Some(i),
                };
            }
            TextStep::EndsBefore => return Some(i),
        }
    }
    (bytes.len() >= MAX_ESCAPE_LEN).then(|| unterminated_len(bytes))
}

/// Returns how many bytes of an escape sequence without an end are not text. A string may contain real output, so only
/// its ESC or C1 control is removed; any other sequence contains only parameters.
pub fn unterminated_len(bytes: &[u8]) -> usize {
    if c1::is_start(bytes) {
        return 0;
    }
    if c1::state_after(bytes).is_some_and(State::is_string) {
        return c1::C1_LEN;
    }
    let is_string = bytes.get(1).is_some_and(|byte| State::Escape.after(*byte).is_string());
    if is_string { 1 } else { bytes.len().min(MAX_ESCAPE_LEN) }
}

/// Removes escape sequences. Everything else stays, including tabs and carriage returns.
pub fn strip(bytes: &[u8]) -> Cow<'_, [u8]> {
    strip_by(bytes, |rest| Some(escape_len(rest).unwrap_or_else(|| unterminated_len(rest))))
}

/// Removes escape sequences, and drops everything from a sequence on whose end has not come yet.
pub fn strip_complete(bytes: &[u8]) -> Cow<'_, [u8]> {
    strip_by(bytes, escape_len)
}

/// Removes escape sequences, and adds a newline where one of them moves to another row of the screen: text that was drawn
/// in different places is not one piece of text.
pub fn strip_to_rows(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = next_escape(rest.as_bytes()) {
        let (before, found) = rest.split_at(at);
        kept.push_str(before);
        let len = escape_len(found.as_bytes()).unwrap_or_else(|| unterminated_len(found.as_bytes()));
        // A sequence that reaches the length limit may end within a character.
        let end = (len..found.len()).find(|at| found.is_char_boundary(*at)).unwrap_or(found.len());
        let (sequence, after) = found.split_at(end);
        let is_csi = sequence.starts_with("\x1b[") || sequence.starts_with('\u{9b}');
        if is_csi && sequence.ends_with(ROW_MOVES) && !kept.is_empty() && !kept.ends_with('\n') {
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

    /// The broken code left them in the text: `31mred`, after a control that xterm acts on.
    #[test]
    fn c1_controls_in_utf_8_go_like_their_seven_bit_forms() {
        let cases = [
            ("\u{9b}31mred\u{9b}m", "red"),
            ("\u{9d}0;title\u{7}a\u{9d}0;title\u{9c}b\u{9d}0;t\u{1b}\\c", "abc"),
            ("\u{90}q#0\u{9c}sixel\u{9f}apc\u{9c}\u{85}\u{8d}text", "sixeltext"),
            ("\u{1b}]0;title\u{9c}a", "a"),
            ("\u{9b}3é\u{9b}1\nb", "é\nb"),
            ("\u{9d}0;never ends\nb", "0;never ends\nb"),
            ("£ © \u{a0}é\u{9b}1", "£ © \u{a0}é"),
        ];
        for (raw, plain) in cases {
            assert_eq!(String::from_utf8_lossy(&strip(raw.as_bytes())), plain, "{raw:?}");
        }
        assert_eq!(strip(b"a\xc2").into_owned(), b"a\xc2", "a torn character is none");
        assert_eq!(
            [b"\xc2".as_slice(), b"\xc2\x9b", b"\xc2\xa9", b"\xc2\x85"].map(escape_len),
            [None, None, Some(0), Some(2)]
        );
        assert_eq!(strip_to_rows("a\u{9b}2;1Hb"), "a\nb");
        assert_eq!(
            (next_escape(b"ab\xc2"), next_escape_start(b"ab\xc2"), next_escape(b"ab\xc2\x9b")),
            (None, Some(2), Some(2))
        );
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
