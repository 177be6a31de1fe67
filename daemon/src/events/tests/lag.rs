//! A consumer that lags far behind.

use super::*;
use crate::events::{ConsumerName, Consumers};

const EVENTS: u64 = 100_000;
const BATCH: usize = 1000;

#[test]
fn a_consumer_a_hundred_thousand_events_behind_catches_up_in_order_without_a_gap() {
    let dir = temporary();
    let (journal, _) = open(dir.path(), JournalLimits::default());
    let (consumers, _) = Consumers::open(&dir.path().join("consumers"), 1 << 40, 10, 0).expect("consumers");
    let name = ConsumerName::parse("lagging").expect("a name");
    consumers.register(&name, ConsumerStart::Oldest, bounds(journal.oldest(), journal.last()), 0).expect("registered");
    fill(&journal, EVENTS);
    let mut last = 0;
    while last < EVENTS {
        let next = consumers.next(&journal, &name, &Filter::default(), BATCH, 1 << 20).expect("readable");
        assert!(!next.events.is_empty() && next.missing.is_empty(), "stuck at {last}");
        for event in &next.events {
            last += 1;
            assert_eq!(event.seq, last);
        }
        consumers.ack(&name, last, journal.last(), 0).expect("acknowledged");
    }
    let after = consumers.next(&journal, &name, &Filter::default(), BATCH, 1 << 20).expect("readable");
    assert!(after.events.is_empty() && after.scanned_all);
}
