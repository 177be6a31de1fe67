//! Tests the scan against a model with the whole output: any pieces, any order of streams, any crashes.

use super::super::line_buffer::CONTEXT_LEN;
use super::super::{Matches, ScanPosition, Scanner};
use super::{pattern, patterns};
use crate::text::{PageEnd, line_text};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use toold_ansi::strip;
use toold_format::Stream;
use toold_proto::params::Ansi;
use toold_proto::pattern::Pattern;

const PATTERNS: [&str; 44] = [
    "a",
    "ab",
    "ERR",
    "b",
    "é",
    "x y",
    "\r",
    "aab",
    "r",
    "]0;",
    "/^a",
    "/a$",
    "/^$",
    "/\\bab\\b",
    "/a.*b",
    "/[^x]b",
    "/\\Aab",
    "/b\\z",
    "/(?i)err",
    "/a\\r?b",
    "/\\xff",
    "/(?-u)\\xff",
    "/\\s",
    "/(?m)^b$",
    "/(?mR)^b",
    "/(?mR)a$",
    "/é+",
    "/\\Bb",
    "/a|^b$",
    "/x*",
    "/(a$)|(\\b{start}b)",
    "/\\w\\W",
    "/(?s)a.b",
    "/(?s-u)a.b",
    "/a$\\b",
    "/[a\\n]b",
    "/\\D$",
    "/ab\\nb",
    "/\\r$",
    "/^\\r",
    "/\\B",
    "/ERR.*ERR",
    "/(?-u:\\b)b",
    "/b\\b{end}",
];

const PIECES: [&[u8]; 27] = [
    b"a",
    b"b",
    b"ab",
    b"x y",
    b"ERR",
    b"r",
    b" ",
    b"\n",
    b"\n",
    b"a\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b"\r\r\n",
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b]0;t\x07",
    b"\xc2\x9b31m",
    b"\xc2",
    b"\x9b",
    b"\x1b]0;",
    b"\x1b",
    b"\x1b[3",
    b"\xff",
    b"\xc3",
    "é".as_bytes(),
    b"\x1b\\",
];

const ESCAPE_PIECES: [&[u8]; 9] = [
    b"\x1b[31m",
    b"\x1b[38;2;100;200;30m",
    b"\x1b[0m",
    b"\x1b[1;1H",
    b"\x1b]0;some title\x07",
    b"\x1b]0;",
    b"\x1b",
    b"a",
    b"b",
];

/// The log: each byte with its stream.
type Output = Vec<(Stream, u8)>;

fn output(pieces: Vec<(bool, &'static [u8])>) -> Output {
    let stream = |err| if err { Stream::Stderr } else { Stream::Stdout };
    pieces.into_iter().flat_map(|(err, piece)| piece.iter().map(move |byte| (stream(err), *byte))).collect()
}

fn pieces(of: &'static [&'static [u8]], err: f64, max: usize) -> impl Strategy<Value = Output> {
    prop::collection::vec((prop::bool::weighted(err), select(of)), 0..max).prop_map(output)
}

fn lists() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(select(&PATTERNS), 0..5)
}

/// Matches a pattern in the simplest way.
fn matches(pattern: &Pattern, text: &[u8], from: usize, to: usize) -> bool {
    match pattern {
        Pattern::Text(part) => text.windows(part.len()).any(|window| window == part.as_bytes()),
        Pattern::Regex(regex) if (from, to) == (0, text.len()) => {
            regex::bytes::Regex::new(regex).expect("valid").is_match(text)
        }
        Pattern::Regex(regex) => {
            let regex = Regex::builder()
                .configure(Regex::config().utf8_empty(false))
                .syntax(syntax::Config::new().utf8(false))
                .build(regex);
            regex.expect("valid").is_match(Input::new(text).range(from..to))
        }
    }
}

fn first(list: &[Pattern], text: &[u8], from: usize, to: usize) -> Option<usize> {
    list.iter().position(|pattern| matches(pattern, text, from, to))
}

/// Returns the match in a line: the pattern, and the text in the event.
fn line(list: &[Pattern], line: &[u8], window: usize) -> Option<(usize, Vec<u8>)> {
    let mut rest = strip(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
    if rest.len() <= window {
        let text = line_text(line, PageEnd::Last, Ansi::Strip);
        return first(list, &text, 0, text.len()).map(|at| (at, text.into_owned()));
    }
    let mut from = 0;
    while rest.len() > window {
        let text = rest.get(..window).expect("a window");
        if let Some(at) = first(list, text, from, window - CONTEXT_LEN) {
            return Some((at, text.to_vec()));
        }
        rest.drain(..window - window / 2);
        from = CONTEXT_LEN;
    }
    rest.truncate(rest.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1));
    first(list, &rest, from.min(rest.len()), rest.len()).map(|at| (at, rest))
}

/// Returns all matches, in the order in which lines end.
fn model(list: &[Pattern], output: &Output, window: usize) -> Vec<(usize, Vec<u8>)> {
    let (mut out, mut err, mut matches) = (Vec::new(), Vec::new(), Vec::new());
    for (stream, byte) in output {
        let open = if *stream == Stream::Stdout { &mut out } else { &mut err };
        open.push(*byte);
        if *byte == b'\n' {
            matches.extend(line(list, open, window));
            open.clear();
        }
    }
    let last = [out, err].into_iter().filter(|open| !open.is_empty());
    matches.extend(last.flat_map(|open| line(list, &open, window)));
    matches
}

