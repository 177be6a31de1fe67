//! Secrets that are longer than the overlap, at an edge of a window where the text goes on: only a part of them is visible.

use crate::OVERLAP_BYTES;
use std::ops::Range;

/// The shortest line of a wrapped block. PEM has 64 characters a line, OpenSSH 70, `base64` 76.
const MIN_WRAPPED_LEN: usize = 40;

/// Edges of a window at which the text goes on beyond what the caller read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Open {
    pub start: bool,
    pub end: bool,
}

impl Open {
    pub const NONE: Open = Open { start: false, end: false };
    pub const BOTH: Open = Open { start: true, end: true };
}

/// Returns the parts at open edges that may be the inside of a long token or key: more characters than the overlap, without a
/// break. Its beginning or end is not visible, so no rule can decide.
pub(crate) fn find_fragments(text: &str, open: Open) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    if open.start {
        let len = run_len(bytes.iter().copied());
        found.extend((len > OVERLAP_BYTES).then_some(0..len));
    }
    if open.end {
        let len = run_len(bytes.iter().rev().copied());
        found.extend((len > OVERLAP_BYTES).then_some(bytes.len() - len..bytes.len()));
    }
    found
}

/// The length of the run of token characters at the edge, or of wrapped base64, whichever is longer.
fn run_len(bytes: impl Iterator<Item = u8> + Clone) -> usize {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_.~%-".contains(byte);
    bytes.clone().take_while(is_token).count().max(wrapped_len(bytes))
}

/// The length of the lines of base64 at the edge. All but the outer ones have one length and letters of both cases: lists of paths
/// and of hashes do not. In JSON a line ends with a backslash, and the next one begins with the `n` after it.
fn wrapped_len(bytes: impl Iterator<Item = u8>) -> usize {
    let (mut line, mut is_first, mut width, mut end) = (LineChars::default(), true, None, 0);
    for (at, byte) in bytes.enumerate() {
        match byte {
            b'\r' => {}
            // The line at the edge is cut, so it may have any length.
            b'\n' | b'\\' if is_first || (line.is_wrapped() && *width.get_or_insert(line.len) == line.len) => {
                (line, is_first) = (LineChars::default(), false);
            }
            _ if line.add(byte) => {
                if line.len <= width.unwrap_or(usize::MAX) {
                    end = at + 1;
                }
            }
            _ => break,
        }
    }
    end
}

/// The characters of a line so far.
#[derive(Default)]
struct LineChars {
    len: usize,
    has_upper: bool,
    has_lower: bool,
}

impl LineChars {
    /// Adds a character of base64. Returns false for another one.
    fn add(&mut self, byte: u8) -> bool {
        self.len += 1;
        self.has_upper |= byte.is_ascii_uppercase();
        self.has_lower |= byte.is_ascii_lowercase();
        byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
    }

    fn is_wrapped(&self) -> bool {
        self.len >= MIN_WRAPPED_LEN && self.has_upper && self.has_lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64_lines(lines: usize) -> String {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB";
        format!("{line}\n").repeat(lines)
    }

    #[test]
    fn a_long_run_at_an_open_edge_is_hidden_and_a_short_one_is_not() {
        let run = "aB3.-_".repeat(1000);
        let text = format!("{run} middle {run}");
        let len = text.len();
        assert_eq!(find_fragments(&text, Open::BOTH), [0..6000, len - 6000..len]);
        assert_eq!(find_fragments(&text, Open::NONE), [0..0; 0]);
        assert_eq!(find_fragments("short run", Open::BOTH), [0..0; 0]);
    }

    #[test]
    fn lines_of_a_key_without_its_first_and_last_line_are_hidden() {
        let lines = base64_lines(80);
        for cut in [0, 1, 30, 64, 65] {
            let text = format!("{}-- text\n", &lines[cut..]);
            let found = find_fragments(&text, Open { start: true, end: false });
            assert_eq!(found.as_slice(), std::slice::from_ref(&(0..lines.len() - cut - 1)));
            let text = format!("text --\n{}", &lines[..lines.len() - cut]);
            let found = find_fragments(&text, Open { start: false, end: true });
            assert_eq!(found.as_slice(), std::slice::from_ref(&(8..text.len())));
        }
    }

    #[test]
    fn lists_of_paths_and_prose_stay() {
        let paths: String =
            (0..400).map(|n| format!("usr/share/doc/package{n}/a/long/path/to/some/file/copyright\n")).collect();
        let hashes = "6a220204c1b8f0e3d9a7f6b5c4d3e2f1a0b9c8d7\n".repeat(400);
        assert_eq!(find_fragments(&hashes, Open::BOTH), [0..0; 0]);
        assert_eq!(find_fragments(&paths, Open::BOTH), [0..0; 0]);
        assert_eq!(find_fragments(&"prose of some length, with breaks\n".repeat(500), Open::BOTH), [0..0; 0]);
    }
}
