//! Collapses lines that a program drew over itself, like a progress bar: a page shows each as it stood last.

use super::page::{PageEnd, PageStart, decode_page, is_continuation, last_chars};
use super::row::Row;
use memchr::{memchr, memchr2, memrchr};
use std::ops::Range;
use toold_ansi::ESC;
use toold_proto::params::Ansi;

/// The form in which bytes are shown as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    pub ansi: Ansi,
    /// Show a line that is drawn over itself as it stood last. Only with `Strip`.
    pub collapse: bool,
}

impl TextForm {
    /// All text, without escape sequences.
    pub const PLAIN: TextForm = TextForm { ansi: Ansi::Strip, collapse: false };
    /// Lines as they stood last, without escape sequences.
    pub const COLLAPSED: TextForm = TextForm { ansi: Ansi::Strip, collapse: true };

    /// Returns true if the form shows these bytes in another way than byte by byte.
    pub fn redraws(self, bytes: &[u8]) -> bool {
        self.collapse && has_redraw(bytes)
    }
}

/// The bounds of the end of output. All of them hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailBound {
    pub lines: usize,
    pub chars: usize,
    pub bytes: usize,
}

impl TailBound {
    pub const NONE: TailBound = TailBound { lines: usize::MAX, chars: usize::MAX, bytes: usize::MAX };
}

/// The end of some bytes as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    pub text: String,
    /// The bytes that it shows. It begins with a line if that one is collapsed.
    pub range: Range<usize>,
    /// The text begins inside a collapsed line.
    pub is_cut: bool,
    /// False if bytes before these may change it.
    pub is_complete: bool,
}

/// The start of the line with which a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStart {
    /// The page begins with it.
    Here,
    /// It is before the page, or not known.
    Before,
}

/// The use of a line without a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenLine {
    /// It is shown.
    Shown,
    /// A later page continues it.
    Continued,
}

/// Returns true if a line in these bytes is drawn over itself.
pub fn has_redraw(bytes: &[u8]) -> bool {
    first_redraw(bytes).is_some()
}

/// Returns the place of the first return to the start of a line: a carriage return before its end, or the sequence for the
/// first column.
fn first_redraw(bytes: &[u8]) -> Option<Range<usize>> {
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'\r', ESC, rest)).map(|i| at + i) {
        let after = &bytes[found + 1..];
        at = found + 1;
        if bytes[found] == ESC {
            if let Some(sequence) = ["[G", "[1G"].iter().find(|sequence| after.starts_with(sequence.as_bytes())) {
                return Some(found..at + sequence.len());
            }
            continue;
        }
        // A program that writes CR LF itself gets a second CR from the terminal.
        let returns = after.iter().take_while(|byte| **byte == b'\r').count();
        match after.get(returns) {
            // The end of the bytes: the newline may not have come yet.
            None => return None,
            Some(b'\n') => at += returns,
            Some(_) => return Some(found..at + returns),
        }
    }
    None
}

/// Decodes the first `max` bytes of text, like `decode_page`, with lines as they stood last. Takes as many bytes as become
/// so much text. What a page before it or after it shows of the same line is not known here, so a line that begins or
/// ends outside keeps a carriage return there: pages in a row collapse to the same as all at once.
pub fn collapse_page(bytes: &[u8], max: usize, start: LineStart, end: PageEnd) -> (String, usize) {
    let (mut text, mut at) = (String::new(), 0);
    while at < bytes.len() && (at == 0 || text.len() < max) {
        let rest = &bytes[at..];
        let len = memchr(b'\n', rest).map(|i| i + 1);
        let line = &rest[..len.unwrap_or(rest.len())];
        let line_end = if len.is_some() { PageEnd::Last } else { end };
        let taken = if let Some(redraw) = first_redraw(line) {
            let (piece, taken) = match start {
                LineStart::Before if at == 0 => {
                    let (mut piece, _) = decode_page(&line[..redraw.start], line.len(), PageEnd::Last, Ansi::Strip);
                    let (shown, taken) = show_redrawn(&line[redraw.end..], line_end, OpenLine::Continued);
                    piece.push('\r');
                    piece.push_str(&shown);
                    (piece, redraw.end + taken)
                }
                LineStart::Before | LineStart::Here => show_redrawn(line, line_end, OpenLine::Continued),
            };
            if text.len() + piece.len() > max {
                // A collapsed line cannot be cut. One that is longer than a page is not collapsed.
                return if at == 0 { decode_page(bytes, max, end, Ansi::Strip) } else { (text, at) };
            }
            text.push_str(&piece);
            taken
        } else {
            let (piece, taken) = decode_page(line, max.saturating_sub(text.len()), line_end, Ansi::Strip);
            text.push_str(&piece);
            taken
        };
        at += taken;
        if taken < line.len() {
            break;
        }
    }
    (text, at)
}

