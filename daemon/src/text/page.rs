//! Decodes pages of bytes into pages of text, never cutting a character or an escape sequence.
//!
//! Pages of any size yield the same text as decoding everything at once.

use std::ops::Range;
use toold_ansi::{MAX_ESCAPE_LEN, escape_len, next_escape, starts_escape, unterminated_len};
use toold_proto::params::Ansi;

/// The number of bytes to read beyond a page's size, so that a sequence across its end is complete.
pub const LOOKAHEAD_LEN: usize = MAX_ESCAPE_LEN + 4;

/// The continuation of output after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEnd {
    /// More bytes follow, now or later: an incomplete character or sequence waits for them.
    More,
    /// Nothing follows, or a gap: an incomplete character or sequence stays incomplete.
    Last,
}

/// The position of bytes in output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// At the start of output.
    Whole,
    /// Anywhere, possibly inside a character.
    Cut,
}

/// Decodes the first `max` bytes. Returns the text and the number of bytes consumed: fewer if a character or an escape
/// sequence would be cut, more if the first one alone is longer than `max`, and none only if the bytes are an incomplete
/// character or sequence and more may follow. Each maximal subpart of an invalid character becomes one U+FFFD, as in
/// `String::from_utf8_lossy`.
pub fn decode_page(bytes: &[u8], max: usize, end: PageEnd, ansi: Ansi) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len().min(max));
    let mut at = 0;
    while at < bytes.len() && (at == 0 || at < max) {
        let rest = bytes.get(at..).unwrap_or_default();
        let len = match ansi {
            Ansi::Strip if starts_escape(rest) => skip_sequence(rest, end),
            Ansi::Strip | Ansi::Keep => {
                let run = if ansi == Ansi::Strip { next_escape(rest) } else { None };
                // A character does not continue after a sequence.
                let run_end = if run.is_some() { PageEnd::Last } else { end };
                let run = rest.get(..run.unwrap_or(rest.len())).unwrap_or_default();
                let room = max - at.min(max);
                // Only the first character may be longer than the page: otherwise there would be no progress.
                decode_run(run, room, run_end, at == 0, &mut text)
            }
        };
        let skips = ansi == Ansi::Strip && starts_escape(rest);
        if len == 0 || (skips && at > 0 && at + len > max) {
            break;
        }
        at += len;
    }
    (text, at)
}

/// Returns the last `n` characters and their range in `bytes`. With `More`, leaves out an incomplete character or sequence
/// at the end.
pub fn last_chars(bytes: &[u8], n: usize, start: PageStart, end: PageEnd, ansi: Ansi) -> (String, Range<usize>) {
    let stray = match start {
        PageStart::Whole => 0,
        PageStart::Cut => bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count(),
    };
    let rest = bytes.get(stray..).unwrap_or_default();
    let (mut text, taken) = decode_page(rest, rest.len(), end, ansi);
    let first = match n.checked_sub(1) {
        Some(n) => text.char_indices().rev().nth(n).map_or(0, |(i, _)| i),
        None => text.len(),
    };
    let position = position(rest, &text, first, ansi).min(taken);
    text.drain(..first);
    (text, stray + position..stray + taken)
}

/// Returns the position in `bytes` of the character at `index` of their text.
fn position(bytes: &[u8], text: &str, index: usize, ansi: Ansi) -> usize {
    if index == 0 || bytes.starts_with(text.as_bytes()) {
        return index;
    }
    let mut at = 0;
    for c in text.get(..index).unwrap_or_default().chars() {
        at += escapes_len(bytes, at, ansi);
        let rest = bytes.get(at..).unwrap_or_default();
        at += if rest.starts_with(c.encode_utf8(&mut [0; 4]).as_bytes()) { c.len_utf8() } else { first_char_len(rest) };
    }
    at + escapes_len(bytes, at, ansi)
}

/// Returns the length of the escape sequences at a position.
fn escapes_len(bytes: &[u8], at: usize, ansi: Ansi) -> usize {
    let mut end = at;
    while ansi == Ansi::Strip && starts_escape(bytes.get(end..).unwrap_or_default()) {
        end += skip_sequence(bytes.get(end..).unwrap_or_default(), PageEnd::Last);
    }
    end - at
}

pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn skip_sequence(bytes: &[u8], end: PageEnd) -> usize {
    match (escape_len(bytes), end) {
        (Some(len), _) => len,
        (None, PageEnd::Last) => unterminated_len(bytes),
        (None, PageEnd::More) => 0,
    }
}

/// Decodes the complete characters in the first `max` bytes of `run`, and at least one if they start the page.
fn decode_run(run: &[u8], max: usize, end: PageEnd, first: bool, text: &mut String) -> usize {
    let Some(cut) = run.get(..max).filter(|cut| cut.len() < run.len()) else { return decode(run, end, text) };
    match decode(cut, PageEnd::More, text) {
        0 if first => decode_first(run, end, text),
        len => len,
    }
}

