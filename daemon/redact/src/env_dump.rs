//! Environment dumps: `NAME=value` with a name that is a secret's, in a run of such lines. A single assignment is code and stays.

use crate::OVERLAP_BYTES;
use crate::edges::Open;
use crate::harmless;
use std::ops::Range;

/// Fewer lines are code.
const MIN_RUN_LINES: usize = 3;
/// Openings of a line that the shells print before a name.
const SHELL_OPENINGS: [&str; 7] =
    ["export ", "declare -x ", "declare -rx ", "declare -- ", "declare -r ", "typeset -x ", "set "];
const DEFAULT_NAMES: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"];

/// Parts of the names that variables with secrets have. Case does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretNames(Vec<String>);

impl SecretNames {
    pub fn new(parts: &[String]) -> SecretNames {
        let parts = parts.iter().filter(|part| !part.is_empty());
        SecretNames(parts.map(|part| part.to_ascii_uppercase()).collect())
    }

    pub fn is_secret(&self, name: &str) -> bool {
        let name = name.to_ascii_uppercase();
        // `GIT_AUTHOR_NAME` holds no secret, `AUTHORIZATION` does.
        let is_author = |at: usize| name[at..].starts_with("AUTHOR") && !name[at..].starts_with("AUTHORI");
        self.0.iter().any(|part| name.match_indices(part.as_str()).any(|(at, _)| part != "AUTH" || !is_author(at)))
    }
}

impl Default for SecretNames {
    fn default() -> SecretNames {
        SecretNames(DEFAULT_NAMES.map(String::from).to_vec())
    }
}

/// A line of a text.
enum Line {
    Assignment {
        name: Range<usize>,
        value: Range<usize>,
    },
    /// A comment, an empty line, or a declaration without a value: it neither ends a run nor counts.
    Neutral {
        is_empty: bool,
    },
    Other,
}

/// Appends the place of every secret value in a dump.
pub(crate) fn find(text: &str, names: &SecretNames, open: Open, found: &mut Vec<Range<usize>>) {
    let mut run = Run::default();
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |len| at + len);
        match parse(text, at..end) {
            Line::Assignment { name, value } => {
                run.touches_start |= at == 0 && open.start;
                run.lines += 1;
                run.was_empty = false;
                if names.is_secret(&text[name]) && is_secret_value(&text[value.clone()]) {
                    run.values.push(value);
                }
            }
            Line::Neutral { is_empty } if !(is_empty && run.was_empty) => run.was_empty = is_empty,
            Line::Neutral { .. } => run.finish(found, false),
            Line::Other => {
                run.finish(found, false);
                // The rest of a long value whose name is before the window.
                if at == 0 && open.start {
                    run.touches_start = true;
                    run.values.extend((end > OVERLAP_BYTES).then_some(0..end));
                }
            }
        }
        at = end + 1;
    }
    run.finish(found, open.end);
}

/// Assignments on lines that follow each other.
#[derive(Default)]
struct Run {
    lines: usize,
    touches_start: bool,
    was_empty: bool,
    values: Vec<Range<usize>>,
}

impl Run {
    /// Ends the run. One that touches an open edge may be a part of a longer one.
    fn finish(&mut self, found: &mut Vec<Range<usize>>, touches_end: bool) {
        let run = std::mem::take(self);
        if run.lines >= MIN_RUN_LINES || (run.lines > 0 && (run.touches_start || touches_end)) {
            found.extend(run.values);
        }
    }
}

fn is_secret_value(value: &str) -> bool {
    !harmless::is_number(value) && !harmless::is_call(value) && !harmless::is_harmless(value)
}

fn parse(text: &str, line: Range<usize>) -> Line {
    let content = text[line.clone()].trim_end_matches('\r');
    let trimmed = content.trim_start();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Line::Neutral { is_empty: trimmed.is_empty() };
    }
    let (rest, is_json) = without_opening(content, trimmed);
    let name_len = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    if name_len == 0 || rest.as_bytes()[0].is_ascii_digit() {
        return Line::Other;
    }
    let name = line.start + content.len() - rest.len();
    match rest[name_len..].strip_prefix('=') {
        Some(value) => {
            let start = name + name_len + 1;
            Line::Assignment { name: name..name + name_len, value: unquoted(value, start, is_json) }
        }
        None if rest.len() == name_len && rest.len() < content.len() => Line::Neutral { is_empty: false },
        None => Line::Other,
    }
}

/// Removes what precedes a name: a shell's opening, a quote in a list of JSON, the dash of a list. An indented line is code.
fn without_opening<'a>(content: &'a str, trimmed: &'a str) -> (&'a str, bool) {
    if let Some(item) = trimmed.strip_prefix('"') {
        return (item, true);
    }
    if let Some(item) = trimmed.strip_prefix("- ") {
        return (item, false);
    }
    let opening = SHELL_OPENINGS.iter().find_map(|opening| content.strip_prefix(opening));
    (opening.unwrap_or(content), false)
}

