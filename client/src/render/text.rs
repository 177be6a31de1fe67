//! Untrusted text for a terminal: escaped, measured in columns, cut and padded.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Maximum number of combining marks on one character. More would reach into other lines.
const MAX_COMBINING_MARKS: usize = 4;

/// Returns the text as one line in which nothing moves the cursor, hides text or reverses it.
pub fn escape_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut writer = ControlEscaper::default();
    for c in text.chars() {
        match c {
            '\n' => writer.push_verbatim("\\n", &mut out),
            '\r' => writer.push_verbatim("\\r", &mut out),
            '\t' => writer.push_verbatim("\\t", &mut out),
            c => writer.push(c, &mut out),
        }
    }
    writer.finish(&mut out);
    out
}

/// Returns rendered text for a terminal: lines, tabs and our colours stay, and every other control character is shown as
/// its code point. The last check of everything that is printed; a view has escaped its values before, so that none of them
/// makes a line of its own.
pub fn only_lines_and_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut writer = ControlEscaper::default();
    for (at, c) in text.char_indices() {
        match c {
            '\n' => writer.push_verbatim("\n", &mut out),
            '\t' => writer.push_verbatim("\t", &mut out),
            '\x1b' if is_colour(&text[at..]) => writer.push_verbatim("\x1b", &mut out),
            c => writer.push(c, &mut out),
        }
    }
    writer.finish(&mut out);
    out
}

/// Returns true if the text begins with a sequence that sets colours.
fn is_colour(text: &str) -> bool {
    let params =
        text.strip_prefix("\x1b[").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
    params.is_some_and(|end| end.starts_with('m'))
}

/// Returns a JSON document for a terminal. Control characters occur only in strings, where an escape means the same.
pub fn escape_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && (c.is_control() || is_deceptive(c)) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Writes characters that a terminal simply shows unchanged, and all others as their code point.
///
/// A joiner between letters or emoji is text: `👩‍👧` and Persian need it. It waits for the character after it.
#[derive(Debug, Default)]
pub struct ControlEscaper {
    /// Number of marks on the last character.
    marks: usize,
    /// The last character can be joined with the next.
    joinable: bool,
    /// A joiner after such a character.
    joiner: Option<char>,
}

impl ControlEscaper {
    pub fn push(&mut self, c: char, out: &mut String) {
        if is_joiner(c) && self.joinable && self.joiner.is_none() {
            self.joiner = Some(c);
            return;
        }
        match self.joiner.take() {
            Some(joiner) if can_be_joined(c) => out.push(joiner),
            Some(joiner) => escape(joiner, out),
            None => {}
        }
        self.joinable = can_be_joined(c) || (self.joinable && is_mark(c));
        self.push_character(c, out);
    }

    /// Writes text that needs no escape, after what waits for it.
    pub fn push_verbatim(&mut self, text: &str, out: &mut String) {
        self.finish(out);
        self.marks = 0;
        out.push_str(text);
    }

    /// Writes a joiner that nothing follows.
    pub fn finish(&mut self, out: &mut String) {
        self.joinable = false;
        if let Some(joiner) = self.joiner.take() {
            escape(joiner, out);
        }
    }

    fn push_character(&mut self, c: char, out: &mut String) {
        let mark = c.width() == Some(0);
        self.marks = if mark { self.marks + 1 } else { 0 };
        match c {
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || is_deceptive(c) || self.marks > MAX_COMBINING_MARKS => {
                escape(c, out);
            }
            c => out.push(c),
        }
    }
}

/// Writes the code point of a character.
fn escape(c: char, out: &mut String) {
    out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
}

/// Returns true for the joiner and the non-joiner of letters and emoji.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Returns true for a mark on the character before it: an accent, a vowel sign, the style of an emoji.
fn is_mark(c: char) -> bool {
    c.width() == Some(0) && !c.is_control() && !is_deceptive(c)
}

/// Returns true for letters of the scripts that join, and for emoji. Between other letters a joiner has no effect but to
/// make two names look the same.
fn can_be_joined(c: char) -> bool {
    let is_emoji = matches!(c, '\u{203c}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}');
    is_emoji || (c >= '\u{590}' && (c.is_alphabetic() || is_mark(c)))
}

