//! kill -9 of the daemon at every step of the files beside the journal: the list of segments, the list of consumers, the
//! summary of a position.

use crate::events::EventCase;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The points. New events reach the first ones, a new consumer the next, an acknowledgement the last.
pub const POINTS: &[&str] = &[
    "segment.created",
    "segment.listed",
    "segment.unlisted",
    "consumer.created",
    "consumer.listed",
    "position.appended",
];

/// Segments of a quarter of the journal: 16 KiB.
const SMALL_SEGMENTS: &str = "[events]\nsegment_bytes = 65536\nmax_bytes = 65536\n";

fn next(case: &EventCase, consumer: &str) -> Value {
    case.daemon.ok("events.next", json!({ "consumer": consumer, "from": "oldest", "limit": 10_000 }))
}

fn seqs(next: &Value) -> Vec<u64> {
    next["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

/// Nothing is reported as damaged, neither by the daemon nor to the consumer.
fn is_whole(case: &EventCase, next: &Value, point: &str) {
    assert_eq!(case.daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{point}");
    assert_eq!((&next["damaged"], &next["forgotten"]), (&Value::Null, &Value::Null), "{point}");
}

/// Returns all stored events. They are without gaps, and none was published twice.
fn all_events(case: &EventCase, point: &str) -> Vec<Value> {
    let next = next(case, "all");
    is_whole(case, &next, point);
    assert_eq!(next["missing"], Value::Null, "{point}");
    let info = case.daemon.ok("daemon.info", json!({}))["events"].clone();
    let stored: Vec<u64> = (info["oldest"].as_u64().unwrap()..=info["last"].as_u64().unwrap()).collect();
    assert_eq!(seqs(&next), stored, "{point}");
    let events = next["events"].as_array().unwrap().clone();
    let mut seen = BTreeSet::new();
    for event in &events {
        assert!(seen.insert((event["id"].to_string(), event["type"].to_string())), "{point}: twice {event}");
    }
    events
}

#[test]
fn no_event_is_lost_or_repeated_whichever_step_of_the_list_of_segments_the_daemon_dies_in() {
    for point in POINTS.iter().filter(|point| point.starts_with("segment.")) {
        let mut case = EventCase::new(SMALL_SEGMENTS);
        case.daemon.run("exit 0");
        next(&case, "c");
        case.daemon.ok("events.ack", json!({ "consumer": "c", "seq": 3 }));
        let drops = *point == "segment.unlisted";
        case.arm(point);
        let mut conn = case.daemon.conn();
        // Enough for a second segment, or for more than the journal keeps.
        for n in 0..if drops { 150 } else { 25 } {
            let argv = json!(["/bin/true", "x".repeat(500)]);
            conn.request("exec", json!({ "argv": argv, "request_id": format!("{n}") }));
        }
        case.strike(point);
        let ids = case.daemon.ids(json!({ "limit": 1000 }));
        ids.iter().for_each(|id| drop(case.daemon.closed(id)));
        let events = all_events(&case, point);
        if !drops {
            assert_eq!(events[0]["seq"], 1, "{point}");
            for (id, kind) in ids.iter().flat_map(|id| ["started", "exited", "closed"].map(|kind| (id, kind))) {
                assert!(events.iter().any(|e| e["id"] == **id && e["type"] == kind), "{point}: {kind} of {id}");
            }
        }
        assert_eq!(next(&case, "c")["position"], 3, "{point}");
        case.daemon.restart();
        let again = all_events(&case, point);
        assert_eq!(again.last(), events.last(), "{point}: the numbers continue");
    }
}

#[test]
fn no_consumer_is_lost_whichever_step_of_its_creation_the_daemon_dies_in() {
    for point in POINTS.iter().filter(|point| point.starts_with("consumer.")) {
        let mut case = EventCase::new("");
        case.daemon.run("exit 0");
        next(&case, "old");
        case.daemon.ok("events.ack", json!({ "consumer": "old", "seq": 2 }));
        case.arm(point);
        case.daemon.conn().request("events.next", json!({ "consumer": "new", "from": "oldest" }));
        case.strike(point);
        for (consumer, expected) in [("old", vec![3]), ("new", vec![1, 2, 3])] {
            let next = next(&case, consumer);
            is_whole(&case, &next, point);
            assert_eq!(seqs(&next), expected, "{point}: {consumer}");
        }
        case.daemon.ok("events.ack", json!({ "consumer": "new", "seq": 1 }));
        case.daemon.restart();
        for (consumer, position) in [("old", 2), ("new", 1)] {
            let next = next(&case, consumer);
            is_whole(&case, &next, point);
            assert_eq!((&next["position"], &next["created"]), (&json!(position), &json!(false)), "{point}: {next}");
        }
    }
}

/// The summary counts one fact less than there are.
#[test]
fn a_position_without_its_summary_is_not_damaged_and_holds() {
    let point = "position.appended";
    let mut case = EventCase::new("");
    case.daemon.run("exit 0");
    next(&case, "c");
    case.arm(point);
    case.daemon.conn().request("events.ack", json!({ "consumer": "c", "seq": 2 }));
    case.strike(point);
    for _ in 0..2 {
        let next = next(&case, "c");
        is_whole(&case, &next, point);
        assert_eq!((&next["position"], seqs(&next)), (&json!(2), vec![3]));
        case.daemon.restart();
    }
}
