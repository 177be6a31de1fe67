//! Viewport on a screen of another size than ours: an emulator draws the part that fits, above a status row. Pure.

use super::replay::{catch_panic, parser_size};
use std::fmt::Write;
use toold_ansi::DecGraphics;
use toold_proto::pty::PtySize;

/// Enters the alternate screen and turns off line wrapping.
const ENTER_VIEWPORT: &str = "\x1b[?1049h\x1b[?7l\x1b[m\x1b[2J";

/// The part of the program's screen that fits into our window.
pub struct Viewport {
    emulator: vt100::Parser,
    graphics: DecGraphics,
    /// The rows on our screen.
    drawn: Vec<String>,
    /// Our window size.
    ours: PtySize,
}

impl Viewport {
    /// Creates a viewport on a screen of the size `theirs` with the output `shown`. Also returns the bytes that prepare our screen.
    pub fn new(theirs: PtySize, ours: PtySize, shown: &[u8]) -> (Viewport, Vec<u8>) {
        let (rows, cols) = parser_size(theirs);
        let mut viewport = Viewport {
            emulator: vt100::Parser::new(rows, cols, 0),
            graphics: DecGraphics::default(),
            drawn: Vec::new(),
            ours,
        };
        viewport.process(shown);
        (viewport, ENTER_VIEWPORT.into())
    }

    fn process(&mut self, bytes: &[u8]) {
        let text = self.graphics.translate(bytes);
        let emulator = &mut self.emulator;
        let fed = catch_panic(|| emulator.process(&text));
        if fed.is_none() {
            // Its state may be anything; the program draws again sooner or later.
            let (rows, cols) = self.emulator.screen().size();
            self.emulator = vt100::Parser::new(rows, cols, 0);
        }
    }

    /// Processes output of the program and returns the bytes that update our screen.
    pub fn draw(&mut self, bytes: &[u8], status: &str) -> Vec<u8> {
        self.process(bytes);
        self.frame(status)
    }

    /// Adapts to new sizes and returns the bytes that update our screen.
    pub fn fit(&mut self, theirs: PtySize, ours: PtySize, status: &str) -> Vec<u8> {
        let (rows, cols) = parser_size(theirs);
        if self.emulator.screen().size() != (rows, cols) {
            self.emulator.set_size(rows, cols);
        }
        let mut out = Vec::new();
        if self.ours != ours {
            self.ours = ours;
            self.drawn.clear();
            out.extend(b"\x1b[m\x1b[2J");
        }
        out.extend(self.frame(status));
        out
    }

    /// Forgets the drawn rows, after another program used our screen.
    pub fn invalidate(&mut self) {
        self.drawn.clear();
    }

    /// Returns the rows that have changed, the status in the last one, and the cursor position.
    fn frame(&mut self, status: &str) -> Vec<u8> {
        let screen = self.emulator.screen();
        let (height, width) = (self.ours.rows.saturating_sub(1) as u16, self.ours.cols as u16);
        let (row, col) = screen.cursor_position();
        // Show the part with the cursor, since changes happen there; the top left corner if the cursor is hidden.
        let (top, left) = if screen.hide_cursor() {
            (0, 0)
        } else {
            (first_visible(row, height), first_visible(col.min(screen.size().1.get() - 1), width))
        };
        let shown = screen.rows_formatted(left, width.min(screen.size().1.get() - left));
        let mut rows: Vec<String> = shown.skip(top.into()).take(height.into()).collect();
        rows.resize(height.into(), String::new());
        let status: String = status.chars().take(width.into()).collect();
        rows.push(status);
        let mut out = String::from("\x1b[?25l");
        for (n, row) in rows.iter().enumerate().filter(|(n, row)| self.drawn.get(*n) != Some(row)) {
            let _ = write!(out, "\x1b[{};1H\x1b[m\x1b[2K{row}", n + 1);
        }
        let _ =
            write!(out, "\x1b[m\x1b[{};{}H", row - top.min(row) + 1, (col - left.min(col)).min(width.max(1) - 1) + 1);
        if !screen.hide_cursor() {
            out += "\x1b[?25h";
        }
        self.drawn = rows;
        out.into_bytes()
    }
}

/// Returns the first of `len` consecutive rows or columns that include `at`.
fn first_visible(at: u16, len: u16) -> u16 {
    (at + 1).saturating_sub(len.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THEIRS: PtySize = PtySize { rows: 6, cols: 20 };
    const OURS: PtySize = PtySize { rows: 4, cols: 8 };

    /// Returns our screen after these bytes.
    fn ours(bytes: &[u8]) -> vt100::Parser {
        let (rows, cols) = parser_size(OURS);
        let mut parser = vt100::Parser::new(rows, cols, 0);
        parser.process(bytes);
        parser
    }

    fn lines(screen: &vt100::Parser) -> Vec<String> {
        screen.screen().rows(0, OURS.cols as u16).map(|row| row.trim_end().to_owned()).collect()
    }

    #[test]
    fn text_that_does_not_fit_is_cut_and_nothing_wraps_or_scrolls() {
        let output = b"\x1b[?25l\x1b[1;1Habcdefghijklmnop\x1b[3;7H\x1b[31mred and more\x1b[6;1Hlast row";
        let (mut viewport, begin) = Viewport::new(THEIRS, OURS, output);
        let mut screen = ours(&begin);
        screen.process(&viewport.draw(b"", "[a long status row]"));
        assert_eq!(lines(&screen), ["abcdefgh", "", "      re", "[a long"]);
        screen.process(&viewport.draw(b"\x1b[2;1Hnew", "[a long status row]"));
        assert_eq!(lines(&screen), ["abcdefgh", "new", "      re", "[a long"]);
    }

    #[test]
    fn the_part_with_the_cursor_is_shown() {
        let (mut viewport, begin) =
            Viewport::new(THEIRS, OURS, b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n$ a long line");
        let mut screen = ours(&begin);
        screen.process(&viewport.draw(b"", "[]"));
        assert_eq!(
            (lines(&screen), screen.screen().cursor_position()),
            (vec![String::new(), String::new(), "ng line".into(), "[]".into()], (2, 7))
        );
        screen.process(&viewport.draw(b"\r\x1b[5A", "[]"));
        assert_eq!(
            (lines(&screen), screen.screen().cursor_position()),
            (vec!["one".into(), "two".into(), "three".into(), "[]".into()], (0, 0))
        );
    }

    #[test]
    fn a_larger_window_shows_the_whole_screen_and_only_changes_are_written() {
        let theirs = PtySize { rows: 2, cols: 5 };
        let (mut viewport, begin) = Viewport::new(theirs, OURS, b"12345678");
        let mut screen = ours(&begin);
        screen.process(&viewport.draw(b"", "[]"));
        assert_eq!(lines(&screen), ["12345", "678", "", "[]"], "it wraps at the program's width");
        let next = String::from_utf8(viewport.draw(b"9", "[]")).expect("it is text");
        assert_eq!(next, "\x1b[?25l\x1b[2;1H\x1b[m\x1b[2K6789\x1b[m\x1b[2;5H\x1b[?25h");
    }

    proptest! {
        #[test]
        fn any_bytes_and_sizes_are_accepted(shown in proptest::collection::vec(any::<u8>(), 0..200), more in proptest::collection::vec(any::<u8>(), 0..80), a in (0u32..9, 0u32..9), b in (0u32..9, 0u32..9)) {
            let size = |(rows, cols)| PtySize { rows, cols };
            let (mut viewport, _) = Viewport::new(size(a), size(b), &shown);
            viewport.draw(&more, "[]");
            viewport.fit(size(b), size(a), "[]");
        }
    }
}