fn decode_first(run: &[u8], end: PageEnd, text: &mut String) -> usize {
    let first = run.get(..first_char_len(run)).unwrap_or(run);
    // At the end of the bytes the character may be incomplete.
    let end = if first.len() < run.len() { PageEnd::Last } else { end };
    decode(first, end, text)
}

/// Returns the length of the first character, or of the maximal subpart of an invalid one.
pub(super) fn first_char_len(bytes: &[u8]) -> usize {
    let window = bytes.get(..4).unwrap_or(bytes);
    let Some(chunk) = window.utf8_chunks().next() else { return 0 };
    chunk.valid().chars().next().map_or(chunk.invalid().len(), char::len_utf8)
}

fn decode(bytes: &[u8], end: PageEnd, text: &mut String) -> usize {
    let mut taken = 0;
    for chunk in bytes.utf8_chunks() {
        let invalid = chunk.invalid();
        text.push_str(chunk.valid());
        taken += chunk.valid().len();
        let last = taken + invalid.len() == bytes.len();
        if last && end == PageEnd::More && is_incomplete(invalid) {
            return taken;
        }
        if !invalid.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        taken += invalid.len();
    }
    taken
}

/// Returns the length of an incomplete character at the end.
pub fn incomplete_len(bytes: &[u8]) -> usize {
    let back = bytes.iter().rev().take(3).take_while(|byte| is_continuation(**byte)).count() + 1;
    let last = bytes.len().checked_sub(back).and_then(|at| bytes.get(at..)).unwrap_or_default();
    if is_incomplete(last) { last.len() } else { 0 }
}

