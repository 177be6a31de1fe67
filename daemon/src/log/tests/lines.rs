//! Tests that reading by line equals splitting the text.

use super::*;
use crate::log::{LinePage, LineQuery, MAX_PAGE_BYTES};
use crate::matcher::{BoundedRegex, Meter};
use std::sync::Arc;

/// The kept part of a line.
#[derive(Debug, Clone)]
struct Line {
    number: u64,
    bytes: Vec<u8>,
}

/// Returns all kept lines of a view. A line with a gap inside is one line.
fn naive_lines(model: &Model, stream: Option<Stream>) -> Vec<Line> {
    let (mut lines, mut number): (Vec<Line>, u64) = (Vec::new(), 0);
    for at in (0..model.end()).filter(|at| model.is_in(*at, stream)) {
        let byte = model.bytes.get(at).copied().unwrap_or_default();
        match lines.last_mut() {
            _ if model.kept.get(at) == Some(&false) => {}
            Some(line) if line.number == number => line.bytes.push(byte),
            // The first kept byte of its line.
            _ => lines.push(Line { number, bytes: vec![byte] }),
        }
        number += u64::from(byte == b'\n');
    }
    lines
}

/// Returns the expected page: its bytes, the first line's number, the number of lines.
fn expected_page(lines: &[Line], total: u64) -> (Vec<u8>, u64, u64) {
    let bytes = lines.iter().flat_map(|line| line.bytes.clone()).collect();
    (bytes, lines.first().map_or(total, |line| line.number), lines.len() as u64)
}

fn naive_page(model: &Model, query: &LineQuery) -> (Vec<u8>, u64, u64) {
    let lines = naive_lines(model, query.stream);
    let total = model.counts.lines_of(query.stream);
    let first = query.offset.unwrap_or(total.saturating_sub(query.limit));
    let mut page: Vec<Line> = lines.into_iter().filter(|line| line.number >= first).collect();
    // A page ends at a gap that contains a newline: a number is missing, or a line has no end.
    let breaks = |pair: &[Line]| matches!(pair, [a, b] if b.number != a.number + 1 || !a.bytes.ends_with(b"\n"));
    if query.offset.is_some() {
        let len = page.windows(2).position(breaks).map_or(page.len(), |i| i + 1);
        page.truncate(len.min(usize::try_from(query.limit).unwrap_or(usize::MAX)));
    }
    expected_page(&page, total)
}

fn facts(page: &LinePage) -> (Vec<u8>, u64, u64) {
    (page.bytes.clone(), page.first_line, page.shown)
}

fn lines_of(steps: &[Step], cap: u64, query: &LineQuery) -> LinePage {
    let model = Model::write(steps, cap, &[]);
    model.open().lines(query, &model.counts).expect("it reads")
}

fn out(bytes: &[u8]) -> Step {
    Step { stream: Stream::Stdout, bytes: bytes.to_vec(), later: 0 }
}

#[test]
fn without_an_offset_the_last_lines_are_returned_and_with_zero_the_first() {
    let steps = [out(b"a\nb\nc\nd")];
    let pages = [None, Some(0), Some(3), Some(4)]
        .map(|offset| facts(&lines_of(&steps, 1000, &LineQuery { offset, limit: 2, ..LineQuery::default() })));
    let expected = [(b"c\nd".to_vec(), 2, 2), (b"a\nb\n".to_vec(), 0, 2), (b"d".to_vec(), 3, 1), (Vec::new(), 4, 0)];
    assert_eq!(pages, expected);
    let next = [None, Some(0), Some(1), Some(2), Some(4)]
        .map(|offset| lines_of(&steps, 1000, &LineQuery { offset, limit: 2, ..LineQuery::default() }).next);
    assert_eq!(next, [None, Some(2), Some(3), None, None]);
}

#[test]
fn lines_after_a_gap_keep_their_numbers() {
    let text: Vec<u8> = (0..100).flat_map(|i| format!("{i:03}\n").into_bytes()).collect();
    // The head is 80 bytes, the tail two segments of 40.
    let query = |offset| LineQuery { offset, limit: 50, ..LineQuery::default() };
    let pages = [Some(18), Some(20), None].map(|offset| lines_of(&[out(&text)], 160, &query(offset)));
    let gap = Some(Gap { from: 80, to: 320 });
    let page = |lines: std::ops::Range<u64>, gap| LinePage {
        next: (lines.end < 100).then_some(lines.end),
        bytes: lines.clone().flat_map(|i| format!("{i:03}\n").into_bytes()).collect(),
        first_line: lines.start,
        shown: lines.end - lines.start,
        total_lines: 100,
        gap,
        ..LinePage::default()
    };
    assert_eq!(pages, [page(18..20, None), page(80..100, gap), page(80..100, gap)]);
}

