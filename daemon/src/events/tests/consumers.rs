//! Positions, exit marks, expiry, and files that were cut or damaged.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TTL: u64 = 1_000_000;

fn consumers(dir: &Path) -> Consumers {
    let (consumers, damage) = Consumers::open(&dir.join("consumers"), TTL, 100, 5).expect("it opens");
    assert_eq!(damage, Vec::<String>::new());
    consumers
}

fn name(text: &str) -> ConsumerName {
    ConsumerName::parse(text).expect("a name")
}

/// The only file of a consumer.
fn file(dir: &Path) -> PathBuf {
    let entries =
        std::fs::read_dir(dir.join("consumers")).expect("it lists").map(|entry| entry.expect("an entry").path());
    let mut files = entries.filter(|path| path.extension().is_some_and(|ext| ext == "pos"));
    files.next().expect("a file")
}

fn exits() -> Filter {
    Filter { types: Some(BTreeSet::from([EventType::Exited, EventType::Completion])), ..Filter::default() }
}

#[test]
fn a_name_has_1_to_128_characters_and_no_control_character() {
    let long = "ä".repeat(128);
    for text in ["a", "../../etc/passwd", ".", "emoji 🦀", long.as_str()] {
        assert_eq!(name(text).as_str(), text);
    }
    let too_long = "ä".repeat(129);
    for text in ["", "a\nb", "\u{7f}", "a\0", too_long.as_str()] {
        assert!(ConsumerName::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_consumer_that_seems_too_old_when_it_is_opened_gets_a_grace_and_then_expires() {
    let dir = temporary();
    let c = name("c");
    consumers(dir.path()).register(&c, ConsumerStart::Oldest, bounds(1, 10), 5).expect("registered");
    let now = 100 * TTL;
    let (opened, _) = Consumers::open(&dir.path().join("consumers"), TTL, 100, now).expect("it opens");
    assert_eq!(opened.expire(now + TTL / 10), []);
    assert_eq!(opened.expire(now + TTL / 10 + 1), [c]);
}

#[test]
fn a_consumer_receives_events_again_until_it_acknowledges_them_also_after_a_crash() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 10);
    let (early, late) = (name("early"), name("late"));
    let first = consumers(dir.path());
    let registered = first.register(&early, ConsumerStart::Oldest, bounds(1, 10), 5).expect("registered");
    assert_eq!(registered, Registration { position: 0, created: true, expired: None, damaged_ms: None });
    assert_eq!(first.register(&late, ConsumerStart::Now, bounds(1, 10), 5).expect("registered").position, 10);
    assert!(matches!(first.ack(&name("x"), 3, 10, 5), Err(ConsumerError::Unknown)));
    assert_eq!(first.ack(&early, 4, 10, 5).expect("acknowledged"), 4);
    assert_eq!(first.ack(&early, 2, 10, 5).expect("acknowledged"), 4, "it never decreases");
    for consumers in [&first, &consumers(dir.path())] {
        for _ in 0..2 {
            let next = consumers.next(&journal, &early, &Filter::default(), 3, usize::MAX).expect("it reads");
            assert_eq!((seqs(&next.events), next.position, next.scanned_all), (vec![5, 6, 7], 4, false));
        }
        let next = consumers.next(&journal, &late, &Filter::default(), 3, usize::MAX).expect("it reads");
        assert!(next.events.is_empty() && next.scanned_all);
        assert_eq!(consumers.list(), [(early.clone(), 4, 5), (late.clone(), 10, 5)]);
        assert_eq!(consumers.highest(), 10);
        consumers.start_writeback().and_then(|()| consumers.sync()).expect("it is durable");
    }
    assert_eq!(first.ack(&early, u64::MAX, 10, 5).expect("acknowledged"), 10, "future events cannot be acknowledged");
}

#[test]
fn an_exit_that_a_call_returned_is_delivered_only_to_other_consumers_even_if_it_is_published_later() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), SMALL);
    fill(&journal, 10);
    let (mine, other) = (name("mine"), name("other"));
    let first = consumers(dir.path());
    first
        .mark_exit_seen(&mine, process(1), ExitMark { newest_seq: 10, exit_seq: 0 }, bounds(1, 10), 0)
        .expect("recorded");
    first
        .mark_exit_seen(&mine, process(3), ExitMark { newest_seq: 10, exit_seq: 3 }, bounds(1, 10), 0)
        .expect("recorded");
    first.register(&other, ConsumerStart::Oldest, bounds(1, 10), 0).expect("registered");
    // 11, 21, 31 are exits of process 1; 3, 13, 23, 33 completions of process 3.
    fill(&journal, 34);
    let all: Vec<u64> = (1..=34).filter(|n| matches!(n % 10, 1 | 3)).collect();
    for consumers in [&first, &consumers(dir.path())] {
        let delivered =
            |name| seqs(&consumers.next(&journal, name, &exits(), 99, usize::MAX).expect("it reads").events);
        assert_eq!(delivered(&mine), [13, 23, 33]);
        assert_eq!(delivered(&other), all);
        let view = consumers.view(&mine).expect("it is known");
        let (events, _) = read_all(&journal, &exits());
        let wanted: Vec<u64> = events.iter().filter(|event| view.wants(event)).map(|event| event.seq).collect();
        assert_eq!(wanted, [13, 23, 33]);
    }
}