/// Decodes all bytes for a reader to whom nothing of them is continued.
pub fn show_text(bytes: &[u8], end: PageEnd, form: TextForm) -> String {
    if !form.redraws(bytes) {
        return decode_page(bytes, bytes.len(), end, form.ansi).0;
    }
    let mut text = String::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let line_end = if line.ends_with(b"\n") { PageEnd::Last } else { end };
        text.push_str(&show_line(line, line_end, form).0);
    }
    text
}

/// Returns the end of bytes within bounds, which count what is shown.
pub fn tail(bytes: &[u8], bound: TailBound, start: PageStart, end: PageEnd, form: TextForm) -> Tail {
    let first = match start {
        PageStart::Whole => 0,
        PageStart::Cut => bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count(),
    };
    let mut room = bound;
    let mut shown: Vec<String> = Vec::new();
    let (mut from, mut to, mut is_complete, mut is_cut) = (bytes.len(), bytes.len(), true, false);
    while from > first && room.lines > 0 && room.chars > 0 && room.bytes > 0 {
        let body = &bytes[first..from - usize::from(bytes[from - 1] == b'\n')];
        let line_start = memrchr(b'\n', body).map_or(first, |i| first + i + 1);
        let line = &bytes[line_start..from];
        let is_last = from == bytes.len();
        let line_end = if is_last { end } else { PageEnd::Last };
        let is_partial = line_start == first && start == PageStart::Cut;
        let is_redrawn = form.redraws(line);
        let (text, taken) = show_line(line, line_end, form);
        if is_last {
            to = line_start + taken;
        }
        let fitting = fitting_chars(&text, room.chars, room.bytes);
        if fitting < text.chars().count() {
            // Its start is left out, so it does not matter whether it is here. That of a collapsed line does.
            is_complete = !(is_partial && is_redrawn);
            is_cut = is_redrawn;
            let (part, range) = if is_redrawn {
                let skipped = text.chars().count() - fitting;
                (text.chars().skip(skipped).collect(), 0..line.len())
            } else {
                last_chars(line, fitting, PageStart::Whole, line_end, form.ansi)
            };
            shown.push(part);
            from = line_start + range.start;
            break;
        }
        // A last line of nothing but escape sequences shows nothing, and is none.
        room.lines -= usize::from(!text.is_empty());
        room.chars -= fitting;
        room.bytes -= text.len();
        shown.push(text);
        from = line_start;
        is_complete = !is_partial;
    }
    Tail { text: shown.into_iter().rev().collect(), range: from.min(to)..to, is_cut, is_complete }
}

/// Returns the number of characters at the end of a text that fit.
fn fitting_chars(text: &str, max_chars: usize, max_bytes: usize) -> usize {
    if text.len() <= max_bytes && text.len() <= max_chars {
        return text.chars().count();
    }
    let mut bytes = 0;
    text.chars()
        .rev()
        .take(max_chars)
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= max_bytes
        })
        .count()
}

/// Returns the text of one line with its end, and the number of bytes that it shows.
fn show_line(line: &[u8], end: PageEnd, form: TextForm) -> (String, usize) {
    if form.redraws(line) {
        show_redrawn(line, end, OpenLine::Shown)
    } else {
        decode_page(line, line.len(), end, form.ansi)
    }
}

