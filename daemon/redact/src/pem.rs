//! Private keys in PEM: from `BEGIN` to `END`, or the lines of base64 beside the one of them that is there.

use regex_automata::meta::Regex;
use std::ops::Range;

/// The boundaries of a block: PEM, OpenSSH, PGP, and the four dashes of SSH2.
pub(crate) const BOUNDARY: &str = r"-{4,5} ?(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}";
/// Code that names the boundaries has no run of this length between them.
const MIN_KEY_RUN: usize = 24;
/// Lines of a key hold a run of this length, whatever precedes them: a log's time, a quote, spaces.
const MIN_LINE_RUN: usize = 40;
/// A pair of boundaries farther apart is not one block.
const MAX_BLOCK_LEN: usize = 64 * 1024;

struct Boundary {
    place: Range<usize>,
    is_begin: bool,
}

/// Appends the place of every private key. `boundary` is compiled from [`BOUNDARY`].
pub(crate) fn find(text: &[u8], boundary: &Regex, found: &mut Vec<Range<usize>>) {
    let boundaries: Vec<Boundary> = boundary
        .find_iter(text)
        .map(|m| Boundary { place: m.range(), is_begin: memchr::memmem::find(&text[m.range()], b"BEGIN").is_some() })
        .collect();
    let mut previous_end = 0;
    let mut at = 0;
    while let Some(first) = boundaries.get(at) {
        let second = boundaries.get(at + 1);
        let closes = |second: &&Boundary| !second.is_begin && second.place.start - first.place.end <= MAX_BLOCK_LEN;
        if let Some(second) = second.filter(closes).filter(|_| first.is_begin) {
            if longest_run(&text[first.place.end..second.place.start]) >= MIN_KEY_RUN {
                found.push(first.place.start..second.place.end);
            }
            previous_end = second.place.end;
            at += 2;
            continue;
        }
        if first.is_begin {
            let limit = second.map_or(text.len(), |second| second.place.start);
            let end = lines_after(text, first.place.end, limit);
            found.extend((end > first.place.end).then_some(first.place.start..end));
        } else {
            let start = lines_before(text, first.place.start, previous_end);
            found.extend((start < first.place.start).then_some(start..first.place.end));
        }
        previous_end = first.place.end;
        at += 1;
    }
}

/// Returns the end of the lines of a key from `from` on. The last one may be short.
fn lines_after(text: &[u8], from: usize, limit: usize) -> usize {
    let (mut at, mut end) = (from, from);
    while at < limit {
        let line_end = memchr::memchr(b'\n', &text[at..limit]).map_or(limit, |len| at + len);
        let line = text[at..line_end].trim_ascii();
        if longest_run(line) >= MIN_LINE_RUN {
            end = line_end;
        } else if end > from || !(line.is_empty() || is_header(line)) {
            let is_last = end > from && !line.is_empty() && line.iter().all(is_base64);
            return if is_last { line_end } else { end };
        }
        at = line_end + 1;
    }
    end
}

/// Returns the start of the lines of a key before `to`. The first one may be short, because it is cut; the last one is.
fn lines_before(text: &[u8], to: usize, limit: usize) -> usize {
    let (mut at, mut start) = (to, to);
    let mut has_key = false;
    while at > limit {
        let line_start = memchr::memrchr(b'\n', &text[limit..at]).map_or(limit, |len| limit + len + 1);
        let line = text[line_start..at].trim_ascii();
        if longest_run(line) >= MIN_LINE_RUN {
            (start, has_key) = (line_start, true);
        } else if !line.is_empty() && line.iter().all(is_base64) {
            start = line_start;
            if has_key {
                break;
            }
        } else if start < to || !line.is_empty() {
            break;
        }
        let Some(next) = line_start.checked_sub(1) else { break };
        at = next;
    }
    // A short line alone is not a key, unless it is all that the window shows of one.
    if has_key || (start == limit && start < to) { start } else { to }
}

fn is_header(line: &[u8]) -> bool {
    let name = line.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    name > 0 && line[name..].starts_with(b": ")
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(byte)
}

fn longest_run(bytes: &[u8]) -> usize {
    bytes.split(|byte| !is_base64(byte)).map(<[u8]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB";

    fn begin() -> String {
        ["-----BEGIN RSA PRI", "VATE KEY-----"].concat()
    }

    fn end() -> String {
        begin().replace("BEGIN", "END")
    }

    fn keys(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        find(text.as_bytes(), &crate::shapes::compile(BOUNDARY).expect("compiles"), &mut found);
        found.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn a_block_is_hidden_from_begin_to_end_whatever_its_lines_begin_with() {
        for prefix in ["", "    ", "12:00:01 | ", "+"] {
            let key = format!("{}\n{prefix}{LINE}\n{prefix}{LINE}\n{prefix}ab==\n{prefix}{}", begin(), end());
            assert_eq!(keys(&format!("before\n{key}\nafter")), [key.as_str()]);
        }
        let json = format!("{}\\n{LINE}\\nab==\\n{}", begin(), end());
        assert_eq!(keys(&format!("{{\"key\": \"{json}\\n\"}}")), [json.as_str()]);
    }

    #[test]
    fn a_block_without_its_end_is_hidden_with_its_lines() {
        let key = format!("{}\nProc-Type: 4,ENCRYPTED\n\n{LINE}\n{LINE}\nMIIE", begin());
        assert_eq!(keys(&format!("$ head\n{key}\n$ echo done\n")), [key.as_str()]);
        assert_eq!(keys(&key), [key.as_str()]);
    }

    #[test]
    fn a_block_without_its_begin_is_hidden_with_its_lines() {
        let key = format!("QC7VJ\n{LINE}\n{LINE}\nab==\n{}", end());
        assert_eq!(keys(&format!("{key}\nafter\n")), [key.as_str()]);
        let key = format!("{LINE}\nab==\n{}", end());
        assert_eq!(keys(&format!("$ tail\n{key}\nafter\n")), [key.as_str()]);
    }

    #[test]
    fn code_that_names_the_boundaries_stays() {
        let code = format!(
            "const BEGIN = \"{}\";\nconst END = \"{}\";\nif (a.includes(\"{}\")) {{\n",
            begin(),
            end(),
            begin()
        );
        assert_eq!(keys(&code), [""; 0]);
        assert_eq!(keys(&format!("{}\nok\n", begin())), [""; 0]);
    }

    #[test]
    fn two_blocks_are_two_keys() {
        let key = format!("{}\n{LINE}\n{}", begin(), end());
        assert_eq!(keys(&format!("{key}\n{key}\n")), [key.as_str(), key.as_str()]);
    }
}
