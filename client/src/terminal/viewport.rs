//! A screen of another size than ours, drawn by an emulator: as much of it as fits, in place, and a line that says so. Pure.

use super::dec_graphics::DecGraphics;
use std::fmt::Write;
use std::num::NonZeroU16;
use toold_proto::pty::PtySize;

/// A screen of our own, on which a long line is not continued.
const ENTER_VIEWPORT: &str = "\x1b[?1049h\x1b[?7l\x1b[m\x1b[2J";

pub struct Viewport {
    emulator: vt100::Parser,
    graphics: DecGraphics,
    /// The rows as they stand on our screen, and its size.
    drawn: Vec<String>,
    ours: PtySize,
}

impl Viewport {
    /// A view of a screen of the size `theirs`, on which this was shown. The bytes that begin it on ours.
    pub fn new(theirs: PtySize, ours: PtySize, shown: &[u8]) -> (Viewport, Vec<u8>) {
        let (rows, cols) = parser_size(theirs);
        let mut view = Viewport {
            emulator: vt100::Parser::new(rows, cols, 0),
            graphics: DecGraphics::default(),
            drawn: Vec::new(),
            ours,
        };
        view.process(shown);
        (view, ENTER_VIEWPORT.into())
    }

    fn process(&mut self, bytes: &[u8]) {
        let text = self.graphics.to_unicode(bytes);
        let emulator = &mut self.emulator;
        let fed = super::replay::catch_panic(|| emulator.process(&text));
        if fed.is_none() {
            // Its state may be anything; the program draws again sooner or later.
            let (rows, cols) = self.emulator.screen().size();
            self.emulator = vt100::Parser::new(rows, cols, 0);
        }
    }

    /// What the program writes next, as bytes for our screen.
    pub fn draw(&mut self, bytes: &[u8], status: &str) -> Vec<u8> {
        self.process(bytes);
        self.frame(status)
    }

    /// The same when one of the screens has another size now.
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

    /// Somebody else had our screen.
    pub fn invalidate(&mut self) {
        self.drawn.clear();
    }

    /// The rows that have changed, the word in the last one, and the cursor where it is, if it is in the part that is shown.
    fn frame(&mut self, status: &str) -> Vec<u8> {
        let screen = self.emulator.screen();
        let (height, width) = (self.ours.rows.saturating_sub(1) as u16, self.ours.cols as u16);
        let (row, col) = screen.cursor_position();
        // The part with the cursor, for there something happens; the beginning, if there is none.
        let (top, left) = match screen.hide_cursor() {
            true => (0, 0),
            false => (first_visible(row, height), first_visible(col.min(screen.size().1.get() - 1), width)),
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

/// The first of so many that are shown, so that this one is.
fn first_visible(at: u16, room: u16) -> u16 {
    (at + 1).saturating_sub(room.max(1))
}

fn parser_size(size: PtySize) -> (NonZeroU16, NonZeroU16) {
    let side = |n: u32, usual| u16::try_from(n).ok().and_then(NonZeroU16::new).unwrap_or(usual);
    (side(size.rows, vt100::Parser::DEFAULT_ROWS), side(size.cols, vt100::Parser::DEFAULT_COLS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const THEIRS: PtySize = PtySize { rows: 6, cols: 20 };
    const OURS: PtySize = PtySize { rows: 4, cols: 8 };

    /// Our screen after these bytes.
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
    fn what_does_not_fit_is_cut_and_nothing_wraps_or_scrolls() {
        let output = b"\x1b[?25l\x1b[1;1Habcdefghijklmnop\x1b[3;7H\x1b[31mred and more\x1b[6;1Hlast row";
        let (mut view, begin) = Viewport::new(THEIRS, OURS, output);
        let mut screen = ours(&begin);
        screen.process(&view.draw(b"", "[a word that is long]"));
        assert_eq!(lines(&screen), ["abcdefgh", "", "      re", "[a word"]);
        screen.process(&view.draw(b"\x1b[2;1Hnew", "[a word that is long]"));
        assert_eq!(lines(&screen), ["abcdefgh", "new", "      re", "[a word"]);
    }

    #[test]
    fn the_part_with_the_cursor_is_shown() {
        let (mut view, begin) = Viewport::new(THEIRS, OURS, b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n$ a long line");
        let mut screen = ours(&begin);
        screen.process(&view.draw(b"", "[]"));
        assert_eq!(
            (lines(&screen), screen.screen().cursor_position()),
            (vec![String::new(), String::new(), "ng line".into(), "[]".into()], (2, 7))
        );
        screen.process(&view.draw(b"\r\x1b[5A", "[]"));
        assert_eq!(
            (lines(&screen), screen.screen().cursor_position()),
            (vec!["one".into(), "two".into(), "three".into(), "[]".into()], (0, 0))
        );
    }

    #[test]
    fn a_larger_window_shows_all_of_it_and_only_what_changed_is_written() {
        let theirs = PtySize { rows: 2, cols: 5 };
        let (mut view, begin) = Viewport::new(theirs, OURS, b"12345678");
        let mut screen = ours(&begin);
        screen.process(&view.draw(b"", "[]"));
        assert_eq!(lines(&screen), ["12345", "678", "", "[]"], "it wraps where the program has it");
        let next = String::from_utf8(view.draw(b"9", "[]")).expect("it is text");
        assert_eq!(next, "\x1b[?25l\x1b[2;1H\x1b[m\x1b[2K6789\x1b[m\x1b[2;5H\x1b[?25h");
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_size_make_it_fail(shown in proptest::collection::vec(any::<u8>(), 0..200), more in proptest::collection::vec(any::<u8>(), 0..80), a in (0u32..9, 0u32..9), b in (0u32..9, 0u32..9)) {
            let size = |(rows, cols)| PtySize { rows, cols };
            let (mut view, _) = Viewport::new(size(a), size(b), &shown);
            view.draw(&more, "[]");
            view.fit(size(b), size(a), "[]");
        }
    }
}
