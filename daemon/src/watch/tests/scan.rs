//! Single cases of the scan: lines, streams, the end, gaps, and continuing after a crash.

use super::super::{LinePart, Matches, OpenLine, ScanPosition, Scanner};
use super::{patterns, scanner};
use toold_format::Stream::{self, Stderr, Stdout};

fn scan(written: &[&str], bytes: &[u8]) -> (u64, Option<usize>, String) {
    let mut matches = Matches::default();
    let mut scanner = scanner(written);
    scanner.feed(Stdout, 0, bytes, &mut matches);
    scanner.end(&mut matches);
    (matches.matches, matches.pattern, matches.output)
}

#[test]
fn a_line_counts_once_for_the_first_pattern_of_the_list() {
    let text = b"nothing\nb then a then b\nonly b\n";
    assert_eq!(scan(&["zz", "a", "b"], text), (2, Some(1), "b then a then b\nonly b".into()));
    assert_eq!(scan(&["/zz", "/a", "b"], text), (2, Some(1), "b then a then b\nonly b".into()));
    assert_eq!(scan(&["b", "/a"], text), (2, Some(0), "b then a then b\nonly b".into()));
}

#[test]
fn nothing_matches_across_lines_and_anchors_are_those_of_the_line() {
    let cases: [(&str, &[u8], u64); 14] = [
        ("/one.two", b"one\ntwo\n", 0),
        ("/one\\stwo", b"one\ntwo\n", 0),
        ("/(?s)one.*two", b"one\ntwo\n", 0),
        ("/one[^x]two|two", b"one\ntwo\n", 1),
        ("/^two$", b"one\ntwo\nthree", 1),
        ("/\\Atwo\\z", b"one\ntwo\r\r\nthree", 1),
        ("/^$", b"\n\r\n\x1b[0m\nx\n", 3),
        ("/^two$", b"one\x1b[31m\n\x1b[31mtwo\x1b[0m\r\nthree", 1),
        ("/a$\\b", b"a\r\n", 1),
        ("/a\\r$", b"a\r\n", 0),
        ("a\r", b"a\r\na\rb\n", 1),
        ("/(?m)^b", b"a\r\nb\n", 1),
        ("/(?mR)^b", b"a\rb\n", 1),
        ("/(?-u)\\xff", b"a\xff\n", 1),
    ];
    for (pattern, bytes, lines) in cases {
        assert_eq!(scan(&[pattern], bytes).0, lines, "{pattern} in {}", bytes.escape_ascii());
    }
}

#[test]
fn escape_sequences_are_not_text_wherever_they_are_cut() {
    let text = b"plain\n\x1b[32mok\x1b[0mgo\r\n\x1b]0;okgo\x07title\nokgo\x1b]0;torn\nend";
    for cut in 0..text.len() {
        let mut matches = Matches::default();
        let mut scanner = scanner(&["okgo"]);
        let (first, second) = text.split_at(cut);
        scanner.feed(Stdout, 0, first, &mut matches);
        scanner.feed(Stdout, cut as u64, second, &mut matches);
        assert_eq!((matches.matches, matches.output.as_str()), (2, "okgo\nokgo]0;torn"), "{cut}");
    }
}

#[test]
fn streams_have_lines_of_their_own_and_the_last_ones_count_at_the_end() {
    let mut matches = Matches::default();
    let mut scanner = scanner(&["READY", "/^err$"]);
    let pieces: [(Stream, &[u8]); 4] = [(Stdout, b"REA"), (Stderr, b"er"), (Stdout, b"DY"), (Stderr, b"r")];
    let mut at = 0;
    for (stream, piece) in pieces {
        scanner.feed(stream, at, piece, &mut matches);
        at += piece.len() as u64;
    }
    assert_eq!(matches, Matches::default());
    scanner.end(&mut matches);
    assert_eq!((matches.matches, matches.pattern, matches.output.as_str()), (2, Some(0), "READY\nerr"));
    scanner.end(&mut matches);
    assert_eq!(matches.matches, 2);
}

#[test]
fn a_gap_drops_open_lines_and_may_be_passed_again() {
    let mut matches = Matches::default();
    let mut scanner = scanner(&["ab"]);
    scanner.feed(Stdout, 0, b"a", &mut matches);
    scanner.gap(100);
    scanner.feed(Stdout, 100, b"b\na", &mut matches);
    scanner.gap(100);
    scanner.feed(Stdout, 103, b"b\n", &mut matches);
    assert_eq!((matches.matches, matches.output.as_str()), (1, "ab"));
}

#[test]
fn a_scan_continues_from_its_open_lines() {
    let mut matches = Matches::default();
    let mut first = scanner(&["one", "two"]);
    first.feed(Stdout, 0, b"one\no", &mut matches);
    first.feed(Stderr, 5, b"t", &mut matches);
    first.feed(Stdout, 6, b"n", &mut matches);
    let position = first.position();
    let line = |start| OpenLine { start, part: LinePart::Whole };
    assert_eq!(position, ScanPosition { scanned_to: 7, out: line(4), err: line(5) });
    assert_eq!((position.from(), position.from_of(Stderr), matches.take().matches), (4, 5, 1));
    assert_eq!(ScanPosition::from_bytes(&position.to_bytes()), Some(position));

    let mut second = Scanner::new(patterns(&["one", "two"]), position);
    assert_eq!(second.position(), position);
    // The whole log again: bytes that were scanned are skipped.
    second.feed(Stdout, 0, b"one\no", &mut matches);
    second.feed(Stderr, 5, b"t", &mut matches);
    second.feed(Stdout, 6, b"n", &mut matches);
    assert_eq!((second.position(), matches.matches), (position, 0));
    second.feed(Stdout, 7, b"e\n", &mut matches);
    second.feed(Stderr, 9, b"wo\n", &mut matches);
    assert_eq!((matches.output.as_str(), second.position()), ("one\ntwo", ScanPosition::at(12)));
}

#[test]
fn an_encoded_position_is_small() {
    assert!(size_of::<ScanPosition>() <= 40);
    assert_eq!(ScanPosition::from_bytes(&[3; ScanPosition::BYTES]), None);
}