/// Returns true for characters that end a line, reverse the text after them, or are invisible. Joiners are among them;
/// `ControlEscaper` knows where they are text.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the last line that is not blank, without escape sequences. A carriage return ends a line too.
pub fn last_line(text: &str) -> Option<String> {
    let plain = without_escapes(text);
    plain.split(['\n', '\r']).map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns the first line that is not blank, in the same way.
pub fn first_line(text: &str) -> Option<String> {
    let plain = without_escapes(text);
    plain.split(['\n', '\r']).map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Removes escape sequences. A sequence that is cut off ends the text.
pub fn without_escapes(text: &str) -> String {
    // A sequence never ends inside a character, so nothing is replaced.
    String::from_utf8_lossy(&toold_ansi::strip_complete(text.as_bytes())).into_owned()
}

/// Returns the width of text in columns of a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts text to `width` columns; `…` stands for the rest.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        // The width of the text so far: a following mark can make a character wider.
        if columns(&out) > room {
            out.pop();
            break;
        }
    }
    // Without the character after it a joiner would be shown as its code point.
    out.truncate(out.trim_end_matches(is_joiner).len());
    out.push('…');
    out
}

/// Breaks text into at most `max_lines` lines of at most `width` columns. The last one is cut.
pub fn wrap(text: &str, width: usize, max_lines: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while lines.len() + 1 < max_lines && columns(rest) > width {
        let mut line = String::new();
        for c in rest.chars() {
            line.push(c);
            if columns(&line) > width {
                line.pop();
                break;
            }
        }
        if line.is_empty() {
            break;
        }
        // Break between words, unless that leaves half of the line empty.
        line.truncate(line.rfind(' ').filter(|at| *at > line.len() / 2).map_or(line.len(), |at| at + 1));
        rest = &rest[line.len()..];
        lines.push(line.trim_end().to_owned());
    }
    lines.push(cut(rest, width));
    lines
}

/// Pads text with spaces to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    let mut out = text.to_owned();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(text))));
    out
}

/// Formats a count: `1 line`, `2 lines`.
pub fn count(n: u64, what: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{n} {what}{end}")
}