/// The place of a value without its quotes.
fn unquoted(value: &str, start: usize, is_json: bool) -> Range<usize> {
    if is_json {
        let inner = value.trim_end_matches(',');
        return start..start + inner.strip_suffix('"').unwrap_or(inner).len();
    }
    let opening = ["$'", "\"", "'"].into_iter().find(|quote| value.starts_with(quote)).unwrap_or_default();
    let inner = &value[opening.len()..];
    let inner = opening.chars().last().map_or(inner, |quote| inner.strip_suffix(quote).unwrap_or(inner));
    start + opening.len()..start + opening.len() + inner.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<&str> {
        values_in(text, Open::NONE)
    }

    fn values_in(text: &str, open: Open) -> Vec<&str> {
        let mut found = Vec::new();
        find(text, &SecretNames::default(), open, &mut found);
        found.into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn secret_values_of_a_dump_are_found() {
        let text = "HOME=/root\nAPI_KEY=abc\r\nSHELL=/bin/sh\nDB_PASSWORD=hunter2\n";
        assert_eq!(values(text), ["abc", "hunter2"]);
    }

    #[test]
    fn the_output_of_shells_and_lists_of_variables_are_dumps() {
        assert_eq!(values("declare -x A=\"1\"\ndeclare -x TOKEN=\"a b\"\ndeclare -x B\ndeclare -x C=\"\"\n"), ["a b"]);
        assert_eq!(values("export A=1\nexport my_token='abc def'\nexport B=$'x'\n"), ["abc def"]);
        assert_eq!(values("  \"A=1\",\n  \"SECRET=abc\",\n  \"AUTH=def\"\n"), ["abc", "def"]);
        assert_eq!(values("  - A=1\n  - SECRET=abc\n  - B=2\n"), ["abc"]);
    }

    #[test]
    fn comments_and_single_empty_lines_do_not_end_a_dump() {
        assert_eq!(values("# database\nDB_HOST=h\nDB_PASSWORD=hunter2\n\n# api\nAPI_KEY=abc\n"), ["hunter2", "abc"]);
        assert_eq!(values("A=1\nDB_PASSWORD=hunter2\n\n\nAPI_KEY=abc\n"), [""; 0]);
    }

    #[test]
    fn fewer_lines_and_code_stay() {
        assert_eq!(values("API_KEY=abc\nDB_PASSWORD=hunter2\n"), [""; 0]);
        assert_eq!(values("f(\n    api_key=abc1,\n    token=abc2,\n    secret=abc3,\n)\n"), [""; 0]);
        assert_eq!(values("key = abc1\ntoken = abc2\nsecret = abc3\n"), [""; 0]);
    }

    #[test]
    fn references_numbers_and_placeholders_stay() {
        let text = "A_TOKEN=${{ secrets.X }}\nB_TOKEN=$TOKEN\nC_TOKEN=${TOKEN}\nD_TOKEN=os.getenv(\"X\")\n\
            E_TOKEN=process.env.X\nMAX_TOKENS=100\nF_TOKEN=xxx\nG_TOKEN=<token>\nH_TOKEN=\nI_TOKEN=true\nJ_TOKEN=\"\"\n";
        assert_eq!(values(text), [""; 0]);
    }

    #[test]
    fn names_contain_a_part_in_any_case() {
        let names = SecretNames::default();
        for name in ["API_KEY", "my_token", "AUTHORIZATION", "PROXY_AUTH", "Aws_Secret"] {
            assert!(names.is_secret(name), "{name}");
        }
        for name in ["PATH", "GIT_AUTHOR_NAME", "HOME", ""] {
            assert!(!names.is_secret(name), "{name}");
        }
        assert!(SecretNames::new(&["authorization".into()]).is_secret("AUTHORIZATION"));
    }

    #[test]
    fn a_run_that_touches_an_open_edge_may_be_longer() {
        assert_eq!(values_in("rest of a line\nTOKEN=abc\nother\n", Open { start: true, end: false }), ["abc"]);
        assert_eq!(values_in("other\nTOKEN=abc\n", Open { start: false, end: true }), ["abc"]);
        assert_eq!(values_in("other\nother\nTOKEN=abc\nother", Open::BOTH), [""; 0]);
        let long = "v ".repeat(OVERLAP_BYTES);
        let text = format!("{long}\nA=1\n");
        assert_eq!(values_in(&text, Open { start: true, end: false }), [long.as_str()]);
    }
}
