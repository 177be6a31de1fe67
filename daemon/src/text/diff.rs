//! Unified diffs, as `diff -u` and git print them. Pure.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// Bytes at the start of a file in which a NUL marks it as binary, as in git.
const BINARY_SAMPLE_LEN: usize = 8000;
/// Time for the search of a short diff of one file. What is left then is shown as removed and added.
const SEARCH_TIMEOUT: Duration = Duration::from_millis(500);
/// The name of a file that is not there.
pub const NO_FILE: &str = "/dev/null";

/// The difference of two texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnifiedDiff {
    /// Headers and hunks; empty if the texts are equal. Bytes that are not UTF-8 are replaced.
    pub text: String,
    pub added: u64,
    pub removed: u64,
    /// One of them is not text: `text` has only the note that they differ.
    pub binary: bool,
}

/// Returns true for bytes that are not text.
pub fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(BINARY_SAMPLE_LEN)]).is_some()
}

/// Compares two texts by lines. `before_name` and `after_name` are those of the headers: `a/path`, `b/path` or `NO_FILE`.
pub fn unified_diff(before_name: &str, after_name: &str, before: &[u8], after: &[u8]) -> UnifiedDiff {
    if before == after {
        return UnifiedDiff::default();
    }
    if is_binary(before) || is_binary(after) {
        let text = format!("Binary files {before_name} and {after_name} differ\n");
        return UnifiedDiff { text, binary: true, ..UnifiedDiff::default() };
    }
    let (old, new) = (lines(before), lines(after));
    let deadline = Some(Instant::now() + SEARCH_TIMEOUT);
    let ops = capture_diff_slices_deadline(Algorithm::Histogram, &old, &new, deadline);
    let mut diff = UnifiedDiff { text: format!("--- {before_name}\n+++ {after_name}\n"), ..UnifiedDiff::default() };
    for hunk in group_diff_ops(ops, CONTEXT_LINES) {
        diff.push_hunk(&hunk, &old, &new);
    }
    diff
}

impl UnifiedDiff {
    fn push_hunk(&mut self, hunk: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
        let (old_start, new_start) = (first.old_range().start, first.new_range().start);
        let old_len = last.old_range().end - old_start;
        let new_len = last.new_range().end - new_start;
        let _ = writeln!(self.text, "@@ -{} +{} @@", range(old_start, old_len), range(new_start, new_len));
        for op in hunk {
            let (tag, old_range, new_range) = op.as_tag_tuple();
            if tag == DiffTag::Equal {
                old[old_range].iter().for_each(|line| self.push_line(' ', line));
                continue;
            }
            self.removed += old_range.len() as u64;
            self.added += new_range.len() as u64;
            old[old_range].iter().for_each(|line| self.push_line('-', line));
            new[new_range].iter().for_each(|line| self.push_line('+', line));
        }
    }

    fn push_line(&mut self, mark: char, line: &[u8]) {
        self.text.push(mark);
        self.text.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            self.text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Formats the start and length of a hunk's side. An empty side starts at the line before it.
fn range(start: usize, len: usize) -> String {
    match len {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{len}", start + 1),
    }
}

/// Splits text into lines with their ends.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn diff(before: &str, after: &str) -> UnifiedDiff {
        unified_diff("a/f", "b/f", before.as_bytes(), after.as_bytes())
    }

    #[test]
    fn a_changed_line_is_shown_between_three_lines_of_context() {
        let found = diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        let text = "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(found, UnifiedDiff { text: text.into(), added: 1, removed: 1, binary: false });
    }

    #[test]
    fn a_missing_newline_and_an_empty_side_are_marked() {
        assert_eq!(diff("", "a\nb").text, "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
        let text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n";
        assert_eq!(diff("a\n", "a").text, text);
        assert_eq!(diff("a\n", "a\n"), UnifiedDiff::default());
    }

    #[test]
    fn bytes_that_are_not_text_are_not_shown() {
        let found = unified_diff("a/f", NO_FILE, b"a\0b", b"");
        assert_eq!((found.text.as_str(), found.binary), ("Binary files a/f and /dev/null differ\n", true));
        assert_eq!(
            unified_diff("a/f", "b/f", b"\xff\n", b"x\n").text,
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\u{fffd}\n+x\n"
        );
    }

    /// Applies a diff to the lines that it was made of, with the positions in its headers.
    fn apply(before: &str, diff: &str) -> String {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        let mut rows = diff.split_inclusive('\n').skip(2).peekable();
        while let Some(row) = rows.next() {
            let cut =
                if rows.peek().is_some_and(|next| next.starts_with('\\')) { row.trim_end_matches('\n') } else { row };
            match row.split_at(1) {
                ("@", _) => {
                    let side = row.split(' ').nth(1).expect("a range").trim_start_matches('-');
                    let (start, len) = side.split_once(',').unwrap_or((side, "1"));
                    let start = start.parse::<usize>().expect("a number") - usize::from(len != "0");
                    out.extend(old[at..start].iter().copied());
                    at = start;
                }
                (" ", _) => {
                    assert_eq!(old[at], &cut[1..]);
                    out.push_str(old[at]);
                    at += 1;
                }
                ("-", _) => {
                    assert_eq!(old[at], &cut[1..]);
                    at += 1;
                }
                ("+", _) => out.push_str(&cut[1..]),
                _ => {}
            }
        }
        out.extend(old[at..].iter().copied());
        out
    }

    proptest! {
        #[test]
        fn a_diff_applied_to_the_old_text_gives_the_new_one(before in "([ab]?\n){0,30}[ab]?", after in "([ab]?\n){0,30}[ab]?") {
            let found = diff(&before, &after);
            let made = if found.text.is_empty() { before.clone() } else { apply(&before, &found.text) };
            prop_assert_eq!(made, after);
        }
    }
}
