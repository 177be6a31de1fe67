//! Lines out of bytes that come in pieces: the last ones, those that match, and their context. Pure.

use crate::render::text::without_escapes;
use regex::Regex;
use std::collections::VecDeque;

/// The lines that are wanted: those that match, with a number of lines before and after each.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub grep: Regex,
    pub before: usize,
    pub after: usize,
}

impl Wanted {
    /// Reports whether the text of a line matches, without its escape sequences.
    pub fn matches(&self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        self.grep.is_match(without_escapes(&text).trim_end_matches(['\n', '\r']))
    }

    fn has_context(&self) -> bool {
        self.before > 0 || self.after > 0
    }
}

/// A line to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    number: u64,
    matched: bool,
    bytes: Vec<u8>,
}

/// Selects the wanted lines out of bytes that come in pieces. A line is checked once it is complete.
pub struct Picker {
    wanted: Wanted,
    held: Vec<u8>,
    number: u64,
    /// Lines that are context if the next one matches.
    before: VecDeque<Line>,
    /// The number of lines that are still context of the last match.
    after: usize,
    /// The last line that was returned for printing.
    printed: Option<u64>,
}

impl Picker {
    pub fn new(wanted: Wanted) -> Picker {
        Picker { wanted, held: Vec::new(), number: 0, before: VecDeque::new(), after: 0, printed: None }
    }

    /// Resets the selection, to start again further back.
    pub fn restart(&mut self) {
        *self = Picker::new(self.wanted.clone());
    }

    /// Adds bytes and returns the lines to show now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        self.held.extend_from_slice(bytes);
        let whole = self.held.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let rest = self.held.split_off(whole);
        let whole = std::mem::replace(&mut self.held, rest);
        whole.split_inclusive(|b| *b == b'\n').flat_map(|line| self.line(line)).collect()
    }

    /// Ends the input: an open line counts as a line.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut line = std::mem::take(&mut self.held);
        if line.is_empty() {
            return Vec::new();
        }
        line.push(b'\n');
        self.line(&line)
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Line> {
        let line = Line { number: self.number, matched: self.wanted.matches(bytes), bytes: bytes.to_vec() };
        self.number += 1;
        if line.matched {
            self.after = self.wanted.after;
            return self.before.drain(..).chain([line]).collect();
        }
        if self.after > 0 {
            self.after -= 1;
            return vec![line];
        }
        self.before.push_back(line);
        if self.before.len() > self.wanted.before {
            self.before.pop_front();
        }
        Vec::new()
    }

    /// Returns the lines as bytes, with a mark where lines between two were left out.
    pub fn print(&mut self, lines: &[Line]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            let gap = self.printed.is_some_and(|printed| printed + 1 < line.number);
            if gap && self.wanted.has_context() {
                out.extend_from_slice(b"--\n");
            }
            out.extend_from_slice(&line.bytes);
            self.printed = Some(line.number);
        }
        out
    }

    /// Returns the last `wanted` of these lines that match, with their context.
    pub fn last(&self, lines: Vec<Line>, most: u64) -> Vec<Line> {
        let matches: Vec<u64> = lines.iter().filter(|line| line.matched).map(|line| line.number).collect();
        let Some(first) = (matches.len() as u64).checked_sub(most) else { return lines };
        let Some(number) = matches.get(first as usize) else { return Vec::new() };
        let before = first.checked_sub(1).and_then(|at| matches.get(at as usize));
        let begin = number.saturating_sub(self.wanted.before as u64).max(before.map_or(0, |before| before + 1));
        lines.into_iter().filter(|line| line.number >= begin).collect()
    }

    pub fn count(lines: &[Line]) -> u64 {
        lines.iter().filter(|line| line.matched).count() as u64
    }
}

/// Returns where the first line begins in bytes that may begin inside a line.
pub fn first_line(bytes: &[u8], whole: bool) -> usize {
    if whole { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1) }
}

