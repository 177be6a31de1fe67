//! Measures throughput. Meaningful only in release: `cargo test --release -p toold-daemon --lib throughput -- --ignored`.

use super::*;
use std::time::Instant;
use toold_proto::event::Closed;

#[test]
#[ignore = "measures; build it with --release"]
fn a_million_events_are_published_opened_and_read_at_the_documented_rate() {
    let dir = temporary();
    let limits = JournalLimits { segment_bytes: 4 << 20, max_bytes: 4 << 30, max_age_ms: u64::MAX };
    let (journal, _) = open(dir.path(), limits);
    let closed = Closed { name: Some("build".to_owned()), bytes: 5678, lines: 90 };
    let event = |n: u64| NewEvent {
        fields: &closed,
        id: Some(process(n % 1000 + 1)),
        session_key: session(n),
        task_id: Some("task-17"),
        state: &[7; 40],
        cancelled: false,
    };
    let started = Instant::now();
    for n in 1..=1_000_000 {
        journal.publish(&event(n), at(1_794_799_730_123 + n), |_| ()).expect("written");
    }
    let rate = 1e6 / started.elapsed().as_secs_f64();
    println!("publish: {rate:.0}/s, {} bytes", journal.bytes());
    let mut times = Vec::new();
    for after in (0..1_000_000).step_by(9_973) {
        let started = Instant::now();
        let limit = ReadLimit { events: 1000, ..ALL };
        let got = journal.read(after, &Filter::default(), limit).expect("it reads").events.len();
        times.push(started.elapsed());
        assert_eq!(got as u64, (1_000_000 - after).min(1000));
    }
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "read 1000 of a million: median {median:?}, p90 {:?}, worst {:?}",
        times[times.len() * 9 / 10],
        times.last()
    );
    let started = Instant::now();
    for after in 999_000..1_000_000 {
        journal.read(after, &Filter::default(), ReadLimit { events: 1, ..ALL }).expect("it reads");
    }
    println!("read the newest event: {:?}", started.elapsed() / 1000);
    let none = Filter { session_key: Some("none".into()), ..Filter::default() };
    let started = Instant::now();
    journal.read(0, &none, ALL).expect("it reads");
    println!("scan a million for nothing: {:?}", started.elapsed());
    drop(journal);
    let started = Instant::now();
    let (journal, _) = open(dir.path(), limits);
    println!("open a million: {:?}", started.elapsed());
    assert!(journal.last() == 1_000_000 && rate > 100_000.0 && median.as_millis() < 5);
}
