//! `$/cancelRequest`: ends a call that waits, in every framing, and nothing else.

use super::framing::{Framed, Ws, http_raw, post};
use serde_json::{Value, json};
use toold_test_support::conn::Conn;
use toold_test_support::rig::Daemon;

fn cancel(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": id.into() } })
}

fn call(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

#[track_caller]
fn is_cancelled(answer: &Value) {
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["kind"]),
        (&json!(-32800), &json!("cancelled")),
        "{answer}"
    );
}

/// The calls that only wait, for a process that prints nothing and does not end.
fn waiting(proc: &str) -> Vec<(&'static str, Value)> {
    let never = 600_000;
    vec![
        ("wait", json!({ "id": proc, "timeout_ms": never })),
        ("wait", json!({ "id": proc, "timeout_ms": never, "until": { "match": "no such text" } })),
        ("poll", json!({ "id": proc, "cursor": 0, "wait_ms": never })),
        ("events.next", json!({ "consumer": "waits", "types": ["completion"], "wait_ms": never })),
        ("exec", json!({ "argv": ["sleep", "1000"], "yield_ms": never })),
        ("exec", json!({ "argv": ["sleep", "1000"], "ready": { "match": "never" }, "ready_timeout_ms": never })),
    ]
}

/// Before, the notification was ignored: the calls were answered when their time was over.
#[test]
fn every_call_that_waits_ends_with_the_error_and_the_process_runs_on() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    for (method, params) in waiting(&proc) {
        let number = conn.request(method, params);
        conn.send(&cancel(number));
        let error = conn.answer(number).expect_err("cancelled");
        is_cancelled(&json!({ "error": error }));
    }
    let running = d.ok("list", json!({ "status": "running" }));
    assert_eq!(running["total"], 3, "also what the cancelled calls of exec started: {running}");
    assert_eq!(d.ok("poll", json!({ "id": proc }))["status"], "running");
}

#[test]
fn a_call_is_cancelled_in_every_framing_that_carries_several() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let params = json!({ "id": proc, "timeout_ms": 600_000 });
    let ids = [json!(1), json!("one"), json!(-1), json!(u64::MAX)];
    let mut headers = Framed::open(&d.socket());
    let mut ws = Ws::open(&d.socket());
    let mut lines = d.conn();
    for id in ids {
        let wait = call(id.clone(), "wait", params.clone());
        headers.send(&wait);
        headers.send(&cancel(id.clone()));
        ws.send(&wait);
        ws.send(&cancel(id.clone()));
        lines.send(&wait);
        lines.send(&cancel(id.clone()));
        for answer in [headers.recv(), ws.recv().unwrap(), lines.recv()] {
            assert_eq!(answer["id"], id);
            is_cancelled(&answer);
        }
    }
}

#[test]
fn a_call_of_a_batch_is_cancelled_alone_and_a_batch_can_cancel() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    let never = json!({ "id": proc, "timeout_ms": 600_000 });
    conn.send(&json!([call(1, "wait", never.clone()), call(2, "poll", json!({ "id": proc })), call(3, "wait", never)]));
    conn.send(&json!([cancel(1), cancel(3)]));
    let answers = conn.recv();
    is_cancelled(&answers[0]);
    assert_eq!(answers[1]["result"]["status"], "running");
    is_cancelled(&answers[2]);
}

#[test]
fn another_connection_cannot_cancel() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    let number = conn.request("wait", json!({ "id": proc, "timeout_ms": 600_000 }));
    let mut other = d.conn();
    other.send(&cancel(number));
    other.call("list", json!({})).expect("the notification before it was taken");
    let response = http_raw(&d.socket(), post(&cancel(number)).as_bytes());
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    conn.call("list", json!({})).expect("an answer");
    assert!(!conn.has_early(number), "the wait goes on");
    d.ok("kill", json!({ "id": proc, "signal": "SIGKILL" }));
    assert_eq!(conn.answer(number).expect("an exit")["status"], "exited");
}

#[test]
fn a_cancelled_exec_names_its_process_and_its_request_id_returns_it() {
    let d = Daemon::start();
    let mut conn = d.conn();
    let params = json!({ "argv": ["sleep", "1000"], "yield_ms": 600_000, "request_id": "once" });
    let number = conn.request("exec", params);
    conn.send(&cancel(number));
    let error = conn.answer(number).expect_err("cancelled");
    is_cancelled(&json!({ "error": error }));
    let again = d.ok("exec", json!({ "argv": ["sleep", "1000"], "request_id": "once" }));
    assert_eq!((&again["id"], &again["status"]), (&error["data"]["id"], &json!("running")));
    assert_eq!(d.ok("list", json!({}))["total"], 1, "started once");
}

#[test]
fn a_cancelled_events_next_acknowledges_nothing() {
    let d = Daemon::start();
    let next = |conn: &mut Conn, wait_ms: u64| {
        conn.request("events.next", json!({ "consumer": "me", "types": ["completion"], "wait_ms": wait_ms }))
    };
    let mut conn = d.conn();
    let number = next(&mut conn, 600_000);
    conn.send(&cancel(number));
    is_cancelled(&json!({ "error": conn.answer(number).expect_err("cancelled") }));
    let proc = d.ok("exec", json!({ "argv": ["true"], "notify": true, "yield_ms": 60_000 }));
    let number = next(&mut conn, 60_000);
    let result = conn.answer(number).expect("the event");
    assert_eq!((&result["events"][0]["id"], &result["position"]), (&proc["id"], &json!(0)), "{result}");
    assert_eq!(result["created"], false, "the cancelled call made the consumer");
}

#[test]
fn a_call_with_an_effect_is_not_cancelled() {
    let d = Daemon::start();
    let gate = d.gate("ready");
    let proc = d.sh(&format!("trap '' TERM; {}; while :; do sleep 1000; done", gate.send("up")));
    gate.recv(toold_test_support::rig::DEADLINE);
    let mut conn = d.conn();
    let number = conn.request("kill", json!({ "id": proc, "grace_ms": 300 }));
    conn.send(&cancel(number));
    assert_eq!(conn.answer(number).expect("a result")["status"], "killed");
}

#[test]
fn a_wrong_cancellation_changes_nothing() {
    let d = Daemon::start();
    let mut conn = d.conn();
    for params in [json!({}), json!({ "id": 1.5 }), json!({ "id": [1] }), json!({ "id": 1, "reason": "x" }), json!([1])]
    {
        conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": params }));
        let error = conn.call("$/cancelRequest", params.clone()).expect_err("refused");
        assert_eq!((&error["code"], &error["data"]["param"]), (&json!(-32602), &json!("id")), "{params}");
    }
    // An id that no call has: the answer may have crossed it.
    conn.send(&cancel(4711));
    assert_eq!(conn.call("$/cancelRequest", json!({ "id": "x" })), Ok(Value::Null));
    assert_eq!(conn.call("list", json!({})).expect("an answer")["total"], 0);
}

#[test]
fn cancelled_calls_give_their_places_back() {
    let d = Daemon::start_with("max_requests_in_flight = 4\n", &[]);
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    for _ in 0..20 {
        let numbers: Vec<u64> =
            (0..4).map(|_| conn.request("wait", json!({ "id": proc, "timeout_ms": 600_000 }))).collect();
        for number in &numbers {
            conn.send(&cancel(*number));
        }
        for number in numbers {
            is_cancelled(&json!({ "error": conn.answer(number).expect_err("cancelled") }));
        }
    }
}
