//! The other framings: Content-Length, HTTP and WebSocket, with the same guarantees.

use crate::api::framing::{Framed, Ws, http_raw, post};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[test]
fn content_length_messages_are_answered_alike() {
    let d = Daemon::start();
    let mut conn = Framed::open(&d.socket());
    conn.send(&call(1, "list", json!({})));
    assert_eq!(conn.recv(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "processes": [], "total": 0 } }));
    let body = call(2, "list", json!({ "label": "é" })).to_string();
    let head =
        format!("Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n", body.len());
    for byte in (head + &body).bytes() {
        conn.send_raw(&[byte]);
    }
    assert_eq!(conn.recv()["id"], 2, "other headers are allowed and may arrive byte by byte");
    let body = call(3, "list", json!({})).to_string();
    conn.send_raw(format!("content-length:{}\r\n\r\n{body}", body.len()).as_bytes());
    assert_eq!(conn.recv()["id"], 3, "header names are case-insensitive");
}

#[test]
fn content_length_carries_batches_invalid_json_and_newlines() {
    let d = Daemon::start();
    let mut conn = Framed::open(&d.socket());
    conn.send(&json!([call(1, "list", json!({})), { "jsonrpc": "2.0", "method": "list" }]));
    assert_eq!(conn.recv().as_array().unwrap().len(), 1);
    conn.send_raw(b"Content-Length: 5\r\n\r\n{oops");
    let answer = conn.recv();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    let pretty = serde_json::to_string_pretty(&call(2, "list", json!({}))).unwrap();
    conn.send_raw(format!("Content-Length: {}\r\n\r\n{pretty}", pretty.len()).as_bytes());
    assert_eq!(conn.recv()["id"], 2, "the connection stays open");
}

#[test]
fn a_wait_never_delays_a_kill_over_content_length_or_websocket() {
    let d = Daemon::start();
    let order =
        |ids: [Value; 2], proc: &str| assert_eq!(ids, [json!(2), json!(1)], "{proc}: the kill waited for the wait");
    let wait =
        |proc: &str| call(1, "wait", json!({ "id": proc, "timeout_ms": 600_000, "until": { "match": "never" } }));
    let list = call(2, "list", json!({}));
    let kill = |proc: &str| call(3, "kill", json!({ "id": proc }));

    let proc = d.sh("exec sleep 1000");
    let mut conn = Framed::open(&d.socket());
    conn.send(&wait(&proc));
    conn.send(&list);
    let first = conn.recv()["id"].clone();
    conn.send(&kill(&proc));
    let rest = [conn.recv()["id"].clone(), conn.recv()["id"].clone()];
    order([first, rest.iter().find(|n| **n != 3).unwrap().clone()], &proc);

    let proc = d.sh("exec sleep 1000");
    let mut ws = Ws::open(&d.socket());
    ws.send(&wait(&proc));
    ws.send(&list);
    let first = ws.recv().unwrap()["id"].clone();
    ws.send(&kill(&proc));
    let rest = [ws.recv().unwrap()["id"].clone(), ws.recv().unwrap()["id"].clone()];
    order([first, rest.iter().find(|n| **n != 3).unwrap().clone()], &proc);
}

#[test]
fn a_post_is_answered_with_json_and_the_connection_may_be_kept() {
    let d = Daemon::start();
    let mut conn = Framed::open(&d.socket());
    for n in 1..=3 {
        conn.send_raw(post(&call(n, "list", json!({}))).replace("Connection: close\r\n", "").as_bytes());
        let (head, body) = conn.response();
        assert!(head.starts_with("http/1.1 200 ") && head.contains("content-type: application/json"), "{head}");
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["total"]), (&json!(n), &json!(0)));
    }
}