fn expected(model: &[(usize, Vec<u8>)]) -> (u64, Option<usize>, String) {
    let lines: Vec<_> = model.iter().take(20).map(|(_, text)| String::from_utf8_lossy(text)).collect();
    (model.len() as u64, model.first().map(|(at, _)| *at), lines.join("\n").chars().take(2000).collect())
}

/// Feeds a part of the output, in pieces of one stream that are also cut at `cuts`.
fn feed(scanner: &mut Scanner, output: &Output, from: usize, to: usize, cuts: &[usize], matches: &mut Matches) {
    let mut at = from;
    while at < to {
        let cut = cuts.iter().copied().filter(|cut| *cut > at).min().unwrap_or(to).min(to);
        let stream = output[at].0;
        let bytes: Vec<u8> =
            output[at..cut].iter().take_while(|(other, _)| *other == stream).map(|(_, byte)| *byte).collect();
        scanner.feed(stream, at as u64, &bytes, matches);
        at += bytes.len();
    }
}

/// Scans the output with a crash at each of `crashes`.
fn scan(list: &[&str], output: &Output, cuts: &[Index], crashes: &[Index], window: usize) -> Matches {
    let patterns = patterns(list);
    let places = |of: &[Index]| -> Vec<usize> {
        let mut places: Vec<usize> = of.iter().map(|index| index.index(output.len() + 1)).collect();
        places.sort();
        places
    };
    let (cuts, crashes) = (places(cuts), places(crashes));
    let mut matches = Matches::default();
    let mut scanner = Scanner::with_window(patterns.clone(), ScanPosition::default(), window);
    let mut at = 0;
    for crash in crashes {
        feed(&mut scanner, output, at, crash, &cuts, &mut matches);
        let position = ScanPosition::from_bytes(&scanner.position().to_bytes()).expect("its own bytes");
        assert_eq!(position.scanned_to, crash as u64);
        scanner = Scanner::with_window(patterns.clone(), position, window);
        // Fed again it finds nothing, and may crash in the middle of that without moving.
        let mut again = Matches::default();
        feed(&mut scanner, output, position.from() as usize, crash, &cuts, &mut again);
        assert_eq!((again, scanner.position()), (Matches::default(), position));
        at = crash;
    }
    feed(&mut scanner, output, at, output.len(), &cuts, &mut matches);
    scanner.end(&mut matches);
    matches
}

fn sorted(output: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = output.split('\n').collect();
    lines.sort();
    lines
}

fn positions(max: usize) -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..max)
}

proptest! {
    #[test]
    fn any_pieces_and_crashes_find_the_matches_of_the_model(
        list in lists(), output in pieces(&PIECES, 0.3, 60), cuts in positions(12), crashes in positions(4),
    ) {
        let wanted: Vec<Pattern> = list.iter().map(|written| pattern(written)).collect();
        let matches = scan(&list, &output, &cuts, &crashes, 64 * 1024);
        prop_assert_eq!((matches.matches, matches.pattern, matches.output), expected(&model(&wanted, &output, 64 * 1024)));
    }

    #[test]
    fn one_stream_at_once_finds_the_matches_of_the_model(list in lists(), output in pieces(&PIECES[..14], 0.0, 80)) {
        let wanted: Vec<Pattern> = list.iter().map(|written| pattern(written)).collect();
        let matches = scan(&list, &output, &[], &[], 64 * 1024);
        prop_assert_eq!((matches.matches, matches.pattern, matches.output), expected(&model(&wanted, &output, 64 * 1024)));
    }

    #[test]
    fn over_long_lines_are_searched_in_windows_whatever_the_pieces(
        list in lists(), output in pieces(&PIECES, 0.2, 120), cuts in positions(12), crashes in positions(5), window in 12usize..60,
    ) {
        let output: Output = output.into_iter().enumerate().filter(|(i, (_, b))| *b != b'\n' || i % 7 == 0).map(|(_, b)| b).collect();
        let wanted: Vec<Pattern> = list.iter().map(|written| pattern(written)).collect();
        let matches = scan(&list, &output, &cuts, &crashes, window);
        let (count, first, text) = expected(&model(&wanted, &output, window));
        prop_assert_eq!(matches.matches, count);
        // A window of one stream may be searched before an earlier line of the other stream ends.
        prop_assert_eq!(sorted(&matches.output), sorted(&text));
        if output.iter().all(|(stream, _)| *stream == Stream::Stdout) {
            prop_assert_eq!((matches.pattern, matches.output), (first, text));
        }
    }

    #[test]
    fn with_more_escape_sequences_than_text_the_pieces_make_no_difference(
        list in lists(), output in pieces(&ESCAPE_PIECES, 0.2, 200), cuts in positions(30), crashes in positions(6),
    ) {
        prop_assert_eq!(scan(&list, &output, &cuts, &crashes, 12), scan(&list, &output, &[], &[], 12));
    }
}