/// Returns where the last `wanted` lines begin. None: there are fewer.
pub fn last_lines(bytes: &[u8], wanted: u64) -> Option<usize> {
    if wanted == 0 {
        return Some(bytes.len());
    }
    // A newline at the very end ends the last line and begins none.
    let inside = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let nth = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
    let ends = inside.iter().enumerate().rev().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
    ends.into_iter().nth(nth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(grep: &str, before: usize, after: usize) -> Wanted {
        Wanted { grep: Regex::new(grep).expect("a pattern"), before, after }
    }

    fn picked(wanted: Wanted, most: Option<u64>, text: &str) -> String {
        let mut picker = Picker::new(wanted);
        let mut lines = picker.push(text.as_bytes());
        lines.extend(picker.finish());
        let lines = most.map_or(lines.clone(), |most| picker.last(lines, most));
        String::from_utf8_lossy(&picker.print(&lines)).into_owned()
    }

    #[test]
    fn context_stands_around_a_match_once_and_a_mark_where_lines_are_left_out() {
        let text = "1\n2\nx3\n4\n5\n6\n7\nx8\nx9\n10";
        assert_eq!(picked(wanted("x", 0, 0), None, text), "x3\nx8\nx9\n");
        assert_eq!(picked(wanted("x", 1, 0), None, text), "2\nx3\n--\n7\nx8\nx9\n");
        assert_eq!(picked(wanted("x", 0, 1), None, text), "x3\n4\n--\nx8\nx9\n10\n");
        assert_eq!(picked(wanted("x", 2, 2), None, text), "1\n2\nx3\n4\n5\n6\n7\nx8\nx9\n10\n");
    }

    #[test]
    fn the_last_matches_keep_their_own_context_and_not_that_of_the_ones_before() {
        let text = "x1\n2\n3\nx4\n5\nx6\n7\n";
        assert_eq!(picked(wanted("x", 1, 1), Some(1), text), "5\nx6\n7\n");
        assert_eq!(picked(wanted("x", 9, 9), Some(1), text), "5\nx6\n7\n");
        assert_eq!(picked(wanted("x", 1, 1), Some(2), text), "3\nx4\n5\nx6\n7\n");
        assert_eq!(picked(wanted("x", 1, 1), Some(9), text), "x1\n2\n3\nx4\n5\nx6\n7\n");
        assert_eq!(picked(wanted("x", 1, 1), Some(0), text), "");
    }

    #[test]
    fn a_pattern_sees_the_text_and_not_its_colours() {
        assert_eq!(
            picked(wanted("^error$", 0, 0), None, "\x1b[31mer\x1b[1mror\x1b[0m\r\n"),
            "\x1b[31mer\x1b[1mror\x1b[0m\r\n"
        );
    }

    #[test]
    fn the_last_lines_begin_where_they_begin() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), Some(2));
        assert_eq!(last_lines(b"a\nb\nc", 2), Some(2));
        assert_eq!((last_lines(b"a\nb\n", 2), last_lines(b"", 1), last_lines(b"a\n", 0)), (None, None, Some(2)));
        assert_eq!((first_line(b"half\nb", false), first_line(b"half", false), first_line(b"a\nb", true)), (5, 4, 0));
    }

    proptest! {
        #[test]
        fn any_cut_of_the_text_gives_the_same_lines(
            text in "[xy\n]{0,40}", cuts in proptest::collection::vec(0usize..41, 0..5), before in 0usize..3, after in 0usize..3,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut picker = Picker::new(wanted("x", before, after));
            let mut shown = Vec::new();
            let mut done = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                let lines = picker.push(&text.as_bytes()[done..cut]);
                shown.extend(picker.print(&lines));
                done = cut;
            }
            let lines = picker.finish();
            shown.extend(picker.print(&lines));
            prop_assert_eq!(String::from_utf8_lossy(&shown).into_owned(), picked(wanted("x", before, after), None, &text));
            if before + after == 0 {
                let expected: String = text.lines().filter(|l| l.contains('x')).map(|l| format!("{l}\n")).collect();
                prop_assert_eq!(String::from_utf8_lossy(&shown).into_owned(), expected);
            }
        }
    }
}
