//! Lines without end: matched once, in bounded memory, also after a crash.

use super::super::{LinePart, Matches, ScanPosition, Scanner};
use super::{patterns, scanner};
use toold_format::Stream::Stdout;

const WINDOW_LEN: u64 = 64 * 1024;

#[test]
fn a_text_in_an_over_long_line_is_found_once_at_every_position() {
    for before in [65_530, 65_533, 65_536, 98_300, 98_304, 131_071, 400_000] {
        let mut matches = Matches::default();
        let mut scanner = scanner(&["NEEDLE", "/^x+NEEDLE", "/z$"]);
        let line =
            [vec![b'x'; before], b"NEEDLE NEEDLE".to_vec(), vec![b'y'; 300_000], b"NEEDLE\nz\n".to_vec()].concat();
        for (i, piece) in line.chunks(10_000).enumerate() {
            scanner.feed(Stdout, i as u64 * 10_000, piece, &mut matches);
        }
        assert_eq!((matches.matches, matches.pattern), (2, Some(0)), "{before}");
        let mut at_once = Matches::default();
        self::scanner(&["NEEDLE", "/^x+NEEDLE", "/z$"]).feed(Stdout, 0, &line, &mut at_once);
        assert_eq!(at_once, matches);
    }
}

#[test]
fn no_end_of_a_window_counts_as_the_end_of_the_line() {
    let line = [vec![b'a'; 300_000], b"b\n".to_vec()].concat();
    let cases = [("/a$", 0), ("/^b", 0), ("/^a", 1), ("/b$", 1), ("/\\bb", 0), ("/a\\b", 0), ("/\\ba", 1)];
    for (pattern, lines) in cases {
        let mut matches = Matches::default();
        scanner(&[pattern]).feed(Stdout, 0, &line, &mut matches);
        assert_eq!(matches.matches, lines, "{pattern}");
    }
}

#[test]
fn the_bytes_of_an_over_long_line_to_feed_again_are_bounded() {
    let mut matches = Matches::default();
    let mut scanner = scanner(&["NEEDLE"]);
    scanner.feed(Stdout, 0, &vec![b'x'; 1_000_000], &mut matches);
    let position = scanner.position();
    assert_eq!((position.scanned_to, position.out.part), (1_000_000, LinePart::Rest));
    assert!(position.scanned_to - position.out.start <= WINDOW_LEN);
    scanner.feed(Stdout, 1_000_000, &b"NEEDLE".repeat(20_000), &mut matches);
    let position = scanner.position();
    assert_eq!((matches.matches, position.out.part, position.out.start), (1, LinePart::Matched, position.scanned_to));
    let mut scanner = Scanner::new(patterns(&["NEEDLE"]), position);
    scanner.feed(Stdout, position.scanned_to, b"NEEDLE\nNEEDLE\n", &mut matches);
    assert_eq!(matches.matches, 2);
}

#[test]
fn a_line_of_only_escape_sequences_is_bounded_too() {
    let mut matches = Matches::default();
    let mut scanner = scanner(&["spin", "READY"]);
    let mut at = 0;
    for piece in b"\x1b[2K\x1b[1G".repeat(500_000).chunks(7_777) {
        scanner.feed(Stdout, at, piece, &mut matches);
        at += piece.len() as u64;
        let ScanPosition { scanned_to, out, .. } = scanner.position();
        assert!(scanned_to - out.start <= 16 * WINDOW_LEN + 7_777 + 4_096, "{scanned_to} {out:?}");
    }
    scanner.feed(Stdout, at, b"READY", &mut matches);
    scanner.end(&mut matches);
    assert_eq!((matches.matches, matches.output.as_str()), (1, "READY"));
}
