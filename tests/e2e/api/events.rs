//! Lifecycle events: each is published once, numbered, with or without a listening client.

use serde_json::{Value, json};
use toold_test_support::rig::{DEADLINE, Daemon, id};

/// All events so far, for a consumer that acknowledges nothing.
#[track_caller]
pub fn all(d: &Daemon) -> Vec<Value> {
    d.ok("events.next", json!({ "consumer": "all", "limit": 10_000 }))["events"].as_array().unwrap().clone()
}

pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["type"].as_str().unwrap()).collect()
}

/// Waits for the first event of this type that the consumer `consumer` has not acknowledged.
#[track_caller]
pub fn until(d: &Daemon, consumer: &str, filter: Value) -> Value {
    let mut params = json!({ "consumer": consumer, "limit": 1, "wait_ms": DEADLINE.as_millis() as u64 / 2 });
    params.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
    let next = d.ok("events.next", params.clone());
    next["events"].get(0).unwrap_or_else(|| panic!("no event for {params}: {:#?}", all(d))).clone()
}

#[test]
fn a_process_publishes_started_exited_and_closed_with_flat_fields() {
    let d = Daemon::start();
    let process =
        id(&d.sh_with("echo one; echo two; exit 3", json!({ "session_key": "s", "task_id": "t", "name": "n" })));
    d.closed(&process);
    let events = all(&d);
    assert_eq!(kinds(&events), ["started", "exited", "closed"]);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], n + 1);
        assert_eq!(
            (&event["id"], &event["session_key"], &event["task_id"]),
            (&json!(process), &json!("s"), &json!("t"))
        );
        assert!(event["at"].as_str().unwrap().ends_with('Z'), "{event}");
    }
    assert!(events[0]["pid"].is_i64() && events[0]["name"] == "n", "{}", events[0]);
    let exited = &events[1];
    assert_eq!(
        (&exited["exit_code"], &exited["signal"], &exited["reason"]),
        (&json!(3), &Value::Null, &json!("exited"))
    );
    assert_eq!((&exited["bytes"], &exited["lines"], &exited["status"]), (&json!(8), &json!(2), &json!("exited")));
    assert!(exited["duration_ms"].is_u64());
    assert_eq!((&events[2]["bytes"], &events[2]["lines"]), (&json!(8), &json!(2)));
}

#[test]
fn a_death_by_signal_a_kill_and_a_failed_start_are_published_with_their_reason() {
    let d = Daemon::start();
    let shot = d.sh("kill -9 $$");
    d.closed(&shot);
    let killed = d.sh("exec sleep 1000");
    d.ok("kill", json!({ "id": killed }));
    d.closed(&killed);
    d.refused(-32006, "spawn_failed", "exec", json!({ "argv": ["/no/such/program"], "notify": true }));
    let exits: Vec<Value> = all(&d).into_iter().filter(|e| e["type"] == "exited").collect();
    let facts = |e: &Value| (e["exit_code"].clone(), e["signal"].clone(), e["reason"].clone());
    assert_eq!(facts(&exits[0]), (json!(137), json!("SIGKILL"), json!("signaled")));
    assert_eq!(facts(&exits[1]), (json!(143), json!("SIGTERM"), json!("killed")));
    assert!(exits[1]["killed_by"].is_string());
    assert_eq!(facts(&exits[2]), (Value::Null, Value::Null, json!("failed_start")));
    assert_eq!(exits[2]["failure"]["error"], "ENOENT");
    let last = all(&d).pop().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&json!("completion"), &json!("failed_start")));
}

#[test]
fn a_completion_has_the_exit_the_end_of_the_output_and_a_hash_of_all_of_it() {
    let d = Daemon::start();
    let script = "seq 1 1000; printf 'the end' >&2; exit 4";
    let process = id(&d.sh_with(script, json!({ "notify": true })));
    d.closed(&process);
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    let bytes = d.bytes(&process);
    let sum = d.run(&format!("cat {}/procs/{process}/log | sha256sum", d.state().display()));
    let sha = d.text(&id(&sum)).split_whitespace().next().unwrap().to_string();
    assert_eq!(done["sha256"], json!(sha));
    assert_eq!((&done["bytes"], &done["lines"], &done["exit_code"]), (&json!(bytes.len()), &json!(1001), &json!(4)));
    let output = done["output"].as_str().unwrap();
    assert_eq!(output.chars().count(), 2000);
    assert!(String::from_utf8(bytes).unwrap().ends_with(output));
    let path = done["output_path"].as_str().unwrap();
    assert!(std::fs::read(path).unwrap().ends_with(b"the end"));
    assert_eq!((&done["id"], &done["dropped_bytes"]), (&json!(process), &json!(0)));
    assert!(done.get("cancelled").is_none());
}