#[test]
fn a_page_from_the_middle_of_a_large_log_costs_the_page() {
    let line = format!("{}\n", "x".repeat(79));
    let chunk = out(&line.repeat(1024).into_bytes());
    let model_dir = temporary();
    let fd = File::open(model_dir.path()).expect("the directory opens");
    let mut writer = LogWriter::new(fd.into(), 256 << 20);
    while writer.counts().end < 200 << 20 {
        writer.append(Stream::Stdout, &chunk.bytes, 0);
    }
    let counts = writer.counts();
    let mut costs = Vec::new();
    for offset in [Some(counts.lines() / 2), Some(counts.lines() * 5 / 6), Some(0), None] {
        for stream in [None, Some(Stream::Stdout)] {
            let log = Log::open(model_dir.path(), counts.end).expect("it opens");
            let page = log.lines(&LineQuery { offset, limit: 200, stream, ..LineQuery::default() }, &counts);
            assert_eq!(page.ok().map(|page| (page.bytes, page.shown)), Some((line.repeat(200).into_bytes(), 200)));
            costs.push(log.bytes_read());
        }
    }
    assert!(costs.iter().all(|cost| *cost < 512 * 1024), "{costs:?}");
}

#[test]
fn a_page_is_full_after_a_megabyte() {
    let line = [vec![b'x'; 300_000], b"\n".to_vec()].concat();
    let steps = [out(&line.repeat(5))];
    let pages = [Some(1), None].map(|offset| {
        let page = lines_of(&steps, 64 << 20, &LineQuery { offset, limit: 10, ..LineQuery::default() });
        (page.bytes.len(), page.first_line, page.shown, page.truncated)
    });
    assert_eq!(pages, [(900_003, 1, 3, true), (900_003, 2, 3, true)]);
}

#[test]
fn a_line_longer_than_a_page_is_cut() {
    let steps = [out(b"short\n"), out(&vec![b'x'; 3 << 20]), out(b"end")];
    let pages = [Some(1), None].map(|offset| {
        let page = lines_of(&steps, 64 << 20, &LineQuery { offset, limit: 10, ..LineQuery::default() });
        (page.bytes.len(), page.bytes.ends_with(b"end"), page.first_line, page.shown, page.truncated)
    });
    assert_eq!(pages, [(MAX_PAGE_BYTES, false, 1, 1, true), (MAX_PAGE_BYTES, true, 1, 1, true)]);
}

#[test]
fn grep_counts_all_matches_and_returns_the_last_or_those_from_a_line_on() {
    let steps = [out(b"a1\nb\na2\n\x1b[31ma\x1b[0m3\nb\na4")];
    let regex = Arc::new(BoundedRegex::one("^a[0-9]").expect("a pattern"));
    // In the broken code an offset counted matches. It is the number of a line.
    let pages = [None, Some(0), Some(2), Some(3)].map(|offset| {
        let query = LineQuery { offset, limit: 2, grep: Some(&regex), ..LineQuery::default() };
        lines_of(&steps, 1000, &query)
    });
    let page = |bytes: &[u8], lines: [u64; 2], next| LinePage {
        next,
        bytes: bytes.to_vec(),
        first_line: lines[0],
        hit_lines: lines.to_vec(),
        shown: 2,
        total_lines: 6,
        matched: Some(4),
        ..LinePage::default()
    };
    let coloured = b"\x1b[31ma\x1b[0m3\n";
    let expected = [
        page(&[coloured.as_slice(), b"a4"].concat(), [3, 5], None),
        page(b"a1\na2\n", [0, 2], Some(3)),
        page(&[b"a2\n".as_slice(), coloured].concat(), [2, 3], Some(4)),
        page(&[coloured.as_slice(), b"a4"].concat(), [3, 5], None),
    ];
    assert_eq!(pages, expected);
}

#[test]
fn grep_does_not_match_the_line_end_of_a_terminal() {
    // In the broken code `$` was after the carriage return, so nothing matched.
    let regex = Arc::new(BoundedRegex::one("^line[12]$").expect("a pattern"));
    let query = LineQuery { limit: 5, grep: Some(&regex), ..LineQuery::default() };
    let page = lines_of(&[out(b"line1\r\nline2\x1b[0m\r\nline3\r\n")], 1000, &query);
    assert_eq!(facts(&page), (b"line1\r\nline2\x1b[0m\r\n".to_vec(), 0, 2));
}

#[test]
fn grep_finds_a_match_across_the_windows_of_a_very_long_line() {
    let mut line = vec![b'x'; 300_000];
    line.splice(65_534..65_540, *b"needle");
    let regex = Arc::new(BoundedRegex::one("needle").expect("a pattern"));
    let query = LineQuery { limit: 5, grep: Some(&regex), ..LineQuery::default() };
    let page = lines_of(&[out(&line), out(b"\nno\nneedle")], 64 << 20, &query);
    let summary = (page.bytes.len(), page.bytes.ends_with(b"needle"), page.first_line, page.shown, page.matched);
    assert_eq!((summary, page.truncated), ((65_536 + 1 + 6, true, 0, 2, Some(2)), true));
}