/// Formats a size: `512`, `1.5K`, `20M`. 1024-based, as the command line takes it.
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit.is_empty() || value >= 10.0 { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

/// Formats a size for a sentence, with a unit: `1 byte`, `512 bytes`, `1.5K`.
pub fn size(n: u64) -> String {
    if n < 1024 { count(n, "byte") } else { bytes(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_text_keeps_lines_and_colours_and_nothing_else_that_acts() {
        assert_eq!(
            only_lines_and_colours("a\n\x1b[1;31mb\x1b[m\tc\x1b[2J\x1b]0;t\x07\r\u{9b}m\x1b[1\u{202e}"),
            "a\n\x1b[1;31mb\x1b[m\tc\\x1b[2J\\x1b]0;t\\x07\\x0d\\u{9b}m\\x1b[1\\u{202e}"
        );
    }

    #[test]
    fn a_json_document_means_the_same_on_a_terminal() {
        let value = "\x1b[2J\u{7f}\u{9b}31m\u{202e}\u{e0001}é";
        let shown = escape_json(&serde_json::to_string(value).expect("a string"));
        assert_eq!(shown, r#""\u001b[2J\u007f\u009b31m\u202e\udb40\udc01é""#);
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), value);
    }
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_escaped_and_other_text_is_unchanged() {
        assert_eq!(escape_control("a\x1b[2J\r\n\tb"), "a\\x1b[2J\\r\\n\\tb");
        assert_eq!(escape_control("\u{9b}x\u{202e}y"), "\\u{9b}x\\u{202e}y");
        assert_eq!(escape_control("日本 🚀 é e\u{301}"), "日本 🚀 é e\u{301}");
    }

    #[test]
    fn invisible_and_reversing_characters_and_excess_marks_are_escaped() {
        let hidden = ['\u{200b}', '\u{200d}', '\u{200f}', '\u{61c}', '\u{2066}', '\u{2028}', '\u{ad}', '\u{e0041}'];
        for c in hidden {
            assert_eq!(escape_control(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        for alone in [
            "\u{200d}👧",
            "👩\u{200d}",
            "👩\u{200d}\u{200d}👧",
            "👩\u{200d} 👧",
            "می\u{200c}\n",
            "a\u{200c}b",
            "é\u{200d}é",
        ] {
            assert!(escape_control(alone).contains("\\u{200"), "{alone:?}");
        }
        let tower = format!("e{}x", "\u{301}".repeat(6));
        assert_eq!(escape_control(&tower), format!("e{}\\u{{301}}\\u{{301}}x", "\u{301}".repeat(4)));
    }

    /// The broken code spoilt them: `👩\u{200d}👩\u{200d}👧`.
    #[test]
    fn joiners_between_letters_or_emoji_are_text() {
        let family = "👩\u{200d}👩\u{200d}👧";
        let heart = "❤\u{fe0f}\u{200d}🔥";
        let dark = "👨🏾\u{200d}⚕\u{fe0f}";
        let (persian, hindi) = ("می\u{200c}خواهم", "क्\u{200d}ष");
        for text in [family, heart, dark, persian, hindi] {
            assert_eq!((escape_control(text), only_lines_and_colours(text)), (text.into(), text.into()));
        }
    }

    #[test]
    fn a_mark_stays_with_its_character_and_its_width_is_counted() {
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        // The broken code counted the heart alone, which is one column without its selector.
        assert_eq!(cut("❤\u{fe0f}❤\u{fe0f}", 3), "❤\u{fe0f}…");
        for width in 0..8 {
            assert!(columns(&cut("❤\u{fe0f}a❤\u{fe0f}", width)) <= width);
        }
    }

    #[test]
    fn the_first_and_the_last_line_are_those_a_terminal_shows() {
        let text = "\n\x1b[1;31mred\x1b[0m one \n10%\r20%\r\n\x1b]0;title\x07\n";
        assert_eq!((first_line(text).as_deref(), last_line(text).as_deref()), (Some("red one"), Some("20%")));
        assert_eq!(last_line("a\n\x1b]8;;link\x1b\\b\x1b[3"), Some("b".into()));
        assert_eq!(last_line("\x1b[31mred\x1b(B\x0f\x1b[m"), Some("red".into()), "as ncurses ends a colour");
        assert_eq!((first_line(" \n"), last_line("")), (None, None));
    }

    #[test]
    fn wide_characters_count_as_two_columns_and_are_never_cut_in_half() {
        assert_eq!(columns("日本🚀"), 6);
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".into(), String::new()));
        assert_eq!(pad("日本", 6), "日本  ");
    }

    #[test]
    fn long_text_is_wrapped_and_its_last_line_is_cut() {
        assert_eq!(wrap("日本語abc", 4, 3), ["日本", "語ab", "c"]);
        assert_eq!(wrap("abcdefghij", 3, 2), ["abc", "de…"]);
        assert_eq!(wrap("one two three four", 8, 9), ["one two", "three", "four"]);
        assert_eq!(
            (wrap("", 3, 2), wrap("日", 1, 2), wrap("ab", 0, 2)),
            (vec!["".into()], vec!["…".into()], vec!["".into()])
        );
    }

    #[test]
    fn a_count_of_one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "line")), ["0 lines", "1 line", "2 lines"]);
    }

    #[test]
    fn sizes_keep_two_digits() {
        let shown: Vec<String> = [0, 1023, 1536, 20 << 20, 3 << 40].into_iter().map(bytes).collect();
        assert_eq!(shown, ["0", "1023", "1.5K", "20M", "3.0T"]);
        assert_eq!([1, 1023, 1536].map(size), ["1 byte", "1023 bytes", "1.5K"]);
    }

    proptest! {
        #[test]
        fn any_text_fits_the_width_and_has_no_control_character(text in any::<String>(), width in 0usize..40) {
            let safe = escape_control(&text);
            prop_assert!(!safe.chars().any(char::is_control));
            prop_assert!(columns(&cut(&safe, width)) <= width);
        }
    }
}
