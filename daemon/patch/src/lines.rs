//! Lines of a file with their own ends.

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line and the bytes that end it: LF, CRLF, CR, or nothing at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub text: &'a [u8],
    pub end: &'a [u8],
}

/// A file as its byte order mark and its lines. Together they are its bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines<'a> {
    pub bom: &'a [u8],
    pub lines: Vec<Line<'a>>,
}

/// The line ends of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    Lf,
    Crlf,
    Cr,
    Mixed,
}

impl<'a> Lines<'a> {
    pub fn split(bytes: &'a [u8]) -> Lines<'a> {
        let (bom, rest) = bytes.split_at(if bytes.starts_with(BOM) { BOM.len() } else { 0 });
        // A CR alone ends lines only in a file that has nothing else.
        let ends_by_cr = !rest.contains(&b'\n');
        let is_end = |byte: &u8| *byte == b'\n' || (ends_by_cr && *byte == b'\r');
        let lines = rest.split_inclusive(is_end).map(|line| {
            let end = match line {
                [.., b'\r', b'\n'] => 2,
                [.., last] if is_end(last) => 1,
                _ => 0,
            };
            let (text, end) = line.split_at(line.len() - end);
            Line { text, end }
        });
        Lines { bom, lines: lines.collect() }
    }

    /// The end that a new line gets: that of the first line.
    pub fn new_end(&self) -> &'a [u8] {
        match self.lines.first() {
            Some(line) if !line.end.is_empty() => line.end,
            _ => b"\n",
        }
    }

    /// None: no line has an end.
    pub fn ending(&self) -> Option<LineEnding> {
        let mut ends = self.lines.iter().map(|line| line.end).filter(|end| !end.is_empty());
        let first = ends.next()?;
        Some(match (first, ends.all(|end| end == first)) {
            (_, false) => LineEnding::Mixed,
            (b"\r\n", true) => LineEnding::Crlf,
            (b"\r", true) => LineEnding::Cr,
            (_, true) => LineEnding::Lf,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn endings_are_distinguished() {
        let ending = |text: &str| Lines::split(text.as_bytes()).ending();
        assert_eq!(ending(""), None);
        assert_eq!(ending("a"), None);
        assert_eq!(ending("a\nb"), Some(LineEnding::Lf));
        assert_eq!(ending("a\r\nb\r\n"), Some(LineEnding::Crlf));
        assert_eq!(ending("a\rb\r"), Some(LineEnding::Cr));
        assert_eq!(ending("a\r\nb\n"), Some(LineEnding::Mixed));
        // A progress bar in a log is one line.
        assert_eq!(Lines::split(b"10%\r20%\nend\n").lines.len(), 2);
    }

    proptest! {
        #[test]
        fn lines_joined_are_the_file(bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..50)) {
            let split = Lines::split(&bytes);
            let mut joined = split.bom.to_vec();
            split.lines.iter().for_each(|line| joined.extend([line.text, line.end].concat()));
            prop_assert_eq!(joined, bytes);
        }
    }
}
