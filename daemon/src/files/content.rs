//! FileFacts of a file's bytes as they pass by: lines, line ends, hash, and one page of lines. Pure.

use sha2::{Digest, Sha256};
use toold_proto::files::{Charset, LineEnding};

/// Bytes in which a NUL makes a file binary.
const BINARY_CHECK_BYTES: usize = 8192;

/// Returns the hash as hexadecimal text.
pub fn hex_sha256(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

fn to_hex(digest: &[u8]) -> String {
    use std::fmt::Write;
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the charset by the byte order mark, and the length of the mark.
pub fn charset(start: &[u8]) -> (Charset, usize) {
    match start {
        [0xef, 0xbb, 0xbf, ..] => (Charset::Utf8, 3),
        // Not the start of UTF-32.
        [0xff, 0xfe, 0, 0, ..] => (Charset::Utf8, 0),
        [0xff, 0xfe, ..] => (Charset::Utf16Le, 2),
        [0xfe, 0xff, ..] => (Charset::Utf16Be, 2),
        _ => (Charset::Utf8, 0),
    }
}

/// Returns true if a file that begins so is not text.
pub fn is_binary(start: &[u8]) -> bool {
    let (charset, _) = charset(start);
    let checked = &start[..start.len().min(BINARY_CHECK_BYTES)];
    charset == Charset::Utf8 && memchr::memchr(0, checked).is_some()
}

/// Decodes UTF-16 after its mark. Returns also true if something was not valid.
pub fn decode_utf16(bytes: &[u8], charset: Charset) -> (String, bool) {
    let unit = |pair: &[u8]| match charset {
        Charset::Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
        Charset::Utf16Le | Charset::Utf8 => u16::from_le_bytes([pair[0], pair[1]]),
    };
    let mut lossy = !bytes.len().is_multiple_of(2);
    let text = char::decode_utf16(bytes.chunks_exact(2).map(unit))
        .map(|c| {
            c.unwrap_or_else(|_| {
                lossy = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    (text, lossy)
}

/// Encodes text as UTF-16, without a mark.
pub fn encode_utf16(text: &str, charset: Charset) -> Vec<u8> {
    let bytes = |unit: u16| match charset {
        Charset::Utf16Be => unit.to_be_bytes(),
        Charset::Utf16Le | Charset::Utf8 => unit.to_le_bytes(),
    };
    text.encode_utf16().flat_map(bytes).collect()
}

/// Counts of line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineEnds {
    lf: u64,
    crlf: u64,
    cr: u64,
    // The last byte was a carriage return.
    after_cr: bool,
    // The last byte ended no line.
    is_inside: bool,
}

impl LineEnds {
    pub fn of(bytes: &[u8]) -> LineEnds {
        let mut ends = LineEnds::default();
        ends.update(bytes);
        ends
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        let mut from = 0;
        if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
            self.cr -= 1;
            self.crlf += 1;
            from = 1;
        }
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if at < from {
                continue;
            }
            match bytes[at] {
                b'\n' => self.lf += 1,
                _ if bytes.get(at + 1) == Some(&b'\n') => {
                    self.crlf += 1;
                    from = at + 2;
                }
                _ => self.cr += 1,
            }
        }
        self.after_cr = last == b'\r';
        self.is_inside = !matches!(last, b'\n' | b'\r');
    }

    pub fn kind(&self) -> Option<LineEnding> {
        match (self.lf, self.crlf, self.cr) {
            (0, 0, 0) => None,
            (_, 0, 0) => Some(LineEnding::Lf),
            (0, _, 0) => Some(LineEnding::Crlf),
            (0, 0, _) => Some(LineEnding::Cr),
            _ => Some(LineEnding::Mixed),
        }
    }

    /// Returns the byte that ends lines. A carriage return ends them only in a file without line feeds.
    pub fn terminator(&self) -> u8 {
        if self.kind() == Some(LineEnding::Cr) { b'\r' } else { b'\n' }
    }

    pub fn lines(&self) -> u64 {
        match self.kind() {
            Some(LineEnding::Cr) => self.cr + u64::from(self.is_inside),
            // After its last line feed a mixed file may have a carriage return, and the text before it is a line.
            _ => self.lf + self.crlf + u64::from(self.is_inside || self.after_cr),
        }
    }
}

/// A page of lines, collected from bytes that pass by.
#[derive(Debug)]
pub struct FilePage {
    terminator: u8,
    /// Lines before the page.
    skip: u64,
    limit: u64,
    max_bytes: usize,
    pub bytes: Vec<u8>,
    /// Complete lines in the page.
    pub lines: u64,
    /// Bytes of the page beyond `max_bytes` are counted only.
    pub total_bytes: u64,
    /// Characters of the whole page, if it is UTF-8.
    pub total_chars: u64,
}

impl FilePage {
    /// Begins the page of `limit` lines from line `offset` on, which counts from 1. Keeps at most `max_bytes`.
    pub fn new(terminator: u8, offset: u64, limit: u64, max_bytes: usize) -> FilePage {
        let skip = offset.saturating_sub(1);
        FilePage { terminator, skip, limit, max_bytes, bytes: Vec::new(), lines: 0, total_bytes: 0, total_chars: 0 }
    }

    pub fn is_complete(&self) -> bool {
        self.lines >= self.limit
    }

    pub fn update(&mut self, mut bytes: &[u8]) {
        while self.skip > 0 {
            let Some(at) = memchr::memchr(self.terminator, bytes) else { return };
            self.skip -= 1;
            bytes = &bytes[at + 1..];
        }
        while !self.is_complete() && !bytes.is_empty() {
            let end = memchr::memchr(self.terminator, bytes);
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
            bytes = rest;
            self.total_bytes += line.len() as u64;
            self.total_chars += line.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
            let room = self.max_bytes.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&line[..line.len().min(room)]);
            self.lines += u64::from(end.is_some());
        }
    }
}

/// The hash and the line ends of a file whose bytes pass by.
#[derive(Default)]
pub struct FileFacts {
    hash: Sha256,
    pub ends: LineEnds,
    pub bytes: u64,
}

impl FileFacts {
    pub fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.ends.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub fn sha256(&self) -> String {
        to_hex(&self.hash.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_lines_are_the_same_however_the_bytes_are_cut() {
        let table: [(&str, Option<LineEnding>, u64); 10] = [
            ("", None, 0),
            ("a", None, 1),
            ("a\n", Some(LineEnding::Lf), 1),
            ("a\nb", Some(LineEnding::Lf), 2),
            ("a\r\nb\r\n", Some(LineEnding::Crlf), 2),
            ("a\rb\r", Some(LineEnding::Cr), 2),
            ("a\rb", Some(LineEnding::Cr), 2),
            ("a\r\nb\n", Some(LineEnding::Mixed), 2),
            ("a\n\r", Some(LineEnding::Mixed), 2),
            ("\r\r\n\n", Some(LineEnding::Mixed), 2),
        ];
        for (text, kind, lines) in table {
            let whole = LineEnds::of(text.as_bytes());
            assert_eq!((whole.kind(), whole.lines()), (kind, lines), "{text:?}");
            for cut in 0..=text.len() {
                let mut ends = LineEnds::default();
                ends.update(&text.as_bytes()[..cut]);
                ends.update(&text.as_bytes()[cut..]);
                assert_eq!(ends, whole, "{text:?} at {cut}");
            }
        }
    }

    #[test]
    fn a_page_has_its_lines_however_the_bytes_are_cut() {
        let text = b"one\ntwo\nthree\nfour";
        let table: [(u64, u64, &[u8], u64); 5] = [
            (1, 2, b"one\ntwo\n", 2),
            (2, 2, b"two\nthree\n", 2),
            (3, 9, b"three\nfour", 1),
            (5, 1, b"", 0),
            (1, 0, b"", 0),
        ];
        for (offset, limit, expected, lines) in table {
            for cut in 0..=text.len() {
                let mut page = FilePage::new(b'\n', offset, limit, 1000);
                page.update(&text[..cut]);
                page.update(&text[cut..]);
                assert_eq!((page.bytes.as_slice(), page.lines), (expected, lines), "{offset} {limit} {cut}");
            }
        }
    }

    #[test]
    fn a_page_that_is_too_long_is_cut_and_its_bytes_are_counted() {
        let mut page = FilePage::new(b'\n', 1, 10, 7);
        page.update(b"one\ntwo\nthree\n");
        assert_eq!((page.bytes.as_slice(), page.total_bytes, page.lines), (&b"one\ntwo"[..], 14, 3));
    }

    #[test]
    fn utf16_is_decoded_and_encoded_by_its_mark() {
        for (charset_of, mark) in [(Charset::Utf16Le, [0xff, 0xfe]), (Charset::Utf16Be, [0xfe, 0xff])] {
            let encoded = encode_utf16("a\u{1f600}\n", charset_of);
            let whole = [mark.as_slice(), &encoded].concat();
            assert_eq!(charset(&whole), (charset_of, 2));
            assert!(!is_binary(&whole));
            assert_eq!(decode_utf16(&encoded, charset_of), ("a\u{1f600}\n".into(), false));
            assert!(decode_utf16(&encoded[..3], charset_of).1);
        }
        assert_eq!(charset(b"\xef\xbb\xbfa"), (Charset::Utf8, 3));
        assert!(is_binary(b"\x7fELF\0"));
    }
}
