//! Tests that the text of a log equals the text of all its bytes.

use super::*;
use crate::log::LineQuery;
use crate::text::{PageEnd, TextForm, decode_page, fit_tokens};
use toold_proto::params::Ansi;
use toold_proto::process::Truncated;

/// Generates output with characters and sequences that appends cut in two.
fn torn_steps() -> impl Strategy<Value = Vec<Step>> {
    let piece = prop_oneof![
        "\\PC{0,6}".prop_map(String::into_bytes),
        Just("é€😀".as_bytes().to_vec()),
        Just(b"\x1b[1;31m".to_vec()),
        Just(b"\x1b]0;t\x1b\\".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let text = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    (text, proptest::collection::vec((stream(), 1_usize..8), 1..6)).prop_map(|(text, cuts)| {
        let (mut rest, mut steps) = (text.as_slice(), Vec::new());
        for (stream, len) in cuts.iter().cycle() {
            let (bytes, after) = rest.split_at((*len).min(rest.len()));
            steps.push(Step { stream: *stream, bytes: bytes.to_vec(), later: 0 });
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        steps
    })
}

fn naive_text(model: &Model, stream: Option<Stream>, ansi: Ansi) -> String {
    let bytes: Vec<u8> =
        (0..model.end()).filter(|at| model.is_in(*at, stream)).filter_map(|at| model.bytes.get(at).copied()).collect();
    decode_page(&bytes, bytes.len(), PageEnd::Last, ansi).0
}

#[test]
fn an_incomplete_character_waits_for_its_rest() {
    let step = |bytes: &[u8]| Step { stream: Stream::Stdout, bytes: bytes.to_vec(), later: 0 };
    let model = Model::write(&[step(b"ab\xe2\x82")], 1000, &[]);
    let log = model.open();
    let pages = [PageEnd::More, PageEnd::Last].map(|end| {
        let read = log.read_text(2, 100, None, TextForm::PLAIN, end).map(|page| (page.text, page.next)).ok();
        let last = log.last_chars(1, None, Ansi::Strip, end).map(|page| (page.text, page.from, page.next)).ok();
        (read, last)
    });
    let expected = [
        (Some((String::new(), 2)), Some(("b".to_owned(), 1, 2))),
        (Some(("\u{fffd}".to_owned(), 4)), Some(("\u{fffd}".to_owned(), 2, 4))),
    ];
    assert_eq!(pages, expected);
}

#[test]
fn the_last_character_boundary_is_before_an_incomplete_character() {
    let step = |stream, bytes: &[u8]| Step { stream, bytes: bytes.to_vec(), later: 0 };
    let ends = [b"ab\xe2\x82".as_slice(), b"ab", b"\xf0\x9f\x98", b"ab\x82", b""].map(|bytes| {
        let model = Model::write(&[step(Stream::Stdout, bytes)], 1000, &[]);
        model.open().char_boundary_end().ok()
    });
    assert_eq!(ends, [2, 2, 0, 3, 0].map(Some));
    // The disk rejected the start or the end of the written bytes.
    let (lead, rest) = (step(Stream::Stdout, b"\xe2"), step(Stream::Stdout, b"\x82"));
    let script = [DiskResult::Full, DiskResult::Full, DiskResult::Full, DiskResult::Full, DiskResult::Error].repeat(2);
    let model = Model::write(&[lead, rest], 1000, &script);
    assert_eq!((model.counts.unstored, model.open().char_boundary_end().ok()), (1, Some(2)));
}

#[test]
fn an_incomplete_character_does_not_start_a_line() {
    let step = |stream, bytes: &[u8]| Step { stream, bytes: bytes.to_vec(), later: 0 };
    let steps = [step(Stream::Stderr, b"err"), step(Stream::Stdout, b"out\n"), step(Stream::Stdout, b"\xe2\x82")];
    let model = Model::write(&steps, 1000, &[]);
    // The broken code showed the last line of stdout as U+FFFD.
    let pages = [None, Some(Stream::Stdout), Some(Stream::Stderr)].map(|stream| {
        let (log, counts) = model.open().until_char_boundary(stream, &model.counts).expect("it reads");
        let query = LineQuery { limit: 1, stream, ..LineQuery::default() };
        log.lines(&query, &counts).map(|page| (page.bytes, page.total_lines)).ok()
    });
    assert_eq!(pages, [b"errout\n".as_slice(), b"out\n", b"err"].map(|bytes| Some((bytes.to_vec(), 1))));
    let (log, _) = model.open().until_char_boundary(None, &model.counts).expect("it reads");
    assert_eq!(fit_tokens(&log, 0, 100, TextForm::PLAIN).ok(), Some(("errout\n".to_owned(), None)));
}

#[test]
fn the_last_characters_are_found_before_many_escape_sequences() {
    let noise = b"\x1b[2K\x1b[1G".repeat(3000);
    let text = [b"before".as_slice(), &noise, b"after"].concat();
    let model = Model::write(&[Step { stream: Stream::Stdout, bytes: text, later: 0 }], 1 << 20, &[]);
    let page = model.open().last_chars(10, None, Ansi::Strip, PageEnd::Last).map(|page| (page.text, page.from));
    assert_eq!(page.ok(), Some(("eforeafter".to_owned(), 1)));
}

#[test]
fn a_budget_over_a_large_log_with_a_gap_reads_only_its_ends() {
    let line = format!("{}\n", "x".repeat(99)).into_bytes();
    let step = Step { stream: Stream::Stdout, bytes: line.repeat(100_000), later: 0 };
    let model = Model::write(&vec![step; 2], 8 << 20, &[]);
    let log = model.open();
    let (text, cut) = fit_tokens(&log, 0, 1000, TextForm::PLAIN).expect("it reads");
    let (from, to) = (2000, model.counts.end - 2000);
    let expected = Truncated { from, to, omitted_bytes: to - from, omitted_tokens: (to - from) / 4 };
    assert_eq!((cut, text.lines().count()), (Some(expected), 41));
    assert!(log.bytes_read() < 20_000, "{}", log.bytes_read());
}

proptest! {
    #[test]
    fn pages_of_any_size_are_the_whole_text(steps in torn_steps(), view in view(), max in 1_usize..9) {
        let model = Model::write(&steps, 1 << 20, &[]);
        for ansi in [Ansi::Keep, Ansi::Strip] {
            let (log, mut at, mut text) = (model.open(), 0, String::new());
            while at < log.end() {
                let page = log.read_text(at, max, view, TextForm { ansi, collapse: false }, PageEnd::Last)?;
                prop_assert!(page.next > at);
                at = page.next;
                text.push_str(&page.text);
            }
            prop_assert_eq!(text, naive_text(&model, view, ansi));
        }
    }

    #[test]
    fn text_followed_while_it_is_written_is_the_whole_text(steps in torn_steps(), view in view()) {
        let model = Model::write(&steps, 1 << 20, &[]);
        let (mut at, mut text) = (0, String::new());
        for end in 0..=model.counts.end {
            let log = Log::open(model.dir.path(), end)?;
            let more = if end == model.counts.end { PageEnd::Last } else { PageEnd::More };
            let page = log.read_text(at, 1000, view, TextForm::PLAIN, more)?;
            text.push_str(&page.text);
            at = page.next;
        }
        prop_assert_eq!((text, at), (naive_text(&model, view, Ansi::Strip), model.counts.end));
    }

    #[test]
    fn a_view_cut_at_a_character_boundary_has_the_counts_of_its_bytes(steps in torn_steps(), view in view(), cut in 0.0..1.0_f64) {
        let model = Model::write(&steps, 1 << 20, &[]);
        let end = (model.end() as f64 * cut) as usize;
        let counts_at = |end: usize| {
            let mut counts = Counts::default();
            for at in 0..end {
                let byte = model.bytes.get(at..=at).unwrap_or_default();
                counts.advance(model.streams.get(at).copied().unwrap_or(Stream::Stdout), byte);
            }
            counts
        };
        let (log, counts) = Log::open(model.dir.path(), end as u64)?.until_char_boundary(view, &counts_at(end))?;
        let expected = counts_at(log.end() as usize);
        prop_assert_eq!((counts.end, counts.lines_of(view)), (expected.end, expected.lines_of(view)));
    }

    #[test]
    fn the_last_characters_and_the_text_after_them_are_the_end_of_the_text(
        steps in torn_steps(), view in view(), n in 0_usize..20, cut in 0.0..1.0_f64,
    ) {
        let model = Model::write(&steps, 1 << 20, &[]);
        let early = Log::open(model.dir.path(), (model.end() as f64 * cut) as u64)?;
        let page = early.last_chars(n, view, Ansi::Strip, PageEnd::More)?;
        let after = model.open().read_text(page.next, 1000, view, TextForm::PLAIN, PageEnd::Last)?;
        let whole = naive_text(&model, view, Ansi::Strip);
        prop_assert!(whole.ends_with(&format!("{}{}", page.text, after.text)), "{whole:?} {page:?} {after:?}");
    }
}