#[test]
fn an_exit_mark_is_dropped_when_no_event_can_match_it_any_more() {
    let dir = temporary();
    let consumers = consumers(dir.path());
    let mine = name("mine");
    for n in 1..=20_000 {
        consumers
            .mark_exit_seen(&mine, process(n), ExitMark { newest_seq: n, exit_seq: n }, bounds(1, 20_000), 0)
            .expect("recorded");
    }
    let kept = consumers.exit_marks(&mine);
    assert!((14_336..=16_384).contains(&kept), "the newest: {kept}");
    consumers.ack(&mine, 19_000, 20_000, 0).expect("acknowledged");
    assert_eq!(consumers.exit_marks(&mine), 1000, "acknowledged events need no mark");
    consumers
        .mark_exit_seen(&mine, process(1), ExitMark { newest_seq: 20_000, exit_seq: 0 }, bounds(19_501, 20_000), 0)
        .expect("recorded");
    assert_eq!(consumers.exit_marks(&mine), 501, "neither do events that retention removed");
    consumers
        .mark_exit_seen(&mine, process(1), ExitMark { newest_seq: 20_000, exit_seq: 0 }, bounds(120_001, 20_000), 0)
        .expect("recorded");
    consumers
        .mark_exit_seen(
            &mine,
            process(2),
            ExitMark { newest_seq: 20_000, exit_seq: 20_000 },
            bounds(120_001, 130_000),
            0,
        )
        .expect("recorded");
    assert_eq!(consumers.exit_marks(&mine), 0, "nor an exit whose event never came");
}

#[test]
fn a_consumer_unused_for_too_long_expires_and_is_informed_once_when_it_returns() {
    let dir = temporary();
    let mine = name("mine");
    let first = consumers(dir.path());
    first.register(&mine, ConsumerStart::Oldest, bounds(1, 50), 1000).expect("registered");
    first.ack(&mine, 42, 50, 2000).expect("acknowledged");
    first.touch(&mine, 9000).expect("recorded");
    assert_eq!(first.expire(9000 + TTL), vec![]);
    assert_eq!(first.expire(9001 + TTL), vec![mine.clone()]);
    assert_eq!((first.list(), first.highest()), (vec![], 42));
    drop(first);
    let again = consumers(dir.path());
    assert_eq!(again.highest(), 42);
    // A call that marks an exit does not consume the report of the expiry.
    again
        .mark_exit_seen(&mine, process(1), ExitMark { newest_seq: 50, exit_seq: 50 }, bounds(7, 50), 0)
        .expect("recorded");
    let expired = Some(Expired { position: 42, at_ms: 9001 + TTL });
    let registered = again.register(&mine, ConsumerStart::Now, bounds(7, 50), 0).expect("registered");
    assert_eq!(registered, Registration { position: 6, created: false, expired, damaged_ms: None });
    // Reported until the report has reached it.
    let registered = again.register(&mine, ConsumerStart::Now, bounds(7, 50), 0).expect("registered");
    assert_eq!(registered.expired, expired);
    again.forget_expiry(&mine);
    assert_eq!(again.register(&mine, ConsumerStart::Now, bounds(7, 50), 0).expect("registered").expired, None);
    assert_eq!(
        consumers(dir.path()).register(&mine, ConsumerStart::Now, bounds(7, 50), 0).expect("registered").expired,
        None
    );
}

