//! Any order of publish, next, ack, exit mark, crash and retention, against a list of events.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const NAMES: [&str; 3] = ["all", "red", "exits"];

#[derive(Debug, Clone)]
enum Step {
    Publish(u64),
    /// A consumer, the number of events at once, and whether it acknowledges them.
    Next(usize, usize, bool),
    /// A call returns the exit of this process to that consumer.
    MarkExit(usize, u64),
    /// `kill -9`, possibly with a torn last write.
    Crash(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1u64..6).prop_map(Step::Publish),
        4 => (0usize..3, 1usize..6, any::<bool>()).prop_map(|(who, n, ack)| Step::Next(who, n, ack)),
        1 => (0usize..3, 1u64..5).prop_map(|(who, id)| Step::MarkExit(who, id)),
        1 => any::<bool>().prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 1..80)
}

fn filter(who: usize) -> Filter {
    match who {
        0 => Filter::default(),
        1 => Filter { session_key: Some("red".into()), ..Filter::default() },
        _ => Filter { types: Some([EventType::Exited, EventType::Completion].into()), ..Filter::default() },
    }
}

/// The journal and consumers under test, and the expected state of each consumer.
struct Rig {
    dir: tempfile::TempDir,
    journal: Journal,
    consumers: Consumers,
    /// The last event that each consumer acknowledged.
    acked: [u64; 3],
    /// The processes whose exits calls returned to each consumer.
    marked: [HashMap<u64, ()>; 3],
    /// The events that each consumer received from `next` and acknowledged, in order.
    received: [Vec<u64>; 3],
}

fn name(who: usize) -> ConsumerName {
    ConsumerName::parse(NAMES[who]).expect("a name")
}

fn start(dir: &Path) -> (Journal, Consumers) {
    let (consumers, damage) = Consumers::open(&dir.join("consumers"), u64::MAX, 9, 0).expect("it opens");
    let (journal, opened) = Journal::open(dir, SMALL, 0, consumers.highest()).expect("it opens");
    assert_eq!((damage, opened.damage), (vec![], vec![]));
    (journal, consumers)
}

impl Rig {
    fn new() -> Rig {
        let dir = temporary();
        let (journal, consumers) = start(dir.path());
        for who in 0..3 {
            consumers.register(&name(who), ConsumerStart::Oldest, bounds(1, 0), 0).expect("registered");
        }
        Rig { dir, journal, consumers, acked: [0; 3], marked: Default::default(), received: Default::default() }
    }

    /// Returns the events that a consumer still has to receive, by the naive list.
    fn due(&self, who: usize) -> Vec<u64> {
        let wanted = |n: &u64| {
            let id = (!n.is_multiple_of(5)).then(|| process(n % 5));
            let exit = matches!(kind(*n), EventType::Exited | EventType::Completion);
            filter(who).matches(kind(*n), id, session(*n), n.is_multiple_of(2).then_some("even"))
                && !(exit && self.marked[who].contains_key(&(n % 5)) && !n.is_multiple_of(5))
        };
        (self.acked[who] + 1..=self.journal.last()).filter(wanted).collect()
    }

    fn next(&mut self, who: usize, limit: usize, ack: bool) {
        let next = self.consumers.next(&self.journal, &name(who), &filter(who), limit, usize::MAX).expect("it reads");
        assert!(next.events.iter().map(numbers).all(|(seq, n)| seq == n));
        let due = self.due(who);
        let got = seqs(&next.events);
        assert_eq!((got.as_slice(), next.missing), (&due[..due.len().min(limit)], vec![]), "{}", NAMES[who]);
        assert!(next.scanned_all || next.events.len() == limit);
        if let (true, Some(last)) = (ack, got.last()) {
            self.acked[who] = self.consumers.ack(&name(who), *last, self.journal.last(), 0).expect("acknowledged");
            assert_eq!(self.acked[who], *last);
            self.received[who].extend(got);
        }
    }

    fn crash(self, torn: bool) -> Rig {
        let Rig { dir, journal, consumers, acked, marked, received } = self;
        let last = journal.last();
        drop((journal, consumers));
        if torn && let Some(path) = files(dir.path()).pop() {
            let bytes = [std::fs::read(&path).expect("it reads"), vec![7; 50]].concat();
            std::fs::write(path, bytes).expect("torn");
        }
        let (journal, consumers) = start(dir.path());
        assert_eq!(journal.last(), last);
        Rig { dir, journal, consumers, acked, marked, received }
    }

    fn step(mut self, step: &Step) -> Rig {
        match *step {
            Step::Publish(n) => fill(&self.journal, self.journal.last() + n),
            Step::Next(who, limit, ack) => self.next(who, limit, ack),
            Step::MarkExit(who, id) => {
                let last = self.journal.last();
                self.consumers
                    .mark_exit_seen(
                        &name(who),
                        process(id),
                        ExitMark { newest_seq: last, exit_seq: 0 },
                        bounds(1, last),
                        0,
                    )
                    .expect("recorded");
                self.marked[who].insert(id, ());
            }
            Step::Crash(torn) => return self.crash(torn),
        }
        self
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_consumer_receives_its_events_in_order_and_once_if_it_acknowledges(steps in steps()) {
        let mut rig = steps.iter().fold(Rig::new(), Rig::step);
        for who in 0..3 {
            while !rig.due(who).is_empty() {
                rig.next(who, 4, true);
            }
            let once = rig.received[who].windows(2).all(|pair| pair[0] < pair[1]);
            prop_assert!(once, "{:?}", rig.received[who]);
        }
    }
}
