//! How fast it is. Only a release says something: `cargo test --release -p toold-daemon --lib pace -- --ignored`.

use super::*;
use std::time::Instant;
use toold_proto::event::Closed;

#[test]
#[ignore = "measures; build it with --release"]
fn a_million_events_are_published_opened_and_read_at_the_promised_pace() {
    let dir = temporary();
    let limits = JournalLimits { segment_bytes: 4 << 20, max_bytes: 4 << 30, max_age_ms: u64::MAX };
    let (journal, _) = open(dir.path(), limits);
    let closed = Closed { name: Some("build".to_owned()), bytes: 5678, lines: 90 };
    let draft = |n: u64| NewEvent {
        fields: &closed,
        id: Some(process(n % 1000 + 1)),
        session_key: session(n),
        task_id: Some("task-17"),
        state: &[7; 40],
        cancelled: false,
    };
    let begun = Instant::now();
    for n in 1..=1_000_000 {
        journal.publish(&draft(n), at(1_794_799_730_123 + n), |_| ()).expect("written");
    }
    let rate = 1e6 / begun.elapsed().as_secs_f64();
    println!("publish: {rate:.0}/s, {} bytes", journal.bytes());
    let mut times = Vec::new();
    for after in (0..1_000_000).step_by(9_973) {
        let begun = Instant::now();
        let limit = ReadLimit { events: 1000, ..ALL };
        let got = journal.read(after, &Filter::default(), limit).expect("it reads").events.len();
        times.push(begun.elapsed());
        assert_eq!(got as u64, (1_000_000 - after).min(1000));
    }
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "read 1000 of a million: median {median:?}, p90 {:?}, worst {:?}",
        times[times.len() * 9 / 10],
        times.last()
    );
    let begun = Instant::now();
    for after in 999_000..1_000_000 {
        journal.read(after, &Filter::default(), ReadLimit { events: 1, ..ALL }).expect("it reads");
    }
    println!("read the newest event: {:?}", begun.elapsed() / 1000);
    let none = Filter { session_key: Some("nobody".into()), ..Filter::default() };
    let begun = Instant::now();
    journal.read(0, &none, ALL).expect("it reads");
    println!("scan a million for nothing: {:?}", begun.elapsed());
    drop(journal);
    let begun = Instant::now();
    let (journal, _) = open(dir.path(), limits);
    println!("open a million: {:?}", begun.elapsed());
    assert!(journal.last() == 1_000_000 && rate > 100_000.0 && median.as_millis() < 5);
}
