//! `events.next` and `events.ack`: named consumers, each with a durable position of its own.

use crate::api::events::{all, kinds, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use toold_test_support::rig::{Daemon, id};

fn seqs(next: &Value) -> Vec<u64> {
    next["events"].as_array().unwrap().iter().map(|e| e["seq"].as_u64().unwrap()).collect()
}

#[test]
fn unacknowledged_events_are_delivered_again_and_acknowledged_ones_never() {
    let mut d = Daemon::start();
    d.run("exit 0");
    let next = |d: &Daemon| d.ok("events.next", json!({ "consumer": "c" }));
    let first = next(&d);
    assert_eq!((seqs(&first), &first["created"], &first["position"]), (vec![1, 2, 3], &json!(true), &json!(0)));
    assert_eq!(seqs(&next(&d)), [1, 2, 3]);
    assert_eq!(d.ok("events.ack", json!({ "consumer": "c", "seq": 2 }))["position"], 2);
    assert_eq!(seqs(&next(&d)), [3]);
    // An acknowledgement never moves back.
    assert_eq!(d.ok("events.ack", json!({ "consumer": "c", "seq": 1 }))["position"], 2);
    d.restart();
    assert_eq!(seqs(&next(&d)), [3]);
    assert_eq!(seqs(&d.ok("events.next", json!({ "consumer": "other" }))), [1, 2, 3]);
    d.ok("events.ack", json!({ "consumer": "c", "seq": 3 }));
    assert_eq!(seqs(&next(&d)), Vec::<u64>::new());
}

#[test]
fn a_consumer_may_start_now_and_waits_for_new_events() {
    let d = Daemon::start();
    d.run("exit 0");
    let none = d.ok("events.next", json!({ "consumer": "c", "from": "now" }));
    assert_eq!((seqs(&none), &none["position"]), (vec![], &json!(3)));
    let mut waiting = d.conn();
    let call = waiting.request("events.next", json!({ "consumer": "c", "wait_ms": 30_000 }));
    let process = d.sh("exit 0");
    let event = waiting.answer(call).unwrap()["events"][0].clone();
    assert_eq!((&event["type"], &event["id"], &event["seq"]), (&json!("started"), &json!(process), &json!(4)));
}

#[test]
fn filters_apply_before_an_event_is_delivered() {
    let d = Daemon::start();
    for (session, task) in [("a", "1"), ("b", "1"), ("a", "2")] {
        let process = id(&d.sh_with("exit 0", json!({ "session_key": session, "task_id": task })));
        d.closed(&process);
    }
    let without_session = d.run("exit 0");
    let get = |filter: Value| {
        let mut params = json!({ "consumer": "c" });
        params.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        seqs(&d.ok("events.next", params))
    };
    assert_eq!(get(json!({ "session_key": "a" })), [1, 2, 3, 7, 8, 9]);
    assert_eq!(get(json!({ "session_key": "a", "task_id": "2" })), [7, 8, 9]);
    assert_eq!(get(json!({ "task_id": "1", "types": ["exited"] })), [2, 5]);
    assert_eq!(get(json!({ "id": without_session["id"] })), [10, 11, 12]);
    assert_eq!(get(json!({ "session_key": "" })), Vec::<u64>::new());
    assert_eq!(get(json!({})).len(), 12);
    d.refused_param("types", "events.next", json!({ "consumer": "c", "types": ["exitd"] }));
    d.refused_param("types", "events.next", json!({ "consumer": "c", "types": [] }));
    d.refused(-32001, "not_found", "events.next", json!({ "consumer": "c", "id": "missing" }));
}

#[test]
fn a_long_poll_wakes_only_for_events_that_pass_its_filter() {
    let d = Daemon::start();
    let mut waiting = d.conn();
    let call = waiting.request("events.next", json!({ "consumer": "c", "session_key": "mine", "wait_ms": 30_000 }));
    d.run("exit 0");
    let process = id(&d.sh_with("exit 0", json!({ "session_key": "mine" })));
    let answer = waiting.answer(call).unwrap();
    assert_eq!(answer["events"][0]["id"], json!(process), "{answer}");
    assert!(answer["events"].as_array().unwrap().iter().all(|e| e["session_key"] == "mine"));
}

#[test]
fn an_exit_that_wait_or_exec_returned_is_acknowledged_for_that_consumer_only() {
    let mut d = Daemon::start();
    let waited = id(&d.sh_with("exit 3", json!({ "notify": true })));
    d.ok("wait", json!({ "id": waited, "consumer": "c" }));
    d.closed(&waited);
    let yielded = d.sh_with("exit 4", json!({ "notify": true, "yield_ms": 30_000, "consumer": "c" }));
    assert_eq!(yielded["exit_code"], 4);
    d.closed(&id(&yielded));
    until(&d, "check", json!({ "types": ["completion"], "id": id(&yielded) }));
    for _ in 0..2 {
        let mine = d.ok("events.next", json!({ "consumer": "c" }));
        assert_eq!(kinds(mine["events"].as_array().unwrap()), ["started", "closed", "started", "closed"], "{mine:#}");
        let others = all(&d).iter().filter(|e| e["type"] == "exited" || e["type"] == "completion").count();
        assert_eq!(others, 4);
        d.restart();
    }
    // A wait that timed out, and an exec that answered before the exit, acknowledge nothing.
    let running = id(&d.sh_with("exec sleep 1000", json!({ "consumer": "c" })));
    d.ok("wait", json!({ "id": running, "timeout_ms": 1, "consumer": "c" }));
    d.ok("kill", json!({ "id": running }));
    until(&d, "c", json!({ "types": ["exited"], "id": running }));
}

#[test]
fn invalid_names_and_numbers_are_rejected() {
    let d = Daemon::start();
    d.refused_param("consumer", "events.next", json!({}));
    d.refused_param("consumer", "events.next", json!({ "consumer": "" }));
    d.refused_param("consumer", "events.next", json!({ "consumer": "a\nb" }));
    d.refused_param("consumer", "events.next", json!({ "consumer": "x".repeat(129) }));
    d.refused_param("limit", "events.next", json!({ "consumer": "c", "limit": 0 }));
    d.refused_param("seq", "events.ack", json!({ "consumer": "c" }));
    d.refused(-32001, "not_found", "events.ack", json!({ "consumer": "missing", "seq": 0 }));
    d.ok("events.next", json!({ "consumer": "c" }));
    d.refused_param("seq", "events.ack", json!({ "consumer": "c", "seq": 1 }));
    d.refused_param("consumer", "exec", json!({ "argv": ["/bin/true"], "consumer": "" }));
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    // Names that would be awkward as file names are valid.
    for name in ["../../x", ".", "ä b/c", "CON"] {
        assert_eq!(d.ok("events.next", json!({ "consumer": name }))["consumer"], *name);
    }
}

#[test]
fn events_that_retention_dropped_are_reported_as_a_range() {
    let d = Daemon::start_with("[events]\nsegment_bytes = 65536\nmax_bytes = 65536\n", &[]);
    d.run("exit 0");
    d.ok("events.next", json!({ "consumer": "behind" }));
    d.ok("events.ack", json!({ "consumer": "behind", "seq": 1 }));
    let mut conn = d.conn();
    let oldest = |d: &Daemon| d.ok("daemon.info", json!({}))["events"]["oldest"].as_u64().unwrap();
    while oldest(&d) <= 3 {
        for _ in 0..20 {
            conn.call("exec", json!({ "argv": ["/bin/true", "x".repeat(500)], "yield_ms": 10_000 })).unwrap();
        }
    }
    let next = d.ok("events.next", json!({ "consumer": "behind", "limit": 1 }));
    assert_eq!(next["missing"]["from"], 2);
    let to = next["missing"]["to"].as_u64().unwrap();
    assert_eq!(next["events"][0]["seq"], to + 1);
    let fresh = d.ok("events.next", json!({ "consumer": "fresh", "limit": 1 }));
    assert_eq!((&fresh["missing"], &fresh["created"]), (&Value::Null, &json!(true)));
    let mut live = d.conn();
    live.call("events.subscribe", json!({ "after": 1 })).unwrap();
    let lagged = live.push();
    assert_eq!((&lagged["type"], &lagged["of"], &lagged["from"]), (&json!("lagged"), &json!("events"), &json!(2)));
    let first = live.push();
    assert_eq!(first["seq"], lagged["to"].as_u64().unwrap() + 1);
}

#[test]
fn an_expired_consumer_learns_of_it_when_it_returns() {
    let mut d = Daemon::start_with("[events]\nconsumer_ttl_ms = 500\n", &[]);
    d.run("exit 0");
    d.ok("events.next", json!({ "consumer": "c" }));
    d.ok("events.ack", json!({ "consumer": "c", "seq": 2 }));
    let known = |d: &Daemon| d.ok("daemon.info", json!({}))["events"]["consumers"].as_array().unwrap().len();
    d.eventually("the consumer is forgotten", || known(&d) == 0);
    d.refused(-32001, "not_found", "events.ack", json!({ "consumer": "c", "seq": 3 }));
    d.restart();
    let back = d.ok("events.next", json!({ "consumer": "c" }));
    assert_eq!((&back["forgotten"]["position"], &back["created"]), (&json!(2), &json!(true)), "{back}");
    assert_eq!(seqs(&back), [1, 2, 3], "it receives everything that it may have missed");
    assert_eq!(d.ok("events.next", json!({ "consumer": "c" }))["forgotten"], Value::Null);
}

#[test]
fn one_consumer_too_many_is_rejected_before_anything_starts() {
    let d = Daemon::start_with("[events]\nmax_consumers = 1\n", &[]);
    d.ok("events.next", json!({ "consumer": "one" }));
    let error = d.refused(-32004, "limit", "events.next", json!({ "consumer": "two" }));
    assert_eq!(error["data"]["limit"], "events.max_consumers");
    d.refused(-32004, "limit", "exec", json!({ "argv": ["/bin/true"], "consumer": "two" }));
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    d.ok("exec", json!({ "argv": ["/bin/true"], "consumer": "one", "yield_ms": 10_000 }));
}

/// The broken code expired a consumer in the middle of its own call.
#[test]
fn a_consumer_that_waits_in_a_call_does_not_expire() {
    let d = Daemon::start_with("[events]\nconsumer_ttl_ms = 300\n", &[]);
    let mut waiting = d.conn();
    let call = waiting.request("events.next", json!({ "consumer": "c", "from": "now", "wait_ms": 30_000 }));
    let other = json!({ "consumer": "other" });
    d.ok("events.next", other.clone());
    let known = |d: &Daemon| d.ok("daemon.info", json!({}))["events"]["consumers"].as_array().unwrap().len();
    d.eventually("the one that does not wait is forgotten", || known(&d) == 1);
    let process = d.sh("exit 0");
    let answer = waiting.answer(call).unwrap();
    assert_eq!(answer["events"][0]["id"], json!(process));
    d.ok("events.ack", json!({ "consumer": "c", "seq": answer["events"][0]["seq"] }));
}

#[test]
fn a_journal_that_lost_its_end_reports_it_and_never_reuses_numbers() {
    let mut d = Daemon::start();
    for _ in 0..5 {
        d.run("exit 0");
    }
    d.kill9();
    let events = d.state().join("events");
    let segment = std::fs::read_dir(&events)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "log"));
    let segment = segment.unwrap();
    let half = std::fs::metadata(&segment).unwrap().len() / 2;
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(half).unwrap();
    d.spawn();
    let damaged = d.ok("daemon.info", json!({}))["damaged"].clone();
    assert!(damaged.to_string().contains("events "), "{damaged}");
    let mut live = d.conn();
    live.call("events.subscribe", json!({ "after": 0 })).unwrap();
    let process = d.run("exit 3");
    let (mut seen, mut exits) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let event = live.push();
        if let Some(seq) = event["seq"].as_u64() {
            assert!(seen.insert(seq), "{seq} came twice");
        }
        if event["type"] == "exited" {
            exits.insert(id(&event));
        }
        if event["type"] == "closed" && event["id"] == process["id"] {
            break;
        }
    }
    assert!(seen.range(..16).count() < 15, "some were lost");
    assert!(*seen.last().unwrap() > 15, "no number was used twice");
    // The records published their events again: each process has an exit in the journal.
    assert_eq!(exits.len(), 6);
}