#[test]
fn a_completion_does_not_wait_for_orphans_that_hold_the_pipe() {
    let d = Daemon::start();
    let gate = d.gate("later");
    let script = format!("echo own; ({}; echo orphan) & exit 0", gate.wait());
    let process = id(&d.sh_with(&script, json!({ "notify": true })));
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!((&done["output"], &done["bytes"], &done["lines"]), (&json!("own\n"), &json!(4), &json!(1)));
    gate.open();
    assert_eq!(d.closed(&process)["bytes"], 11);
    assert_eq!(all(&d).iter().filter(|e| e["type"] == "completion").count(), 1);
}

#[test]
fn a_large_output_is_hashed_in_the_background_and_one_with_a_gap_has_no_hash() {
    let d = Daemon::start_with("log_max_bytes = 1048576\n", &[]);
    let whole = id(&d.sh_with("head -c 500000 /dev/zero", json!({ "notify": true })));
    d.closed(&whole);
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!((&done["bytes"], done["sha256"].as_str().unwrap().len()), (&json!(500_000), 64));
    d.ok("events.ack", json!({ "consumer": "c", "seq": done["seq"] }));
    let cut = id(&d.sh_with("head -c 5000000 /dev/zero", json!({ "notify": true })));
    d.closed(&cut);
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!((&done["bytes"], &done["sha256"]), (&json!(5_000_000), &Value::Null));
    assert!(done["dropped_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn the_end_of_a_session_marks_completions_cancelled_and_pushes_none() {
    let d = Daemon::start();
    let mut live = d.conn();
    live.call("events.subscribe", json!({})).unwrap();
    let process = id(&d.sh_with("exec sleep 1000", json!({ "notify": true, "session_key": "s" })));
    d.ok("session.end", json!({ "session_key": "s" }));
    d.closed(&process);
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!((&done["cancelled"], &done["id"]), (&json!(true), &json!(process)));
    let after = d.sh("exit 0");
    d.closed(&after);
    let pushed = live.pushes_until("closed");
    assert!(pushed.iter().all(|e| e["type"] != "completion"), "{pushed:#?}");
}

#[test]
fn an_exit_without_a_daemon_is_published_by_the_next_one() {
    let mut d = Daemon::start();
    let gate = d.gate("exit");
    let script = format!("echo before; {}; echo MATCH; exit 6", gate.wait());
    let process = id(&d.sh_with(&script, json!({ "notify": true, "watch": ["MATCH"] })));
    d.printed(&process, "before");
    let program = d.program(&process);
    d.kill9();
    gate.open();
    assert!(program.dies_within(DEADLINE));
    d.spawn();
    d.closed(&process);
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!((&done["exit_code"], &done["output"]), (&json!(6), &json!("before\nMATCH\n")));
    d.restart();
    d.restart();
    assert_eq!(kinds(&all(&d)), ["started", "watch_match", "exited", "closed", "completion"]);
}

#[test]
fn a_heartbeat_follows_new_output_at_most_once_per_interval() {
    let d = Daemon::start_with("[events]\nmin_heartbeat_ms = 200\n", &[]);
    d.refused_param("heartbeat_ms", "exec", json!({ "argv": ["/bin/true"], "heartbeat_ms": 199 }));
    let gate = d.gate("more");
    let script = format!("echo one; echo two; {}; echo three; exec sleep 1000", gate.wait());
    let process = id(&d.sh_with(&script, json!({ "heartbeat_ms": 200, "name": "beats" })));
    let first = until(&d, "c", json!({ "types": ["heartbeat"] }));
    assert_eq!((&first["bytes"], &first["new_bytes"], &first["lines"]), (&json!(8), &json!(8), &json!(2)));
    assert_eq!((&first["output"], &first["name"]), (&json!("one\ntwo\n"), &json!("beats")));
    d.ok("events.ack", json!({ "consumer": "c", "seq": first["seq"] }));
    gate.open();
    let second = until(&d, "c", json!({ "types": ["heartbeat"] }));
    assert_eq!((&second["bytes"], &second["new_bytes"], &second["id"]), (&json!(14), &json!(6), &json!(process)));
    let silent = d.ok("events.next", json!({ "consumer": "d", "types": ["heartbeat"], "limit": 9 }));
    assert_eq!(silent["events"].as_array().unwrap().len(), 2, "{silent}");
    assert_eq!(d.ok("inspect", json!({ "id": process }))["heartbeat_ms"], 200);
}

#[test]
fn a_heartbeat_of_less_than_a_minute_is_refused() {
    let d = Daemon::start();
    d.refused_param("heartbeat_ms", "exec", json!({ "argv": ["/bin/true"], "heartbeat_ms": 59_999 }));
    d.ok("exec", json!({ "argv": ["/bin/true"], "heartbeat_ms": 60_000 }));
}