fn show_redrawn(line: &[u8], end: PageEnd, open: OpenLine) -> (String, usize) {
    let mut text = String::new();
    let Some(body) = line.strip_suffix(b"\n") else {
        let (row, taken) = Row::draw(line, end);
        match (open, end) {
            (OpenLine::Continued, PageEnd::More) => row.write_open(&mut text),
            (OpenLine::Shown, _) | (_, PageEnd::Last) => row.write(&mut text),
        }
        return (text, taken);
    };
    let returns = body.iter().rev().take_while(|byte| **byte == b'\r').count();
    let (row, _) = Row::draw(&body[..body.len() - returns], PageEnd::Last);
    row.write(&mut text);
    text.extend(std::iter::repeat_n('\r', returns));
    text.push('\n');
    (text, line.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        show_text(text.as_bytes(), PageEnd::Last, TextForm::COLLAPSED)
    }

    #[test]
    fn a_redrawn_line_is_shown_as_it_stood_last() {
        for (written, expected) in [
            ("10%\r20%\r100%\ndone\n", "100%\ndone\n"),
            ("downloading\rdone\n", "doneloading\n"),
            ("abcdef\rxy", "xycdef"),
            ("50%\r", "50%\r"),
            ("50%\r60%\r", "60%"),
            ("50%\r\x1b[Kdone\n", "done\n"),
            ("\x1b[32m50%\x1b[0m\r\x1b[2Kdone\r\n", "done\r\n"),
            ("\x1b[1G- one\x1b[1G\\ two\x1b[1G\x1b[0K+ end\n", "+ end\n"),
            ("abc\x08\x08XY\rZ\n", "ZXY\n"),
            ("a\tb\rc\n", "c       b\n"),
            ("日本\rab\n", "ab本\n"),
            ("日本\ra\n", "a 本\n"),
            ("ab\r日\n", "日\n"),
            ("e\u{301}f\rx\n", "xf\n"),
            ("x\x07y\rz\n", "zy\n"),
            ("abc\r\x1b[2Cd\n", "abd\n"),
            ("abc\r\x1b[1K\n", " bc\n"),
            ("\r\r\rx\n", "x\n"),
        ] {
            assert_eq!(shown(written), expected, "{written:?}");
        }
    }

    #[test]
    fn text_without_redrawn_lines_is_unchanged() {
        for text in ["", "a\n", "a\r\nb\r\n", "a\r\r\nb", "a\tb\x08c\n", "tail\r", "\r\n", "é日\n"] {
            assert!(!has_redraw(text.as_bytes()), "{text:?}");
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn a_column_far_away_costs_nothing() {
        assert_eq!(shown("a\r\x1b[999999999Gb\n").len(), MAX_WRITTEN);
        assert_eq!(shown("a\r\x1b[999999999999999999999999Cb\n").len(), MAX_WRITTEN);
    }

    /// The last column, a character in it and the newline.
    const MAX_WRITTEN: usize = 1024 + 2;

    fn tail_of(text: &str, bound: TailBound) -> (String, Range<usize>) {
        let tail = tail(text.as_bytes(), bound, PageStart::Whole, PageEnd::Last, TextForm::COLLAPSED);
        assert!(tail.is_complete, "{text:?}");
        (tail.text, tail.range)
    }

    #[test]
    fn the_bounds_of_a_tail_count_what_is_shown() {
        let text = "one\n10%\r20%\r100%\nlast\n";
        let lines = |lines| tail_of(text, TailBound { lines, ..TailBound::NONE });
        assert_eq!(lines(1), ("last\n".into(), 17..22));
        assert_eq!(lines(2), ("100%\nlast\n".into(), 4..22));
        assert_eq!(lines(9), ("one\n100%\nlast\n".into(), 0..22));
        let chars = |chars| tail_of(text, TailBound { chars, ..TailBound::NONE });
        assert_eq!(chars(3), ("st\n".into(), 19..22));
        assert_eq!(chars(7), ("%\nlast\n".into(), 4..22), "a collapsed line begins with its first byte");
        assert_eq!(chars(11), ("\n100%\nlast\n".into(), 3..22));
        let bytes = |bytes| tail_of("é日\n", TailBound { bytes, ..TailBound::NONE }).0;
        assert_eq!([bytes(0), bytes(3), bytes(4), bytes(5), bytes(6)], ["", "\n", "日\n", "日\n", "é日\n"]);
    }

    #[test]
    fn a_tail_that_begins_inside_a_line_is_complete_only_if_its_start_does_not_matter() {
        let complete = |text: &str, lines, chars| {
            let bound = TailBound { lines, chars, ..TailBound::NONE };
            tail(text.as_bytes(), bound, PageStart::Cut, PageEnd::Last, TextForm::COLLAPSED).is_complete
        };
        assert!(complete("ut\nlast\n", 1, 99) && !complete("ut\nlast\n", 2, 99) && !complete("ut\nlast\n", 9, 99));
        assert!(complete("ut line", 9, 3) && !complete("ut line", 9, 99) && !complete("a\rut line", 9, 3));
    }

    /// Generates output with redrawn lines. Text has no escape sequences that could erase what an earlier page showed.
    fn redrawn(with_sequences: bool) -> impl Strategy<Value = String> {
        let sequences = if with_sequences { ["\x1b[K", "\x1b[1G"] } else { ["", "\r"] };
        let piece = prop_oneof![
            4 => "[a-c日é]{0,3}",
            2 => Just("\r".to_owned()),
            1 => Just("\n".to_owned()),
            1 => Just("\r\n".to_owned()),
            2 => proptest::sample::select(sequences.to_vec()).prop_map(str::to_owned),
            1 => Just("\x08".to_owned()),
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn pages_of_any_size_collapse_to_the_same_text(
            text in redrawn(false), sizes in proptest::collection::vec(1_usize..40, 1..5), max in 1_usize..60,
        ) {
            let bytes = text.as_bytes();
            let (mut joined, mut at, mut available) = (String::new(), 0, 0);
            for size in sizes.iter().cycle() {
                // Output as far as it has come.
                available = bytes.len().min(available + size);
                let end = if available < bytes.len() { PageEnd::More } else { PageEnd::Last };
                loop {
                    let start = if at == 0 || bytes[at - 1] == b'\n' { LineStart::Here } else { LineStart::Before };
                    let (page, taken) = collapse_page(&bytes[at..available], max, start, end);
                    joined.push_str(&page);
                    at += taken;
                    if taken == 0 {
                        break;
                    }
                }
                if available == bytes.len() {
                    break;
                }
            }
            prop_assert_eq!(at, bytes.len());
            prop_assert_eq!(screen(&joined), screen(&text));
        }

        #[test]
        fn a_tail_is_the_end_of_the_collapsed_text(text in redrawn(true), chars in 0_usize..20, lines in 0_usize..5) {
            let whole = shown(&text);
            let tail = tail_of(&text, TailBound { chars, lines, ..TailBound::NONE }).0;
            let mut expected: Vec<&str> = whole.split_inclusive('\n').rev().take(lines).collect();
            expected.reverse();
            let expected = expected.concat();
            let skipped = expected.chars().count().saturating_sub(chars);
            prop_assert_eq!(tail, expected.chars().skip(skipped).collect::<String>());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), max in 0_usize..20) {
            for end in [PageEnd::More, PageEnd::Last] {
                let _ = show_text(&bytes, end, TextForm::COLLAPSED);
                let (_, taken) = collapse_page(&bytes, max, LineStart::Before, end);
                prop_assert!(taken <= bytes.len());
                let bound = TailBound { lines: max, chars: max, bytes: max };
                let _ = tail(&bytes, bound, PageStart::Cut, end, TextForm::COLLAPSED);
            }
        }
    }

    /// Returns the rows as a terminal shows them, blanks at their ends left out.
    fn screen(text: &str) -> Vec<String> {
        let row = |line: &str| {
            let mut text = String::new();
            Row::draw(line.as_bytes(), PageEnd::Last).0.write(&mut text);
            text.trim_end().to_owned()
        };
        text.split('\n').map(row).collect()
    }
}
