//! Counts of a program's output: bytes, lines, and the bytes that are not kept.

use crate::Stream;

/// The facts about a log that need no reading of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Every byte the program ever wrote, kept or not; the cursor after the last one.
    pub end: u64,
    pub out_newlines: u64,
    pub err_newlines: u64,
    /// The stream's last byte was not a newline.
    pub out_open: bool,
    pub err_open: bool,
    /// The last byte of either stream was not a newline.
    pub last_open: bool,
    /// Bytes that were kept once and dropped for newer ones.
    pub dropped: u64,
    /// Bytes that the disk refused.
    pub unstored: u64,
}

impl Counts {
    /// Counts the lines of both streams, each stream by itself; an unterminated last line is one.
    pub fn lines(&self) -> u64 {
        self.lines_of(Some(Stream::Stdout)) + self.lines_of(Some(Stream::Stderr))
    }

    /// Counts the lines of one stream, or of the merged text: there a line may hold bytes of both.
    #[inline]
    pub fn lines_of(&self, stream: Option<Stream>) -> u64 {
        let open = match stream {
            None => self.last_open,
            Some(Stream::Stdout) => self.out_open,
            Some(Stream::Stderr) => self.err_open,
        };
        self.newlines(stream).saturating_add(u64::from(open))
    }

    #[inline]
    pub fn newlines(&self, stream: Option<Stream>) -> u64 {
        match stream {
            None => self.out_newlines.saturating_add(self.err_newlines),
            Some(Stream::Stdout) => self.out_newlines,
            Some(Stream::Stderr) => self.err_newlines,
        }
    }

    /// Counts `bytes` as written, kept or not.
    #[inline]
    pub fn advance(&mut self, stream: Stream, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let (newlines, open) = match stream {
            Stream::Stdout => (&mut self.out_newlines, &mut self.out_open),
            Stream::Stderr => (&mut self.err_newlines, &mut self.err_open),
        };
        // Counting is vectorised in memchr; there is no work per line.
        *newlines = newlines.saturating_add(memchr::memchr_iter(b'\n', bytes).count() as u64);
        *open = *last != b'\n';
        self.last_open = *open;
        self.end = self.end.saturating_add(bytes.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_counts_once_for_its_stream() {
        let mut counts = Counts::default();
        counts.advance(Stream::Stdout, b"a\nb");
        counts.advance(Stream::Stderr, b"c\n");
        let expected = Counts { end: 5, out_newlines: 1, err_newlines: 1, out_open: true, ..Counts::default() };
        assert_eq!(counts, expected);
        // Merged, the text is "a\nbc\n": two lines.
        assert_eq!((counts.lines(), counts.lines_of(None)), (3, 2));
    }
}