#[test]
fn frequent_calls_write_the_time_of_last_use_at_most_once_a_minute() {
    let dir = temporary();
    let consumers = consumers(dir.path());
    let mine = name("mine");
    consumers.register(&mine, ConsumerStart::Now, bounds(1, 0), 0).expect("registered");
    let len = || file(dir.path()).metadata().expect("its size").len();
    let before = len();
    for now in 0..=60_000 {
        consumers.touch(&mine, now).expect("recorded");
    }
    assert_eq!(len(), before);
    consumers.touch(&mine, 60_001).expect("recorded");
    assert_eq!(len(), before + 32);
}

#[test]
fn a_consumer_over_the_maximum_is_rejected_until_another_expires() {
    let dir = temporary();
    let (consumers, _) = Consumers::open(dir.path(), TTL, 2, 0).expect("it opens");
    for text in ["a", "b"] {
        consumers.register(&name(text), ConsumerStart::Now, bounds(1, 0), 0).expect("registered");
    }
    let rejected = consumers.register(&name("c"), ConsumerStart::Now, bounds(1, 0), TTL);
    assert!(matches!(rejected, Err(ConsumerError::TooMany { max: 2 })));
    assert!(consumers.register(&name("c"), ConsumerStart::Now, bounds(1, 0), TTL + 1).expect("registered").created);
}

#[test]
fn a_rare_filter_does_not_read_the_journal_again_at_each_call() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), JournalLimits { segment_bytes: 1 << 20, ..SMALL });
    let consumers = consumers(dir.path());
    let mine = name("mine");
    consumers.register(&mine, ConsumerStart::Oldest, bounds(1, 0), 0).expect("registered");
    fill(&journal, 500);
    let rare = Filter { session_key: Some("none".into()), ..Filter::default() };
    let next = consumers.next(&journal, &mine, &rare, 9, usize::MAX).expect("it reads");
    assert!(next.events.is_empty() && next.scanned_all);
    // Events that were read are not read again: removing them goes unnoticed.
    for path in files(dir.path()) {
        std::fs::write(path, "").expect("emptied");
    }
    let next = consumers.next(&journal, &mine, &rare, 9, usize::MAX).expect("it reads");
    assert_eq!((next.events.len(), next.missing, next.scanned), (0, vec![], 500));
    let next = consumers.next(&journal, &mine, &Filter::default(), 9, usize::MAX).expect("it reads");
    assert_eq!((next.events.len(), next.missing, next.scanned), (0, vec![1..=500], 500));
    // Missing events are reported until they are acknowledged.
    consumers.ack(&mine, 100, 500, 0).expect("acknowledged");
    let next = consumers.next(&journal, &mine, &Filter::default(), 9, usize::MAX).expect("it reads");
    assert_eq!(next.missing, vec![101..=500]);
}

/// Acknowledges events and marks exits. Returns each state: position and number of marks.
fn history(dir: &Path, steps: u64) -> Vec<(u64, usize)> {
    let consumers = consumers(dir);
    let mine = name("mine");
    consumers.register(&mine, ConsumerStart::Oldest, bounds(1, 0), 0).expect("registered");
    let mut states = vec![(0, 0)];
    for n in 1..=steps {
        match n % 3 {
            0 => consumers
                .mark_exit_seen(&mine, process(n), ExitMark { newest_seq: n, exit_seq: 0 }, bounds(1, n), 0)
                .expect("recorded"),
            _ => drop(consumers.ack(&mine, n, n, 0).expect("acknowledged")),
        }
        states.push((consumers.view(&mine).expect("known").position, consumers.exit_marks(&mine)));
    }
    states
}

