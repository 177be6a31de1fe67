//! Publishing, reading, filters, retention.

use super::*;
use crate::events::record;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn an_event_reads_as_it_was_published_and_grep_finds_it() {
    let dir = temporary();
    let (journal, opened) = open(dir.path(), SMALL);
    assert_eq!((opened, journal.last(), journal.oldest()), (RecoveryReport::default(), 0, 1));
    let fields = test_event(EventType::Exited, json!({ "exit_code": 0, "output": "a\nb" }));
    let event = NewEvent {
        fields: &fields,
        id: Some(process(7)),
        session_key: Some("s"),
        task_id: None,
        state: b"\n",
        cancelled: true,
    };
    let mut applied = 0;
    assert_eq!(journal.publish(&event, at(1_794_799_730_123), |seq| applied = seq).expect("written"), 1);
    assert_eq!((applied, journal.last()), (1, 1));
    let batch = journal.read(0, &Filter::default(), ALL).expect("it reads");
    let [event] = batch.events.as_slice() else { panic!("one event: {batch:?}") };
    assert_eq!((event.seq, event.kind, event.id, event.cancelled), (1, EventType::Exited, Some(process(7)), true));
    let text = concat!(
        r#"{"seq":1,"at":"2026-11-16T03:28:50.123Z","type":"exited","id":"proc_000000000007","#,
        r#""session_key":"s","task_id":null,"exit_code":0,"output":"a\nb"}"#
    );
    assert_eq!(event.json.get(), text);
    let bytes = std::fs::read(&files(dir.path())[0]).expect("a segment");
    assert!(bytes.ends_with(format!("{text}\n").as_bytes()));
}

#[test]
fn published_events_and_the_states_of_the_last_two_segments_survive_a_crash() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 50);
    // No destructor, as with kill -9.
    std::mem::forget(journal);
    let (journal, opened) = open(dir.path(), SMALL);
    let (events, missing) = read_all(&journal, &Filter::default());
    assert_eq!((seqs(&events), missing), ((1..=50).collect(), vec![]));
    let first = journal.segments().iter().rev().nth(1).map(|s| s.first).expect("two segments");
    let newest = (first..=50).filter(|n| n % 7 != 0).map(|n| (n % 5, (n, state(n))));
    assert_eq!(opened, RecoveryReport { damage: vec![], states: newest.collect::<HashMap<_, _>>(), last_found: 50 });
    fill(&journal, 60);
}

#[test]
fn concurrent_publishers_use_numbers_without_a_gap_in_the_order_of_the_file() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    let order = std::sync::Mutex::new(Vec::new());
    let watcher = journal.subscribe();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..100 {
                    let fields = test_event(kind(n), json!({ "n": n }));
                    let event = NewEvent {
                        fields: &fields,
                        id: None,
                        session_key: None,
                        task_id: None,
                        state: b"",
                        cancelled: false,
                    };
                    journal.publish(&event, at(n), |seq| order.lock().expect("whole").push(seq)).expect("written");
                }
            });
        }
    });
    assert_eq!(order.into_inner().expect("whole"), (1..=400).collect::<Vec<u64>>());
    assert_eq!(seqs(&read_all(&journal, &Filter::default()).0), (1..=400).collect::<Vec<u64>>());
    assert_eq!(*watcher.borrow(), 400);
}

#[test]
fn a_filter_yields_the_events_of_the_naive_list_in_pages_of_any_size() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 120);
    let types = BTreeSet::from([EventType::Exited, EventType::Completion]);
    let filters = [
        Filter { types: Some(types.clone()), ..Filter::default() },
        Filter { session_key: Some("red".into()), ..Filter::default() },
        Filter { session_key: Some("blue\n\"".into()), task_id: Some("even".into()), ..Filter::default() },
        Filter { id: Some(process(3)), types: Some(types), ..Filter::default() },
        Filter { session_key: Some("none".into()), ..Filter::default() },
        Filter::default(),
    ];
    for filter in &filters {
        let id = |n: u64| (!n.is_multiple_of(5)).then(|| process(n % 5));
        let naive = (1..=120).filter(|n| filter.matches(kind(*n), id(*n), session(*n), (n % 2 == 0).then_some("even")));
        let naive: Vec<u64> = naive.collect();
        for limit in
            [ALL, ReadLimit { events: 3, ..ALL }, ReadLimit { bytes: 300, ..ALL }, ReadLimit { scan: 7, ..ALL }]
        {
            let (mut after, mut got) = (0, Vec::new());
            while after < 120 {
                let batch = journal.read(after, filter, limit).expect("it reads");
                assert!(batch.scanned > after && batch.missing.is_empty() && batch.events.len() <= limit.events);
                after = batch.scanned;
                got.extend(seqs(&batch.events));
            }
            assert_eq!(got, naive, "{filter:?} {limit:?}");
        }
    }
}