/// Returns true if the bytes are the start of a valid character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates output like that of programs: text, colours, torn characters, noise.
    fn output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            "\\PC{0,8}".prop_map(String::into_bytes),
            Just(b"\x1b[1;31m".to_vec()),
            Just(b"\x1b]0;title\x07".to_vec()),
            Just(b"\x1b]8;;x\x1b\\".to_vec()),
            Just(b"\x1b]0;cut off".to_vec()),
            Just(b"\x1b(B\x0f".to_vec()),
            Just("\u{9b}31m".as_bytes().to_vec()),
            Just("\u{9d}0;title\u{9c}".as_bytes().to_vec()),
            Just(b"\xc2".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\x1b".to_vec()),
            Just("é€😀".as_bytes().to_vec()),
            Just(b"\xf0\x9f".to_vec()),
            Just(b"\xed\xa0\x80".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// Generates bytes that start, continue and break off characters.
    fn broken_characters() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(b"a\x1b\x80\x82\x9f\xa0\xbf\xc0\xc3\xe0\xe2\xed\xf0\xf4\xf5\xff".as_slice());
        proptest::collection::vec(byte, 0..24)
    }

    fn whole(bytes: &[u8], ansi: Ansi) -> String {
        decode_page(bytes, bytes.len(), PageEnd::Last, ansi).0
    }

    /// Reads page after page, as a client does.
    fn paged(bytes: &[u8], sizes: &[usize], ansi: Ansi) -> String {
        let (mut text, mut at) = (String::new(), 0);
        let mut sizes = sizes.iter().cycle();
        while at < bytes.len() {
            let max = *sizes.next().unwrap_or(&1);
            let to = (at + max + LOOKAHEAD_LEN).min(bytes.len());
            let end = if to == bytes.len() { PageEnd::Last } else { PageEnd::More };
            let (page, taken) = decode_page(bytes.get(at..to).unwrap_or_default(), max, end, ansi);
            assert!(taken > 0, "no progress at {at} of {bytes:?}");
            text.push_str(&page);
            at += taken;
        }
        text
    }

    /// Reads the available output while a program is writing.
    fn followed(bytes: &[u8], sizes: &[usize], ansi: Ansi) -> String {
        let (mut text, mut at, mut came) = (String::new(), 0, 0);
        let mut sizes = sizes.iter().cycle();
        while at < bytes.len() {
            came = (came + *sizes.next().unwrap_or(&1)).min(bytes.len());
            let end = if came == bytes.len() { PageEnd::Last } else { PageEnd::More };
            let (page, taken) = decode_page(bytes.get(at..came).unwrap_or_default(), usize::MAX, end, ansi);
            text.push_str(&page);
            at += taken;
        }
        text
    }

    #[test]
    fn a_page_of_one_byte_contains_a_whole_character() {
        let pages = [
            decode_page("😀x".as_bytes(), 1, PageEnd::More, Ansi::Keep),
            decode_page(b"\xf0\x9f\x98", 1, PageEnd::More, Ansi::Keep),
            decode_page(b"\xf0\x9f\x98", 1, PageEnd::Last, Ansi::Keep),
            decode_page(b"\x1b[31mred", 1, PageEnd::More, Ansi::Strip),
            decode_page(b"\x98\x80x", 3, PageEnd::More, Ansi::Keep),
        ];
        let expected = [("😀", 4), ("", 0), ("\u{fffd}", 3), ("", 5), ("\u{fffd}\u{fffd}x", 3)];
        assert_eq!(pages, expected.map(|(text, taken)| (text.to_owned(), taken)));
    }

    #[test]
    fn a_title_that_never_ends_does_not_hide_the_lines_after_it() {
        // The broken code returned nothing after the "a" until the program had ended or had written 4 KiB more.
        let page = decode_page(b"a\x1b]0;titleERROR important\n", 100, PageEnd::More, Ansi::Strip);
        assert_eq!(page, ("a]0;titleERROR important\n".to_owned(), 26));
    }

    #[test]
    fn only_the_start_of_a_valid_character_is_incomplete() {
        let ends: [&[u8]; 9] = [
            b"",
            b"a",
            "é".as_bytes(),
            b"a\xc3",
            b"\xe2\x82",
            b"a\xf0\x9f\x98",
            b"\x9f\x98",
            b"\xed\xa0",
            b"\x80\x80\x80\x80",
        ];
        assert_eq!(ends.map(incomplete_len), [0, 0, 0, 1, 2, 3, 0, 0, 0]);
    }

    #[test]
    fn each_maximal_subpart_of_an_invalid_character_is_one_replacement_character() {
        let cases: [(&[u8], &str); 7] = [
            (b"a\xf0\x9f\x92A", "a\u{fffd}A"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82\xe2\x82\xac", "\u{fffd}€"),
            (b"\xff\xc0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            // A surrogate: no byte after the first can follow it.
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xf4\x90\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\x82\xac", "\u{fffd}\u{fffd}"),
        ];
        for (bytes, text) in cases {
            assert_eq!(whole(bytes, Ansi::Keep), text, "{}", bytes.escape_ascii());
            assert_eq!(String::from_utf8_lossy(bytes), text, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn the_last_characters_are_counted_after_stripping() {
        let raw = "héllo \x1b[1mwörld\x1b[0m".as_bytes();
        let last = |bytes, n, start, ansi| last_chars(bytes, n, start, PageEnd::Last, ansi);
        let last_chars = [
            last(raw, 5, PageStart::Whole, Ansi::Strip),
            last(raw, 0, PageStart::Whole, Ansi::Strip),
            last(raw, 99, PageStart::Whole, Ansi::Strip),
            last(raw.get(2..).unwrap_or_default(), 99, PageStart::Cut, Ansi::Strip),
            last(raw, 3, PageStart::Whole, Ansi::Keep),
        ];
        let expected = [("wörld", 11..21), ("", 21..21), ("héllo wörld", 0..21), ("llo wörld", 1..19), ("[0m", 18..21)];
        assert_eq!(last_chars, expected.map(|(text, at)| (text.to_owned(), at)));
    }

    proptest! {
        #[test]
        fn pages_of_any_size_yield_the_same_text(bytes in prop_oneof![output(), broken_characters()], sizes in proptest::collection::vec(1_usize..9, 1..5)) {
            for ansi in [Ansi::Keep, Ansi::Strip] {
                let expected = whole(&bytes, ansi);
                prop_assert_eq!(paged(&bytes, &sizes, ansi), expected.clone());
                prop_assert_eq!(followed(&bytes, &sizes, ansi), expected);
            }
        }

        #[test]
        fn pages_of_any_size_yield_the_text_of_from_utf8_lossy(
            bytes in prop_oneof![output(), broken_characters()], sizes in proptest::collection::vec(1_usize..9, 1..5),
        ) {
            let expected = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(&whole(&bytes, Ansi::Keep), &expected);
            prop_assert_eq!(&paged(&bytes, &sizes, Ansi::Keep), &expected);
            prop_assert_eq!(&followed(&bytes, &sizes, Ansi::Keep), &expected);
        }

        #[test]
        fn the_last_characters_are_those_of_the_returned_range(bytes in prop_oneof![output(), broken_characters()], n in 0_usize..20) {
            for ansi in [Ansi::Keep, Ansi::Strip] {
                let (text, range) = last_chars(&bytes, n, PageStart::Whole, PageEnd::Last, ansi);
                let all = whole(&bytes, ansi);
                let skipped = all.chars().count().saturating_sub(n);
                prop_assert_eq!(&text, &all.chars().skip(skipped).collect::<String>());
                prop_assert_eq!(whole(bytes.get(range).unwrap_or_default(), ansi), text);
            }
        }

        #[test]
        fn valid_text_is_unchanged(text in "\\PC{0,40}", sizes in proptest::collection::vec(1_usize..9, 1..5)) {
            prop_assert_eq!(paged(text.as_bytes(), &sizes, Ansi::Keep), text.clone());
            prop_assert_eq!(whole(text.as_bytes(), Ansi::Strip), text);
        }
    }
}
