//! Lines of a text: their places, comparison by a key, and indentation. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The starts of the lines of a text.
pub struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<u32>,
}

impl<'a> LineIndex<'a> {
    /// Finds the lines. Returns None for a text of 4 GiB or more.
    pub fn new(text: &'a str) -> Option<LineIndex<'a>> {
        u32::try_from(text.len()).ok()?;
        let after_newline = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1);
        let mut starts: Vec<u32> = std::iter::once(0).chain(after_newline).collect();
        // What follows the last line end is a line only if there is something.
        if starts.last().is_some_and(|last| *last as usize == text.len()) {
            starts.pop();
        }
        Some(LineIndex { text, starts })
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the place of a line, without its end.
    pub fn range(&self, line: usize) -> Range<usize> {
        let start = self.starts[line] as usize;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| *next as usize);
        start..end - usize::from(self.text[start..end].ends_with('\n'))
    }

    pub fn line(&self, line: usize) -> &'a str {
        &self.text[self.range(line)]
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.len()).map(|line| self.line(line))
    }

    /// Returns the place of some lines, with the end of the last one if `with_end` and if it has one.
    pub fn block(&self, first: usize, count: usize, with_end: bool) -> Range<usize> {
        let start = self.starts[first] as usize;
        let last = self.range(first + count - 1).end;
        start..last + usize::from(with_end && self.text[last..].starts_with('\n'))
    }
}

/// The lines of a request: without the empty one after a last line end.
pub struct Pattern<'a> {
    pub lines: Vec<&'a str>,
    pub ends_with_newline: bool,
}

impl<'a> Pattern<'a> {
    pub fn new(text: &'a str) -> Pattern<'a> {
        let body = text.strip_suffix('\n');
        Pattern { lines: body.unwrap_or(text).split('\n').collect(), ends_with_newline: body.is_some() }
    }
}

/// Returns the first lines of all places where the lines have the keys of the pattern. They do not overlap.
pub fn find(text: &LineIndex<'_>, pattern: &[&str], key: impl Fn(&str) -> Cow<'_, str>) -> Vec<usize> {
    // Lines become numbers of equal length, so that a linear search for bytes finds them however often they repeat.
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut needle = Vec::with_capacity(pattern.len() * 4);
    for line in pattern {
        let next = numbers.len() as u32 + 1;
        let number = *numbers.entry(key(line).into_owned()).or_insert(next);
        needle.extend_from_slice(&number.to_be_bytes());
    }
    let mut hay = Vec::with_capacity(text.len() * 4);
    for line in text.iter() {
        hay.extend_from_slice(&numbers.get(key(line).as_ref()).copied().unwrap_or(0).to_be_bytes());
    }
    let finder = memchr::memmem::Finder::new(&needle);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(offset) = hay.get(at..).and_then(|rest| finder.find(rest)) {
        let start = at + offset;
        if start % 4 == 0 {
            found.push(start / 4);
            at = start + needle.len();
        } else {
            at = start + 1;
        }
    }
    found
}

/// Returns the blanks and tabs that a line begins with.
pub fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The indentation of an old line and of the line of the file that it matched.
#[derive(Debug, Clone, Copy)]
pub struct IndentPair<'a> {
    /// The number of the old line.
    pub line: usize,
    pub old: &'a str,
    pub file: &'a str,
}

/// Changes the indentation of new lines as that of the old lines differs from the file's. With `skip_first` the first line is
/// left alone: it begins inside a line.
pub fn reindent(new: &str, pairs: &[IndentPair<'_>], skip_first: bool) -> String {
    if pairs.iter().all(|pair| pair.old == pair.file) {
        return new.to_owned();
    }
    let mut text = String::with_capacity(new.len());
    for (number, line) in new.split('\n').enumerate() {
        if number > 0 {
            text.push('\n');
        }
        let own = indent(line);
        if line.len() == own.len() || (skip_first && number == 0) {
            text.push_str(line);
            continue;
        }
        text.push_str(&moved(number, own, pairs));
        text.push_str(&line[own.len()..]);
    }
    text
}

/// Returns the indentation in the file of a new line that has `own` in the request.
fn moved(number: usize, own: &str, pairs: &[IndentPair<'_>]) -> String {
    // The deepest old line that is not deeper; of several, the nearest.
    let rank = |pair: &&IndentPair<'_>| (std::cmp::Reverse(pair.old.len()), pair.line.abs_diff(number));
    if let Some(pair) = pairs.iter().filter(|pair| own.starts_with(pair.old)).min_by_key(rank) {
        return format!("{}{}", pair.file, &own[pair.old.len()..]);
    }
    // It is less indented than every old line.
    let Some(IndentPair { old, file, .. }) = pairs.first() else { return own.to_owned() };
    match file.strip_suffix(old) {
        Some(more) => format!("{more}{own}"),
        None => own[old.len().saturating_sub(file.len()).min(own.len())..].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_places() {
        let index = LineIndex::new("a\nbb\n\nc").expect("short");
        assert_eq!(index.iter().collect::<Vec<_>>(), ["a", "bb", "", "c"]);
        assert_eq!(index.block(1, 2, true), 2..6);
        assert_eq!(index.block(1, 2, false), 2..5);
        assert_eq!(LineIndex::new("a\n").map(|index| index.len()), Some(1));
        assert_eq!(LineIndex::new("").map(|index| index.len()), Some(0));
    }

    #[test]
    fn blocks_of_lines_are_found_by_key_and_do_not_overlap() {
        let index = LineIndex::new("a\n a\na \na\nb\n").expect("short");
        assert_eq!(find(&index, &["a", "a"], |line| line.trim().into()), [0, 2]);
        assert_eq!(find(&index, &["a", "b"], |line| line.trim().into()), [3]);
        assert_eq!(find(&index, &["c"], |line| line.trim().into()), Vec::<usize>::new());
    }

    #[test]
    fn new_lines_are_moved_as_the_old_ones_were() {
        type Pairs = &'static [(&'static str, &'static str)];
        let table: [(&str, Pairs, &str); 7] = [
            ("a\nb", &[("", ""), ("", "  ")], "a\n  b"),
            ("a\n  b", &[("", "    ")], "    a\n      b"),
            ("    a\n        b\n\nc", &[("    ", "\t"), ("        ", "\t\t")], "\ta\n\t\tb\n\nc"),
            ("    a", &[("    ", "")], "a"),
            ("  a\nb", &[("    ", "  ")], "a\nb"),
            ("a\n  b", &[("  ", "    ")], "  a\n    b"),
            ("  same", &[("  ", "  ")], "  same"),
        ];
        for (new, pairs, expected) in table {
            let pair = |(line, (old, file)): (usize, &(&'static str, &'static str))| IndentPair { line, old, file };
            let pairs: Vec<IndentPair<'_>> = pairs.iter().enumerate().map(pair).collect();
            assert_eq!(reindent(new, &pairs, false), expected, "{new:?} {pairs:?}");
        }
        assert_eq!(reindent("a\nb", &[IndentPair { line: 1, old: "", file: "  " }], true), "a\n  b");
    }
}
