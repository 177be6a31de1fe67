//! Newline framing: one JSON message per line. Blank lines are ignored.

use super::frame::{Decode, Frame, ReadBuffer};

/// Cuts bytes into lines of at most `max` bytes.
pub struct Lines {
    buffer: ReadBuffer,
    /// The length of the unread prefix without a newline.
    scanned: usize,
    /// Inside a line over the limit: everything up to its newline is dropped.
    skipping: bool,
    max: usize,
}

impl Lines {
    pub fn new(max: usize) -> Lines {
        Lines { buffer: ReadBuffer::default(), scanned: 0, skipping: false, max }
    }
}

impl Decode for Lines {
    fn read_buf(&mut self) -> &mut Vec<u8> {
        self.buffer.read_buf()
    }

    fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            let unread = self.buffer.bytes();
            let Some(found) = memchr::memchr(b'\n', &unread[self.scanned..]) else {
                self.scanned = unread.len();
                let too_long = unread.len() > self.max;
                if self.skipping || too_long {
                    self.buffer.clear();
                    self.scanned = 0;
                }
                if too_long && !self.skipping {
                    self.skipping = true;
                    return Some(Frame::TooLong);
                }
                return None;
            };
            let line = self.buffer.take(self.scanned + found + 1);
            self.scanned = 0;
            let line = line.start..line.end - 1;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.max {
                return Some(Frame::TooLong);
            }
            if !is_blank(self.buffer.get(line.clone())) {
                return Some(Frame::Message(self.buffer.get(line)));
            }
        }
    }

    fn last(&mut self) -> Option<Frame<'_>> {
        // `printf '{...}' | nc -N` sends no newline at the end.
        let line = self.buffer.take(usize::MAX);
        self.scanned = 0;
        let line = self.buffer.get(line);
        (!self.skipping && !is_blank(line)).then_some(Frame::Message(line))
    }

    fn encode(out: &mut Vec<u8>, json: &str) {
        out.extend_from_slice(json.as_bytes());
        out.push(b'\n');
    }

    fn encode_owned(out: &mut Vec<u8>, json: Box<str>) {
        *out = String::from(json).into_bytes();
        out.reserve_exact(1);
        out.push(b'\n');
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| b.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(max: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, &'static str>> {
        let mut lines = Lines::new(max);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.feed(chunk);
            while let Some(frame) = lines.next() {
                found.push(match frame {
                    Frame::Message(line) => Ok(line.to_vec()),
                    Frame::TooLong => Err("too long"),
                    Frame::Broken(why) => Err(why),
                });
            }
        }
        if let Some(Frame::Message(line)) = lines.last() {
            found.push(Ok(line.to_vec()));
        }
        found
    }

    #[test]
    fn blank_lines_are_ignored_and_the_last_line_needs_no_newline() {
        assert_eq!(
            all(9, &[b"\n \r\n{}\r\n[1]\nend"]),
            [Ok(b"{}\r".to_vec()), Ok(b"[1]".to_vec()), Ok(b"end".to_vec())]
        );
    }

    #[test]
    fn a_long_line_is_reported_once_and_costs_no_memory() {
        let mut lines = Lines::new(100);
        let mut reported = 0;
        for _ in 0..1000 {
            lines.feed(&[b'x'; 5000]);
            while let Some(frame) = lines.next() {
                assert_eq!(frame, Frame::TooLong);
                reported += 1;
            }
            assert!(lines.read_buf().capacity() <= 64 * 1024);
        }
        lines.feed(b"\n{}\n");
        assert_eq!((reported, lines.next()), (1, Some(Frame::Message(b"{}"))));
    }

    proptest! {
        #[test]
        fn bytes_cut_anywhere_are_the_same_lines(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'x')], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..20),
            max in 0usize..12,
        ) {
            prop_assert_eq!(all(max, &super::super::cut(&text, &cuts)), all(max, &[&text]));
        }
    }
}