proptest! {
    #[test]
    fn any_page_of_lines_equals_splitting_the_text(
        steps in steps(), cap in caps(), script in disks(), stream in view(), at in 0.0..1.2_f64, limit in 1_u64..40,
    ) {
        let model = Model::write(&steps, cap, &script);
        let total = model.counts.lines_of(stream);
        let offset = Some((total as f64 * at) as u64);
        let query = LineQuery { offset, limit, stream, ..LineQuery::default() };
        let page = model.open().lines(&query, &model.counts)?;
        prop_assert_eq!(page.total_lines, total);
        prop_assert_eq!(facts(&page), naive_page(&model, &query));
        // A gap explains requested lines that are not there.
        prop_assert!(offset >= Some(page.first_line) || page.gap.is_some());
    }

    #[test]
    fn the_last_lines_are_the_end_of_the_text(steps in steps(), stream in view(), limit in 1_u64..40) {
        let model = Model::write(&steps, 1 << 20, &[]);
        let query = LineQuery { limit, stream, ..LineQuery::default() };
        let page = model.open().lines(&query, &model.counts)?;
        prop_assert_eq!(facts(&page), naive_page(&model, &query));
    }

    #[test]
    fn the_last_lines_of_a_capped_log_are_after_its_last_gap(
        steps in steps(), cap in caps(), script in disks(), stream in view(), limit in 1_u64..40,
    ) {
        let model = Model::write(&steps, cap, &script);
        let query = LineQuery { limit, stream, ..LineQuery::default() };
        let log = model.open();
        let page = log.lines(&query, &model.counts)?;
        let (whole, ..) = naive_page(&model, &query);
        prop_assert!(whole.ends_with(&page.bytes));
        let tail = log.tail(usize::MAX >> 1, stream)?.bytes;
        prop_assert!(tail.ends_with(&page.bytes), "{:?} {:?}", page, tail);
        prop_assert!(page.bytes.len() == whole.len() || page.gap.is_some());
    }

    #[test]
    fn grep_is_a_filter_of_the_lines(
        steps in steps(), cap in caps(), script in disks(), stream in view(),
        offset in proptest::option::of(0_usize..20), limit in 1_usize..20, pattern in proptest::sample::select(vec!["a", "ab", "^b", "a$", "^$", "y", "x"]),
    ) {
        let model = Model::write(&steps, cap, &script);
        let regex = Arc::new(BoundedRegex::one(pattern).expect("a pattern"));
        let query =
            LineQuery { offset: offset.map(|n| n as u64), limit: limit as u64, stream, grep: Some(&regex), ..LineQuery::default() };
        let page = model.open().lines(&query, &model.counts)?;
        let text = |line: &Line| line.bytes.strip_suffix(b"\n").unwrap_or(&line.bytes).to_vec();
        let hits: Vec<Line> =
            naive_lines(&model, stream).into_iter().filter(|line| regex.is_match(&text(line), &Meter::unlimited())).collect();
        let first = match offset {
            Some(offset) => hits.iter().position(|hit| hit.number >= offset as u64).unwrap_or(hits.len()),
            None => hits.len().saturating_sub(limit),
        };
        let expected: Vec<Line> = hits.iter().skip(first).take(limit).cloned().collect();
        let mut bytes: Vec<u8> = expected.iter().flat_map(|line| [text(line), b"\n".to_vec()].concat()).collect();
        // Only the last line of the text may have no end; a line cut by a gap gets one.
        if !page.bytes.ends_with(b"\n") && expected.last().is_some_and(|line| !line.bytes.ends_with(b"\n")) {
            bytes.pop();
        }
        prop_assert_eq!(&page.bytes, &bytes);
        let summary = (page.shown, page.matched, page.first_line);
        let line = expected.first().map_or(0, |line| line.number);
        prop_assert_eq!(summary, (expected.len() as u64, Some(hits.len() as u64), line));
        let more = offset.is_some() && first + expected.len() < hits.len();
        prop_assert_eq!(page.next, expected.last().filter(|_| more).map(|line| line.number + 1));
    }

    #[test]
    fn successive_pages_contain_every_kept_line_once(
        steps in steps(), cap in caps(), script in disks(), stream in view(), limit in 1_u64..20, grep: bool,
    ) {
        let model = Model::write(&steps, cap, &script);
        let regex = Arc::new(BoundedRegex::one("a|^$").expect("a pattern"));
        let (mut offset, mut numbers) = (Some(0), Vec::new());
        while offset.is_some() {
            let query = LineQuery { offset, limit, stream, grep: grep.then_some(&regex), ..LineQuery::default() };
            let page = model.open().lines(&query, &model.counts)?;
            prop_assert!(page.next.is_none() || page.next > offset, "it makes progress: {:?}", page);
            if grep {
                numbers.extend((0..page.shown).map(|_| 0));
            } else {
                numbers.extend(page.first_line..page.first_line + page.shown);
            }
            offset = page.next;
        }
        let text = |line: &Line| line.bytes.strip_suffix(b"\n").unwrap_or(&line.bytes).to_vec();
        let kept = naive_lines(&model, stream);
        let expected: Vec<u64> = if grep {
            kept.iter().filter(|line| regex.is_match(&text(line), &Meter::unlimited())).map(|_| 0).collect()
        } else {
            kept.iter().map(|line| line.number).collect()
        };
        prop_assert_eq!(numbers, expected);
    }
}
