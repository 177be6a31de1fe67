//! kill -9 of the daemon at every step between a match, the journal, a push and an acknowledgement.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// The points. A match reaches the first ones but `watch.slow`; an acknowledgement two, an exit in an answer to a
/// consumer the last two.
pub const POINTS: &[&str] = &[
    "watch.found",
    "watch.admitted",
    "watch.slow",
    "journal.write",
    "journal.written",
    "journal.applied",
    "ack.write",
    "ack.written",
    "exit_seen.write",
    "exit_seen.written",
];

pub struct EventCase {
    pub daemon: Daemon,
    hooks: PathBuf,
}

impl EventCase {
    pub fn new(config: &str) -> EventCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        EventCase { daemon: Daemon::start_with(config, &[("TOOLD_HOOKS", hooks.to_str().unwrap())]), hooks }
    }

    pub fn arm(&self, point: &str) {
        fs::write(self.hooks.join(point), "").unwrap();
    }

    /// Waits until the daemon is at the point, kills it there, and starts another.
    pub fn strike(&mut self, point: &str) {
        let hit = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || hit.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
        fs::remove_file(hit).unwrap();
        self.daemon.spawn();
    }

    /// Returns everything that a consumer gets, acknowledged batch by batch, until `last` of its types has come.
    fn drain(&self, consumer: &str, last: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let next = self.daemon.ok("events.next", json!({ "consumer": consumer, "limit": 2, "wait_ms": 20_000 }));
            let events = next["events"].as_array().unwrap().clone();
            assert!(!events.is_empty(), "{last} never came after {all:#?}");
            let seq = events.last().unwrap()["seq"].clone();
            self.daemon.ok("events.ack", json!({ "consumer": consumer, "seq": seq }));
            all.extend(events);
            if all.iter().any(|e| e["type"] == last) {
                return all;
            }
        }
    }
}

impl Drop for EventCase {
    fn drop(&mut self) {
        // Without gates no process pauses any more, so the rig can end the rest.
        fs::remove_dir_all(&self.hooks).ok();
    }
}

/// One line waits for input, then matches, and so does the last one, which has no newline.
const SCRIPT: &str = "echo ready; read -r x; echo \"NEEDLE $x\"; read -r y; printf 'NEEDLE end'; exit 7";

fn exec() -> Value {
    json!({
        "argv": ["/bin/sh", "-c", SCRIPT], "stdin": "pipe", "watch": ["NEEDLE"], "notify": true, "session_key": "s",
    })
}

fn kinds(events: &[Value]) -> Vec<&str> {
    // `needs_input` may be published or not, depending on timing.
    events.iter().map(|e| e["type"].as_str().unwrap()).filter(|t| *t != "needs_input").collect()
}

fn is_gapless(events: &[Value]) {
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], n + 1, "{events:#?}");
    }
}

#[test]
fn a_match_is_published_exactly_once_whichever_step_the_daemon_dies_in() {
    for point in POINTS.iter().filter(|p| !p.starts_with("ack.") && !p.starts_with("exit_seen.") && **p != "watch.slow")
    {
        for step in ["match", "exit"] {
            let mut case = EventCase::new("[watch]\nmin_interval_ms = 1\n");
            let process = id(&case.daemon.ok("exec", exec()));
            case.daemon.printed(&process, "ready");
            let submit = |case: &EventCase, data: &str| {
                case.daemon.conn().request("submit", json!({ "id": process, "data": data }));
            };
            if step == "match" {
                case.arm(point);
                submit(&case, "one");
                case.strike(point);
            } else {
                submit(&case, "one");
                case.daemon.printed(&process, "NEEDLE one");
                let published = |case: &EventCase| case.daemon.process(&process)["watch"]["hits"] == 1;
                case.daemon.eventually("the first match is published", || published(&case));
                case.arm(point);
            }
            submit(&case, "two");
            if step == "exit" {
                case.strike(point);
            }
            assert_eq!(case.daemon.closed(&process)["exit_code"], 7, "{point} {step}");
            let events = case.drain("c", "completion");
            is_gapless(&events);
            let expected = ["started", "watch_match", "watch_match", "exited", "closed", "completion"];
            assert_eq!(kinds(&events), expected, "{point} {step}: {events:#?}");
            let outputs: Vec<&Value> =
                events.iter().filter(|e| e["type"] == "watch_match").map(|e| &e["output"]).collect();
            assert_eq!(outputs, [&json!("NEEDLE one"), &json!("NEEDLE end")], "{point} {step}");
            let watch = case.daemon.process(&process)["watch"].clone();
            assert_eq!((&watch["hits"], &watch["suppressed"]), (&json!(2), &json!(0)), "{point} {step}: {watch}");
        }
    }
}