#[test]
fn a_post_carries_batches_notifications_errors_and_invalid_json() {
    let d = Daemon::start();
    let body = |message: &str| {
        let text = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{message}",
            message.len()
        );
        let answer = http_raw(&d.socket(), text.as_bytes());
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {answer:?}")).1.to_string()
    };
    let json_of = |message: Value| -> Value { serde_json::from_str(&body(&message.to_string())).unwrap() };
    assert_eq!(json_of(json!([call(1, "list", json!({})), call(2, "list", json!({}))])).as_array().unwrap().len(), 2);
    assert_eq!(json_of(call(3, "no.such", json!({})))["error"]["code"], -32601);
    let bad: Value = serde_json::from_str(&body("{oops")).unwrap();
    assert_eq!((&bad["id"], &bad["error"]["code"]), (&Value::Null, &json!(-32700)));
    assert_eq!(body(&json!({ "jsonrpc": "2.0", "method": "list" }).to_string()), "", "a notification has no answer");
}

#[test]
fn http_that_is_neither_post_nor_websocket_is_rejected_as_http() {
    let d = Daemon::start();
    for request in [
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ] {
        let answer = http_raw(&d.socket(), request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer:?}");
    }
    assert!(d.call("list", json!({})).is_ok());
}

#[test]
fn a_disconnect_in_the_middle_of_a_post_keeps_what_it_started() {
    let d = Daemon::start();
    let report = d.gate("report");
    let script = format!("{}; exec sleep 1000", report.send("runs"));
    let mut conn = Framed::open(&d.socket());
    let mut ask = json!({ "argv": ["/bin/sh", "-c", script], "yield_ms": 50000, "request_id": "http" });
    conn.send_raw(post(&call(1, "exec", ask.clone())).as_bytes());
    report.recv(toold_test_support::rig::DEADLINE);
    drop(conn);
    ask["yield_ms"] = json!(0);
    let again = d.ok("exec", ask);
    assert_eq!((&again["status"], &again["existing"]), (&json!("running"), &json!(true)));
}

#[test]
fn a_websocket_carries_calls_batches_fragments_and_pings() {
    let d = Daemon::start();
    let mut ws = Ws::open(&d.socket());
    ws.send(&call(1, "list", json!({})));
    assert_eq!(ws.recv().unwrap()["result"]["total"], 0);
    ws.send(&json!([call(2, "list", json!({})), call(3, "list", json!({}))]));
    assert_eq!(ws.recv().unwrap().as_array().unwrap().len(), 2);
    let text = call(4, "list", json!({ "label": "é" })).to_string();
    let (a, b) = text.as_bytes().split_at(text.find('é').unwrap() + 1);
    ws.frame(0x01, a);
    ws.frame(0x89, b"still there?");
    ws.frame(0x80, b);
    let mut seen = [ws.next().unwrap(), ws.next().unwrap()];
    seen.sort();
    assert_eq!(seen[1], (10, b"still there?".to_vec()), "a pong has the payload of its ping");
    assert_eq!(serde_json::from_slice::<Value>(&seen[0].1).unwrap()["id"], 4);
    ws.frame(0x81, b"{oops");
    let answer = ws.recv().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    ws.frame(0x88, &1000u16.to_be_bytes());
    assert_eq!(ws.recv(), None, "a close is answered with a close");
}

#[test]
fn a_long_answer_is_complete_in_every_framing() {
    let d = Daemon::start();
    let proc = d.run("seq 1 100000");
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let ask = call(1, "poll", json!({ "id": proc["id"], "cursor": 0, "max_bytes": 1_000_000 }));
    let mut framed = Framed::open(&d.socket());
    framed.send(&ask);
    let mut ws = Ws::open(&d.socket());
    ws.send(&ask);
    let mut line = d.conn();
    line.send(&ask);
    let mut http = Framed::open(&d.socket());
    http.send_raw(post(&ask).as_bytes());
    for answer in [framed.recv(), ws.recv().unwrap(), line.recv(), http.recv()] {
        assert!(answer["result"]["output"] == whole, "{} of {}", answer["result"]["next_cursor"], whole.len());
    }
}
