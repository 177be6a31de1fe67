//! One row of a screen without a right edge: what is left of a line that a program drew over itself.
//!
//! Carriage return, backspace, tab and the sequences that move within a row or erase parts of it act as on a terminal. Other
//! sequences and control characters draw nothing.

use super::page::{PageEnd, decode_page};
use std::collections::BTreeMap;
use toold_ansi::{escape_len, next_escape, starts_escape, unterminated_len};
use toold_proto::params::Ansi;
use unicode_width::UnicodeWidthChar;

/// The last column to which a sequence moves. A larger one would cost memory without text.
const MAX_COLUMN: usize = 1024;
const TAB_WIDTH: usize = 8;
/// The second cell of a character that has two.
const WIDE_REST: char = '\0';

#[derive(Debug, Default)]
pub(super) struct Row {
    cells: Vec<char>,
    /// Characters without a width of their own, by the cell that they belong to.
    marks: BTreeMap<usize, String>,
    column: usize,
}

impl Row {
    /// Draws a line without its end. Returns the row and the number of bytes drawn: with `More`, an incomplete character or
    /// sequence at the end waits for the rest.
    pub fn draw(line: &[u8], end: PageEnd) -> (Row, usize) {
        let mut row = Row::default();
        let mut at = 0;
        while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
            let len = if starts_escape(rest) {
                let len = match (escape_len(rest), end) {
                    (Some(len), _) => len,
                    (None, PageEnd::Last) => unterminated_len(rest),
                    (None, PageEnd::More) => 0,
                };
                row.sequence(rest.get(..len).unwrap_or_default());
                len
            } else {
                let escape = next_escape(rest);
                let run = rest.get(..escape.unwrap_or(rest.len())).unwrap_or_default();
                // A character does not continue after a sequence.
                let run_end = if escape.is_some() { PageEnd::Last } else { end };
                let (text, len) = decode_page(run, run.len(), run_end, Ansi::Keep);
                text.chars().for_each(|c| row.put(c));
                len
            };
            if len == 0 {
                break;
            }
            at += len;
        }
        (row, at)
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\x08' => self.column = self.column.saturating_sub(1),
            '\t' => {
                let stop = (self.column / TAB_WIDTH + 1) * TAB_WIDTH;
                self.fill_to(stop);
                self.column = stop;
            }
            _ => match c.width() {
                // Another control character.
                None => {}
                Some(0) => {
                    if let Some(cell) = self.column.checked_sub(1) {
                        self.marks.entry(self.base_of(cell)).or_default().push(c);
                    }
                }
                Some(width) => {
                    self.fill_to(self.column + width);
                    self.blank(self.column, self.column + width);
                    self.cells[self.column] = c;
                    self.cells[self.column + 1..self.column + width].fill(WIDE_REST);
                    self.column += width;
                }
            },
        }
    }

    /// Applies a sequence: `CSI n K` erases, `CSI n G`, `C` and `D` move.
    fn sequence(&mut self, sequence: &[u8]) {
        let Some([parameters @ .., last]) = sequence.strip_prefix(b"\x1b[") else { return };
        let number = if parameters.is_empty() { Some(0) } else { number(parameters) };
        let Some(number) = number else { return };
        let steps = number.max(1);
        match (last, number) {
            (b'K', 0) => self.truncate(self.column),
            (b'K', 1) => self.blank(0, (self.column + 1).min(self.cells.len())),
            (b'K', 2) => self.truncate(0),
            (b'G', _) => self.column = (steps - 1).min(MAX_COLUMN),
            (b'C', _) => self.column = (self.column + steps).min(MAX_COLUMN.max(self.column)),
            (b'D', _) => self.column = self.column.saturating_sub(steps),
            // It moves to another row, or draws nothing.
            _ => {}
        }
    }

    fn fill_to(&mut self, len: usize) {
        if self.cells.len() < len {
            self.cells.resize(len, ' ');
        }
    }

    fn truncate(&mut self, len: usize) {
        self.blank(len, self.cells.len());
        self.cells.truncate(len);
    }

    /// Makes cells blank. Half of a wide character leaves a blank, as on a terminal.
    fn blank(&mut self, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let first = self.base_of(from);
        let rest = usize::from(self.cells.get(to) == Some(&WIDE_REST));
        self.cells[first..to + rest].fill(' ');
        if !self.marks.is_empty() {
            self.marks.retain(|cell, _| !(first..to + rest).contains(cell));
        }
    }

    /// Returns the first cell of the character in this cell.
    fn base_of(&self, cell: usize) -> usize {
        cell - usize::from(cell > 0 && self.cells.get(cell) == Some(&WIDE_REST))
    }

    /// Appends the text of the row.
    pub fn write(&self, text: &mut String) {
        self.write_to(self.cells.len(), text);
    }

    /// Appends text that draws the row and leaves the position where it is now, so that more text continues the line.
    pub fn write_open(&self, text: &mut String) {
        self.write(text);
        if self.column < self.cells.len() {
            text.push('\r');
            if self.base_of(self.column) < self.column {
                // Inside a wide character: behind it, and back.
                self.write_to(self.column + 1, text);
                text.push('\x08');
            } else {
                self.write_to(self.column, text);
            }
        } else {
            text.extend(std::iter::repeat_n(' ', self.column - self.cells.len()));
        }
    }

    fn write_to(&self, len: usize, text: &mut String) {
        for (cell, c) in self.cells.iter().take(len).enumerate().filter(|(_, c)| **c != WIDE_REST) {
            text.push(*c);
            if !self.marks.is_empty() {
                text.extend(self.marks.get(&cell).map(String::as_str));
            }
        }
    }
}

/// Reads the one parameter of a sequence. None: there are more, or others.
fn number(parameters: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(parameters).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().unwrap_or(MAX_COLUMN))
}