#[test]
fn a_slow_watch_is_disabled_exactly_once_whichever_step_the_daemon_dies_in() {
    let print = "head -c 131072 /dev/urandom | od -An -v -tu1 | tr -d ' \\n' | tr 0-4 a | tr 5-9 b | head -c 70000";
    for point in ["watch.slow", "journal.write", "journal.written", "journal.applied"] {
        let mut case = EventCase::new("max_search_ms_per_mib = 1\n");
        case.arm("watch.slow");
        let watch = json!([{ "regex": "(?:[ab]{1,30}a){1,30}[c-z]" }]);
        let script = format!("{print}; exec sleep 1000");
        let process = id(&case.daemon.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "watch": watch })));
        let slow = case.hooks.join("watch.slow.hit");
        case.daemon.eventually("watch.slow is reached", || slow.exists());
        if point != "watch.slow" {
            // Only now, for other events pass these points too.
            case.arm(point);
            fs::remove_file(case.hooks.join("watch.slow")).unwrap();
        }
        case.strike(point);
        case.daemon.eventually("it is disabled", || case.daemon.process(&process)["watch"]["disabled"] == true);
        case.daemon.restart();
        case.daemon.ok("kill", json!({ "id": process }));
        let events = case.drain("c", "completion");
        is_gapless(&events);
        let expected = ["started", "watch_disabled", "exited", "closed", "completion"];
        let kinds = kinds(&events);
        assert_eq!(kinds.len(), expected.len(), "{point}: {events:#?}");
        assert!(expected.iter().all(|kind| kinds.contains(kind)), "{point}: {events:#?}");
        assert_eq!(&kinds[..2], &expected[..2], "{point}: {events:#?}");
    }
}

#[test]
fn acknowledged_events_are_never_delivered_again_and_others_are() {
    for point in POINTS.iter().filter(|p| p.starts_with("ack.")) {
        let mut case = EventCase::new("");
        let process = id(&case.daemon.ok("exec", json!({ "argv": ["/bin/true"] })));
        case.daemon.closed(&process);
        let first = case.daemon.ok("events.next", json!({ "consumer": "c", "limit": 2, "wait_ms": 20_000 }));
        assert_eq!(first["events"].as_array().unwrap().len(), 2);
        case.arm(point);
        case.daemon.conn().request("events.ack", json!({ "consumer": "c", "seq": 2 }));
        case.strike(point);
        let again = case.daemon.ok("events.next", json!({ "consumer": "c", "wait_ms": 20_000 }));
        let seqs: Vec<u64> = again["events"].as_array().unwrap().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        let expected: Vec<u64> = if *point == "ack.write" { vec![1, 2, 3] } else { vec![3] };
        assert_eq!(seqs, expected, "{point}");
        let other = case.daemon.ok("events.next", json!({ "consumer": "other" }));
        assert_eq!(other["events"].as_array().unwrap().len(), 3, "nothing was acknowledged for this consumer");
    }
}

/// The answer is written before its exit is acknowledged: a crash in between delivers the exit again, never loses it.
#[test]
fn an_exit_in_an_answer_is_acknowledged_after_the_answer_was_written() {
    for point in POINTS.iter().filter(|p| p.starts_with("exit_seen.")) {
        let mut case = EventCase::new("");
        case.arm(point);
        let mut conn = case.daemon.conn();
        let exec = json!({ "argv": ["/bin/true"], "yield_ms": 600_000, "consumer": "c" });
        let process = id(&conn.call("exec", exec).unwrap());
        case.strike(point);
        case.daemon.closed(&process);
        let next = case.daemon.ok("events.next", json!({ "consumer": "c", "types": ["exited"] }));
        let again = next["events"].as_array().unwrap().len();
        assert_eq!(again, usize::from(*point == "exit_seen.write"), "{point}: {next}");
    }
}

/// The events that a consumer has processed, in order.
struct Consumer {
    name: &'static str,
    seen: Vec<u64>,
}

impl Consumer {
    /// Processes one batch and acknowledges it; a consumer that crashes does not acknowledge.
    fn work(&mut self, conn: &mut Conn, crashes: bool) -> Option<usize> {
        let next = conn.call("events.next", json!({ "consumer": self.name, "limit": 3 })).ok()?;
        let seqs: Vec<u64> = next["events"].as_array()?.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
        if let (Some(last), false) = (seqs.last(), crashes) {
            self.seen.extend(&seqs);
            conn.call("events.ack", json!({ "consumer": self.name, "seq": last })).ok()?;
        }
        Some(seqs.len())
    }
}

#[test]
fn two_consumers_one_of_them_crashing_get_every_event_in_order_while_the_daemon_is_killed() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = crate::random::Random(seed);
    let mut daemon = Daemon::start();
    let mut consumers = [Consumer { name: "steady", seen: vec![] }, Consumer { name: "crashing", seen: vec![] }];
    for round in 0..15 {
        let mut conn = daemon.conn();
        for n in 0..3 {
            conn.request("exec", json!({ "argv": ["/bin/true"], "request_id": format!("{round}-{n}") }));
        }
        for n in 0..random.below(6) {
            let crashes = n % 2 == 0;
            consumers[0].work(&mut daemon.conn(), false);
            consumers[1].work(&mut daemon.conn(), crashes);
        }
        // The instant is what this test varies: it is random, not waited for.
        std::thread::park_timeout(std::time::Duration::from_micros(random.below(20_000)));
        daemon.restart();
    }
    for process in daemon.ids(json!({ "limit": 1000 })) {
        daemon.closed(&process);
    }
    for consumer in &mut consumers {
        while consumer.work(&mut daemon.conn(), false) != Some(0) {}
        let last = daemon.ok("daemon.info", json!({}))["events"]["last"].as_u64().unwrap();
        let mut once = consumer.seen.clone();
        once.dedup();
        assert_eq!(once, (1..=last).collect::<Vec<_>>(), "seed {seed}: {} saw all in order", consumer.name);
        assert_eq!(once.len(), consumer.seen.len(), "seed {seed}: {} saw some twice", consumer.name);
    }
}
