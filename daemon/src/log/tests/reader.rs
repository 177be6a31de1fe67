//! Tests that reading by offset equals the model.

use super::*;
use crate::log::Page;
use toold_proto::process::Span;

/// Reads a page byte by byte.
fn naive_read(model: &Model, from: usize, max: usize, stream: Option<Stream>) -> (Vec<u8>, u64, u64, Option<Gap>) {
    let (mut bytes, mut at, mut gap) = (Vec::new(), from.min(model.end()), None);
    let mut start = at;
    while at < model.end() && bytes.len() < max {
        if let Some(here) = model.gap(at) {
            if !bytes.is_empty() || gap.is_some() {
                break;
            }
            (gap, start, at) = (Some(here), here.to as usize, here.to as usize);
            continue;
        }
        // A merged page without bytes does not end elsewhere.
        bytes.extend(model.bytes.get(at).filter(|_| model.is_in(at, stream)));
        at += 1;
    }
    (bytes, start as u64, at as u64, gap)
}

fn facts(page: Page) -> (Vec<u8>, u64, u64, Option<Gap>) {
    (page.bytes, page.from, page.next, page.gap)
}

#[test]
fn a_page_that_starts_in_a_gap_reports_it_and_starts_after_it() {
    let steps = [b"0123456789", b"abcdefghij"].map(|b| Step { stream: Stream::Stdout, bytes: b.to_vec(), later: 0 });
    // Half of 8 is the head; the tail is two segments of two.
    let model = Model::write(&steps, 8, &[]);
    let log = model.open();
    let page = log.read(6, 100, None).map(facts).ok();
    assert_eq!(page, Some((b"ghij".to_vec(), 16, 20, Some(Gap { from: 6, to: 16 }))));
    let page = log.read(0, 100, None).ok();
    let page = page.map(|page| (page.before_gap, facts(page)));
    assert_eq!(page, Some((true, (b"0123".to_vec(), 0, 4, None))));
    assert_eq!(log.first_gap(0).ok().flatten(), Some(Gap { from: 4, to: 16 }));
}

#[test]
fn the_tail_ends_at_the_end_and_reports_the_gap_before_it() {
    let step = Step { stream: Stream::Stdout, bytes: b"0123456789abcdefghij".to_vec(), later: 0 };
    let model = Model::write(&[step], 8, &[]);
    let tails = [3, 100].map(|max| model.open().tail(max, None).map(facts).ok());
    let expected = [(b"hij".to_vec(), 17, 20, None), (b"ghij".to_vec(), 16, 20, Some(Gap { from: 4, to: 16 }))];
    assert_eq!(tails, expected.map(Some));
}

#[test]
fn unused_bytes_of_a_page_of_one_stream_have_a_cursor() {
    let text: [(Stream, &[u8]); 3] = [(Stream::Stdout, b"ab"), (Stream::Stderr, b"--"), (Stream::Stdout, b"cd")];
    let steps = text.map(|(stream, bytes)| Step { stream, bytes: bytes.to_vec(), later: 0 });
    let page = Model::write(&steps, 1000, &[]).open().read(0, 100, Some(Stream::Stdout)).expect("it reads");
    let cursors: Vec<u64> = (0..5).map(|len| page.cursor(len)).collect();
    assert_eq!((page.bytes, cursors), (b"abcd".to_vec(), vec![0, 1, 4, 5, 6]));
}

#[test]
fn a_segment_dropped_while_the_log_is_read_is_a_gap() {
    let step = Step { stream: Stream::Stdout, bytes: vec![b'x'; 5000], later: 0 };
    let model = Model::write(&[step], 1000, &[]);
    let log = model.open();
    let oldest = segments(model.dir.path()).get(1).map(|(start, _)| *start).expect("a tail segment");
    std::fs::remove_file(model.dir.path().join(toold_format::log::SegmentName::log(oldest).as_str()))
        .expect("it was there");
    let page = log.read(600, 10, None).map(|page| (page.from > oldest, page.gap.map(|gap| gap.from)));
    assert_eq!(page.ok(), Some((true, Some(600))));
}

#[test]
fn spans_report_time_and_stream_of_every_byte() {
    let steps = [(Stream::Stdout, 0), (Stream::Stdout, 50), (Stream::Stdout, 60), (Stream::Stderr, 1)]
        .map(|(stream, later)| Step { stream, bytes: b"ab".to_vec(), later });
    let spans = Model::write(&steps, 1000, &[]).open().spans(1, 7).ok();
    let span = |stream, from, to, at: u64| Span { stream: to_wire(stream), from, to, at_ms: 1_700_000_000_000 + at };
    let expected =
        vec![span(Stream::Stdout, 1, 4, 0), span(Stream::Stdout, 4, 6, 110), span(Stream::Stderr, 6, 7, 111)];
    assert_eq!(spans, Some(expected));
}

