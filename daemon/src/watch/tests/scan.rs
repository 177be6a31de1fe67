//! The scan by hand: lines, streams, the end, gaps, and going on after a crash.

use super::super::{LinePart, Matches, OpenLine, ScanPosition, Scanner};
use super::{patterns, scanner};
use toold_format::Stream::{self, Stderr, Stdout};

fn scan(written: &[&str], bytes: &[u8]) -> (u64, Option<usize>, String) {
    let mut found = Matches::default();
    let mut scanner = scanner(written);
    scanner.feed(Stdout, 0, bytes, &mut found);
    scanner.end(&mut found);
    (found.matches, found.pattern, found.output)
}

#[test]
fn a_line_counts_once_for_the_first_pattern_of_the_list() {
    let text = b"nothing\nb then a then b\nonly b\n";
    assert_eq!(scan(&["zz", "a", "b"], text), (2, Some(1), "b then a then b\nonly b".into()));
    assert_eq!(scan(&["/zz", "/a", "b"], text), (2, Some(1), "b then a then b\nonly b".into()));
    assert_eq!(scan(&["b", "/a"], text), (2, Some(0), "b then a then b\nonly b".into()));
}

#[test]
fn nothing_matches_across_lines_and_anchors_are_the_lines_own() {
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
fn escape_sequences_are_no_text_wherever_they_are_cut() {
    let text = b"plain\n\x1b[32mok\x1b[0mgo\r\n\x1b]0;okgo\x07title\nokgo\x1b]0;torn\nend";
    for cut in 0..text.len() {
        let mut found = Matches::default();
        let mut scanner = scanner(&["okgo"]);
        let (first, second) = text.split_at(cut);
        scanner.feed(Stdout, 0, first, &mut found);
        scanner.feed(Stdout, cut as u64, second, &mut found);
        assert_eq!((found.matches, found.output.as_str()), (2, "okgo\nokgo]0;torn"), "{cut}");
    }
}

#[test]
fn streams_have_lines_of_their_own_and_the_last_ones_count_at_the_end() {
    let mut found = Matches::default();
    let mut scanner = scanner(&["READY", "/^err$"]);
    let pieces: [(Stream, &[u8]); 4] = [(Stdout, b"REA"), (Stderr, b"er"), (Stdout, b"DY"), (Stderr, b"r")];
    let mut at = 0;
    for (stream, piece) in pieces {
        scanner.feed(stream, at, piece, &mut found);
        at += piece.len() as u64;
    }
    assert_eq!(found, Matches::default());
    scanner.end(&mut found);
    assert_eq!((found.matches, found.pattern, found.output.as_str()), (2, Some(0), "READY\nerr"));
    scanner.end(&mut found);
    assert_eq!(found.matches, 2);
}

#[test]
fn a_gap_ends_open_lines_and_may_be_told_again() {
    let mut found = Matches::default();
    let mut scanner = scanner(&["ab"]);
    scanner.feed(Stdout, 0, b"a", &mut found);
    scanner.gap(100);
    scanner.feed(Stdout, 100, b"b\na", &mut found);
    scanner.gap(100);
    scanner.feed(Stdout, 103, b"b\n", &mut found);
    assert_eq!((found.matches, found.output.as_str()), (1, "ab"));
}

#[test]
fn a_scan_goes_on_from_its_open_lines() {
    let mut found = Matches::default();
    let mut first = scanner(&["one", "two"]);
    first.feed(Stdout, 0, b"one\no", &mut found);
    first.feed(Stderr, 5, b"t", &mut found);
    first.feed(Stdout, 6, b"n", &mut found);
    let resume = first.resume();
    let line = |start| OpenLine { start, part: LinePart::Whole };
    assert_eq!(resume, ScanPosition { scanned_to: 7, out: line(4), err: line(5) });
    assert_eq!((resume.from(), resume.from_of(Stderr), found.take().matches), (4, 5, 1));
    assert_eq!(ScanPosition::from_bytes(&resume.to_bytes()), Some(resume));

    let mut second = Scanner::new(patterns(&["one", "two"]), resume);
    assert_eq!(second.resume(), resume);
    // The whole log once more: what was scanned_to is left out.
    second.feed(Stdout, 0, b"one\no", &mut found);
    second.feed(Stderr, 5, b"t", &mut found);
    second.feed(Stdout, 6, b"n", &mut found);
    assert_eq!((second.resume(), found.matches), (resume, 0));
    second.feed(Stdout, 7, b"e\n", &mut found);
    second.feed(Stderr, 9, b"wo\n", &mut found);
    assert_eq!((found.output.as_str(), second.resume()), ("one\ntwo", ScanPosition::at(12)));
}

#[test]
fn where_a_scan_stands_is_small() {
    assert!(size_of::<ScanPosition>() <= 40);
    assert_eq!(ScanPosition::from_bytes(&[3; ScanPosition::BYTES]), None);
}
