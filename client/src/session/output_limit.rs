//! The bound of `run --max-output`: the beginning is printed as it comes, the end when there is no more. Pure.

use std::collections::VecDeque;
use toold_proto::params::Stream;

/// Divides output into a head, which is printed at once, and a tail, which is kept. What is between is counted.
pub struct OutputLimit {
    /// Bytes of the head that are still to come.
    head: usize,
    max_tail: usize,
    tail: VecDeque<(Stream, Vec<u8>)>,
    tail_len: usize,
    left_out: u64,
}

impl OutputLimit {
    /// Makes a limit of `max` bytes for both streams together.
    pub fn new(max: u64) -> OutputLimit {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        OutputLimit { head: max / 2, max_tail: max - max / 2, tail: VecDeque::new(), tail_len: 0, left_out: 0 }
    }

    /// Takes a piece of output, and returns the part of it that belongs to the head.
    pub fn take<'a>(&mut self, stream: Stream, piece: &'a [u8]) -> &'a [u8] {
        if piece.len() <= self.head {
            self.head -= piece.len();
            return piece;
        }
        let (now, later) = piece.split_at(line_end(piece, self.head));
        self.head = 0;
        self.tail_len += later.len();
        self.tail.push_back((stream, later.to_vec()));
        while let Some((_, first)) = self.tail.front()
            && self.tail_len - first.len() >= self.max_tail
        {
            self.tail_len -= first.len();
            self.left_out += first.len() as u64;
            self.tail.pop_front();
        }
        now
    }

    /// Returns the bytes that were left out, and the tail.
    pub fn finish(mut self) -> (u64, Vec<(Stream, Vec<u8>)>) {
        let excess = self.tail_len.saturating_sub(self.max_tail);
        if let Some((_, first)) = self.tail.front_mut().filter(|_| excess > 0) {
            let start = line_start(first, excess);
            self.left_out += start as u64;
            first.drain(..start);
        }
        (self.left_out, self.tail.into())
    }
}

/// Returns the end of the last line that ends at `max` or before, or of the last character if there is no line.
fn line_end(bytes: &[u8], max: usize) -> usize {
    match bytes[..max].iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None => (0..=max).rev().find(|at| is_boundary(bytes, *at)).unwrap_or(0),
    }
}

/// Returns the start of the first line at or after `at`, or of the first character if there is no line.
fn line_start(bytes: &[u8], at: usize) -> usize {
    match bytes[at - 1..].iter().position(|byte| *byte == b'\n') {
        Some(found) if at + found < bytes.len() => at + found,
        Some(_) | None => (at..bytes.len()).find(|at| is_boundary(bytes, *at)).unwrap_or(bytes.len()),
    }
}

/// Returns true if no character of UTF-8 continues here.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints lines in pieces of this length. Returns the head, the number of bytes that were left out, and the tail.
    fn cut(text: &str, max: u64, piece_len: usize) -> (String, u64, String) {
        let mut limit = OutputLimit::new(max);
        let head: Vec<u8> =
            text.as_bytes().chunks(piece_len).flat_map(|p| limit.take(Stream::Stdout, p).to_vec()).collect();
        let (left_out, tail) = limit.finish();
        let tail: Vec<u8> = tail.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let text = |bytes| String::from_utf8(bytes).expect("whole characters");
        (text(head), left_out, text(tail))
    }

    #[test]
    fn head_and_tail_are_whole_lines_and_the_rest_is_counted() {
        let lines: String = (10..100).map(|n| format!("{n}\n")).collect();
        assert_eq!(cut(&lines, 20, 270), ("10\n11\n12\n".into(), 252, "97\n98\n99\n".into()));
        for piece_len in [1, 2, 3, 7, 64, 1000] {
            let (head, left_out, tail) = cut(&lines, 20, piece_len);
            assert!(lines.starts_with(&head) && lines.ends_with(&tail), "{piece_len}: {head:?} {tail:?}");
            assert!(head.len() <= 10 && tail.len() <= 10 && tail.len() >= 6, "{piece_len}: {head:?} {tail:?}");
            assert_eq!(head.len() as u64 + left_out + tail.len() as u64, 270, "{piece_len}");
        }
    }

    #[test]
    fn output_within_the_limit_is_unchanged_and_a_character_is_never_cut() {
        for text in ["", "short", "exactly10!"] {
            let (head, left_out, tail) = cut(text, 10, 3);
            assert_eq!((head + &tail, left_out), (text.into(), 0));
        }
        let (head, left_out, tail) = cut(&"\u{e4}".repeat(50), 11, 100);
        assert_eq!((head, left_out, tail), ("\u{e4}".repeat(2), 90, "\u{e4}".repeat(3)));
    }
}