#[test]
fn a_page_of_a_rare_stream_makes_progress_without_reading_the_other() {
    let mut steps = vec![Step { stream: Stream::Stdout, bytes: vec![b'o'; 8 << 20], later: 0 }];
    steps.push(Step { stream: Stream::Stderr, bytes: b"rare".to_vec(), later: 0 });
    let model = Model::write(&steps, 64 << 20, &[]);
    let log = model.open();
    let page = log.read(0, 100, Some(Stream::Stderr)).map(facts).ok();
    let tail = log.tail(100, Some(Stream::Stderr)).map(|page| page.bytes).ok();
    let end = model.counts.end;
    assert_eq!((page, tail), (Some((b"rare".to_vec(), 0, end, None)), Some(b"rare".to_vec())));
    assert!(log.bytes_read() < 64 * 1024, "{}", log.bytes_read());
}

#[test]
fn a_log_read_while_it_is_written_yields_only_written_bytes() {
    // The byte at each offset is known, so that a page can be checked at any start.
    let byte = |at: u64| (at % 251) as u8;
    let (dir, total) = (temporary(), 3_000_000_u64);
    let end = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let fd = File::open(dir.path()).expect("the directory opens");
            let mut writer = LogWriter::new(fd.into(), 20_000);
            let mut at = 0;
            while at < total {
                let bytes: Vec<u8> = (at..at + 777).map(byte).collect();
                let stream = if at.is_multiple_of(2) { Stream::Stdout } else { Stream::Stderr };
                writer.append(stream, &bytes, at);
                at = writer.counts().end;
                end.store(at, std::sync::atomic::Ordering::Release);
            }
        });
        let (mut cursor, mut seen) = (0, 0);
        while cursor < total {
            let log = Log::open(dir.path(), end.load(std::sync::atomic::Ordering::Acquire)).expect("it opens");
            let tail = log.tail(500, None).expect("it reads");
            let page = log.read(cursor, 5000, None).expect("it reads");
            assert!(page.gap.is_none_or(|gap| gap.from == cursor && gap.to == page.from));
            for page in [&page, &tail] {
                let expected: Vec<u8> = (page.from..page.from + page.bytes.len() as u64).map(byte).collect();
                assert_eq!(page.bytes, expected);
            }
            (cursor, seen) = (page.next, seen + page.bytes.len());
        }
        assert!(seen > 0);
    });
}

proptest! {
    #[test]
    fn any_page_equals_the_model(
        steps in steps(), cap in caps(), script in disks(), stream in view(), at in 0.0..1.1_f64, max in 1_usize..400,
    ) {
        let model = Model::write(&steps, cap, &script);
        let from = (model.end() as f64 * at) as usize;
        let page = model.open().read(from as u64, max, stream)?;
        prop_assert_eq!(facts(page), naive_read(&model, from, max, stream));
    }

    #[test]
    fn pages_follow_one_another_to_the_end(
        steps in steps(), cap in caps(), script in disks(), stream in view(), max in 1_usize..400,
    ) {
        let model = Model::write(&steps, cap, &script);
        let (log, mut at, mut bytes) = (model.open(), 0, Vec::new());
        while at < log.end() {
            let page = log.read(at, max, stream)?;
            prop_assert!(page.next > at);
            at = page.next;
            bytes.extend(page.bytes);
        }
        let kept = (0..model.end()).filter(|at| model.kept.get(*at) == Some(&true) && model.is_in(*at, stream));
        prop_assert_eq!(bytes, kept.filter_map(|at| model.bytes.get(at).copied()).collect::<Vec<u8>>());
    }

    #[test]
    fn the_tail_is_the_end_of_the_bytes_after_the_last_gap(
        steps in steps(), cap in caps(), script in disks(), stream in view(), max in 0_usize..400,
    ) {
        let model = Model::write(&steps, cap, &script);
        let end = (0..model.end()).rev().find(|at| model.kept.get(*at) == Some(&true)).map_or(0, |at| at + 1);
        let start = (0..end).rev().find(|at| model.kept.get(*at) == Some(&false)).map_or(0, |at| at + 1);
        let run: Vec<u8> =
            (start..end).filter(|at| model.is_in(*at, stream)).filter_map(|at| model.bytes.get(at).copied()).collect();
        let page = model.open().tail(max, stream)?;
        let expected = run.get(run.len().saturating_sub(max)..).unwrap_or_default();
        prop_assert_eq!((page.bytes.as_slice(), page.next), (expected, model.counts.end));
    }

    #[test]
    fn spans_report_the_stream_of_every_kept_byte(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        let mut streams = vec![None; model.end()];
        for span in model.open().spans(0, model.counts.end)? {
            streams.get_mut(span.from as usize..span.to as usize).expect("within the log").fill(Some(from_wire(span.stream)));
        }
        let expected: Vec<Option<Stream>> =
            model.streams.iter().zip(&model.kept).map(|(stream, kept)| kept.then_some(*stream)).collect();
        prop_assert_eq!(streams, expected);
    }
}
