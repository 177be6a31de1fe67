//! Splits the output of a server into lines, within a bound: of a longer line only its id is found. Pure.

/// The longest id that is looked for in a line that is not kept.
const MAX_ID_LEN: usize = 512;
/// A buffer of this capacity is kept between lines.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A line of a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without its end. It begins at the offset `from` of the log.
    Whole { bytes: &'a [u8], from: u64 },
    /// Longer than the bound. Its bytes are in the log from `from` on.
    TooLong { id: Option<String>, len: u64, from: u64 },
}

/// The bytes since the last end of a line.
pub struct LineSplitter {
    max_len: usize,
    line: Vec<u8>,
    /// The offset at which it begins.
    start: u64,
    /// The line is longer than the bound: its length so far, and the search for its id.
    long: Option<(u64, IdScan)>,
}

impl LineSplitter {
    pub fn new(start: u64, max_len: usize) -> LineSplitter {
        LineSplitter { max_len, line: Vec::new(), start, long: None }
    }

    /// Returns the offset of the first line that has not ended.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Forgets a line whose rest was dropped. The next bytes begin at `start`.
    pub fn reset(&mut self, start: u64) {
        self.line.clear();
        self.long = None;
        self.start = start;
    }

    /// Takes a page of the log, which ends at the offset `next`. `cursor` returns the offset after a number of its bytes. Calls
    /// `each` with every line that ends in it.
    pub fn feed(&mut self, bytes: &[u8], next: u64, cursor: impl Fn(usize) -> u64, mut each: impl FnMut(Line<'_>)) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(len) = memchr::memchr(b'\n', rest) else {
                self.add(rest);
                break;
            };
            self.add(rest.get(..len).unwrap_or_default());
            at += len + 1;
            self.end(&mut each);
            self.start = cursor(at);
        }
        if self.line.is_empty() && self.long.is_none() {
            // Output of the other stream follows the last line.
            self.start = next;
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some((len, scan)) = &mut self.long {
            *len += bytes.len() as u64;
            scan.feed(bytes);
        } else if self.line.len() + bytes.len() > self.max_len {
            let mut scan = IdScan::default();
            scan.feed(&self.line);
            scan.feed(bytes);
            self.long = Some(((self.line.len() + bytes.len()) as u64, scan));
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, each: &mut impl FnMut(Line<'_>)) {
        match self.long.take() {
            Some((len, scan)) => each(Line::TooLong { id: scan.id, len, from: self.start }),
            None => {
                let bytes = self.line.trim_ascii();
                if !bytes.is_empty() {
                    each(Line::Whole { bytes, from: self.start });
                }
            }
        }
        self.line.clear();
        self.line.shrink_to(KEPT_CAPACITY);
    }
}

/// Finds the id of an answer that is a text, in JSON that is read byte by byte and not kept.
#[derive(Default)]
pub struct IdScan {
    pub id: Option<String>,
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    /// The next text of the outermost object is a name.
    at_name: bool,
    /// The name that was read last is `id`.
    after_id: bool,
    /// The text that may be a name or the id, with its quotes.
    text: Option<Vec<u8>>,
}

impl IdScan {
    /// Returns the id in a whole line.
    pub fn find(line: &[u8]) -> Option<String> {
        let mut scan = IdScan::default();
        scan.feed(line);
        scan.id
    }

    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_text {
                self.in_text(*byte);
            } else {
                self.between_texts(*byte);
            }
        }
    }

    fn in_text(&mut self, byte: u8) {
        match &mut self.text {
            Some(text) if text.len() < MAX_ID_LEN => text.push(byte),
            Some(_) => self.text = None,
            None => {}
        }
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.in_text = false;
                let text = self.text.take().and_then(|text| serde_json::from_slice::<String>(&text).ok());
                match text {
                    Some(text) if self.at_name => self.after_id = text == "id",
                    Some(text) => self.id = Some(text),
                    None => {}
                }
            }
            // A part of the text.
            _ => {}
        }
    }

    fn between_texts(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_text = true;
                let is_wanted = self.depth == 1 && (self.at_name || self.after_id);
                self.text = is_wanted.then(|| vec![byte]);
            }
            b'{' | b'[' => {
                self.depth += 1;
                (self.at_name, self.after_id) = (self.depth == 1 && byte == b'{', false);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' if self.depth == 1 => (self.at_name, self.after_id) = (true, false),
            b':' if self.depth == 1 => self.at_name = false,
            // Numbers, blanks and the like.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in pieces of `len` bytes.
    fn split(text: &str, len: usize, max_len: usize) -> Vec<String> {
        let (mut splitter, mut all) = (LineSplitter::new(0, max_len), Vec::new());
        for (n, piece) in text.as_bytes().chunks(len).enumerate() {
            let from = (n * len) as u64;
            splitter.feed(
                piece,
                from + piece.len() as u64,
                |len| from + len as u64,
                |line| {
                    all.push(match line {
                        Line::Whole { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
                        Line::TooLong { id, len, from } => format!("{id:?} {len} {from}"),
                    })
                },
            );
        }
        all.push(format!("{}", splitter.start()));
        all
    }

    #[test]
    fn lines_are_the_same_in_whatever_pieces_they_come() {
        let text = "{\"a\":1}\r\n\n  x\nfifteen letters\nopen";
        for len in 1..text.len() + 1 {
            assert_eq!(split(text, len, 100), ["{\"a\":1}", "x", "fifteen letters", "30"], "{len}");
            assert_eq!(split(text, len, 10), ["{\"a\":1}", "x", "None 15 14", "30"], "{len}");
        }
    }

    #[test]
    fn the_id_of_a_line_that_is_too_long_is_found_wherever_it_is() {
        let result = r#"{"id":"no","t":"\"id\":\"no\"","deep":[{"id":"no"}]}"#;
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":"proc_1/a-\"7","result":{result}}}"#),
            format!(r#"{{"result":{result},"jsonrpc":"2.0", "id" : "proc_1/a-\"7" }}"#),
        ] {
            for len in [1, 3, 1000] {
                let expected = format!("{:?} {} 0", Some("proc_1/a-\"7"), line.len());
                assert_eq!(split(&format!("{line}\n"), len, 20)[0], expected, "{line}");
            }
        }
        assert_eq!(IdScan::find(br#"{"id":7,"result":{"id":"no"},"x":"id"}"#), None);
        assert_eq!(IdScan::find(format!(r#"{{"id":"{}"}}"#, "x".repeat(9999)).as_bytes()), None);
        assert_eq!(IdScan::find(br#"[{"id":"in an array"}]"#), None);
    }
}