#[test]
fn any_cut_of_a_file_is_noticed_and_keeps_the_position() {
    let dir = temporary();
    let position = history(dir.path(), 30).last().expect("a state").0;
    let path = file(dir.path());
    let bytes = std::fs::read(&path).expect("it reads");
    let open = || Consumers::open(&dir.path().join("consumers"), TTL, 9, 0).expect("it opens");
    for cut in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..cut]).expect("cut");
        // The broken code took a shorter file for an older one: the position went back in silence.
        let (consumers, damage) = open();
        assert_eq!(damage.len(), usize::from(cut < bytes.len()), "cut at {cut}: {damage:?}");
        let view = consumers.view(&name("mine"));
        assert_eq!(view.is_some(), cut >= 64, "only a file without a fact has no position");
        consumers.recreate_lost(5, 0).expect("created");
        let registered = consumers.register(&name("mine"), ConsumerStart::Now, bounds(5, 40), 0).expect("registered");
        let expected = if cut < 64 { 4 } else { position };
        assert_eq!((registered.position, registered.created), (expected, false));
        assert_eq!(registered.damaged_ms, (cut < bytes.len()).then_some(0), "it is informed");
        // It is informed until it acknowledges, also after a restart, and continues from there.
        let (consumers, damage) = open();
        let again = consumers.register(&name("mine"), ConsumerStart::Now, bounds(5, 40), 0).expect("registered");
        assert_eq!((again, damage), (registered, vec![]));
        consumers.ack(&name("mine"), 40, 40, 0).expect("acknowledged");
        let (consumers, _) = open();
        let after = consumers.register(&name("mine"), ConsumerStart::Now, bounds(5, 40), 0).expect("registered");
        assert_eq!((after.position, after.damaged_ms), (40, None));
    }
}

#[test]
fn a_file_of_a_version_without_summaries_is_read_and_a_torn_end_of_it_is_no_damage() {
    let dir = temporary();
    let position = history(dir.path(), 3).last().expect("a state").0;
    let path = file(dir.path());
    let mut bytes = std::fs::read(&path).expect("it reads");
    // Without the summary, the list of names, and with half a fact at the end.
    bytes.drain(32..64);
    bytes.extend([7; 16]);
    std::fs::write(&path, &bytes).expect("written");
    std::fs::remove_file(dir.path().join("consumers/names")).expect("removed");
    let (consumers, damage) = Consumers::open(&dir.path().join("consumers"), TTL, 9, 0).expect("it opens");
    assert_eq!((consumers.view(&name("mine")).expect("known").position, damage), (position, vec![]));
}

#[test]
fn a_file_stays_short_and_a_crash_during_compaction_loses_nothing() {
    let dir = temporary();
    let consumers = consumers(dir.path());
    let mine = name("mine");
    consumers.register(&mine, ConsumerStart::Oldest, bounds(1, 0), 0).expect("registered");
    for n in 1..=2000 {
        consumers.ack(&mine, n, n, 0).expect("acknowledged");
        let len = file(dir.path()).metadata().expect("its size").len();
        assert!(len <= (16 << 10) + 32, "{len} bytes after {n}");
        if n % 100 == 0 {
            // A crash before the rename left it.
            std::fs::write(file(dir.path()).with_extension("tmp"), "half").expect("written");
            let (again, damage) = Consumers::open(&dir.path().join("consumers"), TTL, 9, 0).expect("it opens");
            assert_eq!((again.view(&mine).expect("known").position, damage), (n, vec![]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_damaged_byte_of_a_file_is_noticed_and_keeps_the_position(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let dir = temporary();
        history(dir.path(), 20);
        let path = file(dir.path());
        let mut bytes = std::fs::read(&path).expect("it reads");
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).expect("damaged");
        let open = || Consumers::open(&dir.path().join("consumers"), TTL, 9, 0).expect("it opens");
        let (consumers, damage) = open();
        let position = consumers.view(&name("mine")).map_or(0, |view| view.position);
        prop_assert_eq!((position, damage.len()), (20, 1), "the position is in two places, and so is the name");
        prop_assert_eq!(open().1, Vec::<String>::new(), "reported once");
    }
}