#[test]
fn a_session_with_the_hash_of_another_does_not_read_its_events() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 1);
    drop(journal);
    let path = &files(dir.path())[0];
    let bytes = std::fs::read(path).expect("a segment");
    let real = record::decode(&bytes);
    // An event of the session blue with the hash of red.
    let rest = br#","at":"x","type":"exited","id":null,"session_key":"blue","task_id":null}"#;
    let mut forged = Vec::new();
    record::encode(&mut forged, &record::EventHeader { seq: 2, ..real.header }, b"", rest);
    std::fs::File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.write_all_at(&forged, bytes.len() as u64))
        .expect("it is written");
    let (journal, opened) = open(dir.path(), SMALL);
    assert_eq!((opened.damage, journal.last()), (vec![], 2));
    let red = Filter { session_key: Some("red".into()), ..Filter::default() };
    assert_eq!(seqs(&read_all(&journal, &red).0), [1]);
    assert_eq!(seqs(&read_all(&journal, &Filter::default()).0), [1, 2]);
}

#[test]
fn the_oldest_segments_are_dropped_for_size_and_reported_as_missing() {
    let dir = temporary();
    let limits = JournalLimits { max_bytes: 4000, ..SMALL };
    let (journal, _) = open(dir.path(), limits);
    fill(&journal, 100);
    let oldest = journal.oldest();
    assert!(oldest > 50 && journal.bytes() <= 4000, "oldest {oldest}, {} bytes", journal.bytes());
    let on_disk: u64 = files(dir.path()).iter().map(|f| f.metadata().expect("its size").len()).sum();
    assert_eq!(on_disk, journal.bytes());
    let batch = journal.read(3, &Filter::default(), ALL).expect("it reads");
    assert_eq!((seqs(&batch.events), batch.missing), ((oldest..=100).collect(), vec![4..=oldest - 1]));
    let (reopened, _) = open(dir.path(), limits);
    assert_eq!((reopened.oldest(), reopened.last()), (oldest, 100));
}

#[test]
fn events_that_are_too_old_are_dropped_even_if_none_remain_and_numbers_continue() {
    let dir = temporary();
    let limits = JournalLimits { max_age_ms: 1000, ..SMALL };
    let (journal, _) = open(dir.path(), limits);
    fill(&journal, 20);
    journal.retain(1020);
    assert!(journal.oldest() < 20 && journal.oldest() > 1, "the newest is not older than a second");
    journal.retain(1021);
    assert_eq!((journal.oldest(), journal.last(), journal.bytes()), (21, 20, 0));
    for _ in 0..2 {
        let (journal, opened) = open(dir.path(), limits);
        let nothing = RecoveryReport { last_found: 20, ..RecoveryReport::default() };
        assert_eq!((journal.oldest(), journal.last(), opened), (21, 20, nothing));
        let batch = journal.read(0, &Filter::default(), ALL).expect("it reads");
        assert_eq!((batch.events.len(), batch.scanned, batch.missing), (0, 20, vec![1..=20]));
    }
    // A minute later a publish applies the retention limits.
    publish(&journal, 60_021).expect("written");
    publish(&journal, 180_000).expect("written");
    assert_eq!((journal.oldest(), journal.last()), (22, 22));
}

#[test]
fn a_number_that_is_known_elsewhere_is_not_reused() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 5);
    drop(journal);
    let (journal, opened) = Journal::open(dir.path(), SMALL, 0, 9).expect("it opens");
    assert_eq!((opened.damage, journal.last()), (vec![], 9));
    fill(&journal, 12);
    journal.skip_to(14);
    journal.skip_to(3);
    journal.skip_to(u64::MAX);
    assert_eq!(journal.last(), 14);
    for journal in [journal, open(dir.path(), SMALL).0] {
        let (events, missing) = read_all(&journal, &Filter::default());
        assert_eq!(seqs(&events), [1, 2, 3, 4, 5, 10, 11, 12]);
        assert_eq!(missing, [6..=9, 13..=14]);
    }
}

#[test]
fn a_reader_during_rotation_and_retention_sees_order_and_a_gap_for_dropped_events() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), JournalLimits { max_bytes: 8000, ..SMALL });
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut after = 0;
                while after < 3000 || !done.load(Ordering::Acquire) {
                    let limit = ReadLimit { events: 40, ..ALL };
                    let batch = journal.read(after, &Filter::default(), limit).expect("it reads");
                    let mut next = after + 1;
                    for range in &batch.missing {
                        assert_eq!(*range.start(), next);
                        next = range.end() + 1;
                    }
                    let count = batch.events.len() as u64;
                    assert_eq!(seqs(&batch.events), (next..next + count).collect::<Vec<u64>>());
                    assert_eq!(batch.scanned, next + count - 1);
                    assert!(batch.events.iter().map(numbers).all(|(seq, n)| seq == n));
                    after = batch.scanned;
                }
            });
        }
        fill(&journal, 3000);
        done.store(true, Ordering::Release);
    });
    journal.start_writeback().and_then(|()| journal.sync()).expect("it is durable");
}
