//! The wire: JSON-RPC by line, many calls at once, and clients that misbehave or disconnect.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{DEADLINE, Daemon, id};

fn call(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

#[test]
fn ids_are_returned_unchanged() {
    let d = Daemon::start();
    let mut conn = d.conn();
    for id in [json!(1), json!(0), json!(-7), json!(9_007_199_254_740_993u64), json!("a string"), json!("")] {
        conn.send(&call(id.clone(), "list", json!({})));
        let answer = conn.recv();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&id, &json!("2.0")));
        assert!(answer["result"].is_object());
    }
}

#[test]
fn parameters_may_be_left_out_where_none_is_required() {
    let d = Daemon::start();
    let mut conn = d.conn();
    conn.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "list" }));
    assert_eq!(conn.recv()["result"], json!({ "processes": [], "total": 0 }));
}

#[test]
fn a_batch_gets_one_answer_and_its_notifications_none() {
    let d = Daemon::start();
    let mut conn = d.conn();
    conn.send(&json!([
        call(1, "list", json!({})),
        { "jsonrpc": "2.0", "method": "list", "params": {} },
        call("two", "no.such.method", json!({})),
        { "not": "a request" },
        call(3, "poll", json!({ "id": "missing" })),
    ]));
    let answer = conn.recv();
    let mut answers: Vec<String> =
        answer.as_array().unwrap().iter().map(|a| format!("{} {}", a["id"], a["error"]["code"])).collect();
    answers.sort();
    assert_eq!(answers, ["\"two\" -32601", "1 null", "3 -32001", "null -32600"]);
}

#[test]
fn an_empty_batch_is_an_invalid_request_and_a_batch_of_notifications_is_not_answered() {
    let d = Daemon::start();
    let mut conn = d.conn();
    conn.send(&json!([]));
    let answer = conn.recv();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    conn.send(&json!([{ "jsonrpc": "2.0", "method": "list" }, { "jsonrpc": "2.0", "method": "no.such" }]));
    conn.send(&call(5, "list", json!({})));
    assert_eq!(conn.recv()["id"], 5, "nothing was answered before it");
}

#[test]
fn a_notification_is_executed_and_not_answered() {
    let d = Daemon::start();
    let gate = d.gate("report");
    let mut conn = d.conn();
    let params = json!({ "argv": ["/bin/sh", "-c", gate.send("done")] });
    conn.send(&json!({ "jsonrpc": "2.0", "method": "exec", "params": params }));
    assert_eq!(gate.recv(DEADLINE), "done");
    conn.send(&call(9, "list", json!({})));
    assert_eq!(conn.recv()["id"], 9);
}

#[test]
fn invalid_json_is_answered_and_the_connection_stays_open() {
    let d = Daemon::start();
    let mut conn = d.conn();
    for bad in ["{\"jsonrpc\": \"2.0\", \n", "[1, 2\n", "{nonsense}\n", "{\"a\": \"\u{1}\"}\n", "{} {}\n"] {
        conn.send_raw(bad.as_bytes());
        let answer = conn.recv();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)), "{bad:?}");
    }
    conn.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n");
    assert_eq!(conn.recv()["error"]["code"], -32700, "bytes that are not UTF-8 are not JSON");
    assert!(conn.call("list", json!({})).is_ok());
}

#[test]
fn json_that_is_not_a_request_is_an_invalid_request() {
    let d = Daemon::start();
    let mut conn = d.conn();
    for bad in [
        json!({}),
        json!({ "jsonrpc": "2.0", "id": 1 }),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "list" }),
        json!({ "id": 1, "method": "list" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }),
        json!({ "jsonrpc": "2.0", "id": { "a": 1 }, "method": "list" }),
    ] {
        conn.send(&bad);
        assert_eq!(conn.recv()["error"]["code"], -32600, "{bad}");
    }
    assert!(conn.call("list", json!({})).is_ok());
}

#[test]
fn any_split_of_the_bytes_gives_the_same_messages() {
    let d = Daemon::start();
    let mut conn = d.conn();
    for byte in format!("{}\r\n\n", call(1, "list", json!({ "label": "é" }))).bytes() {
        conn.send_raw(&[byte]);
    }
    assert_eq!(conn.recv()["id"], 1);
    conn.send_raw(
        format!("{}\n{}\n{}\n", call(2, "list", json!({})), call(3, "list", json!({})), call(4, "list", json!({})))
            .as_bytes(),
    );
    let mut ids: Vec<i64> = (0..3).map(|_| conn.recv()["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3, 4]);
}

#[test]
fn a_long_wait_never_delays_a_kill_behind_it() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    let asked = Instant::now();
    let waits: Vec<u64> = (0..32).map(|_| conn.request("wait", json!({ "id": proc, "timeout_ms": 600_000 }))).collect();
    let polls = conn.request("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 600_000 }));
    assert_eq!(conn.call("kill", json!({ "id": proc })).unwrap()["status"], "killed");
    for n in waits {
        assert_eq!(conn.answer(n).unwrap()["status"], "exited");
    }
    assert_eq!(conn.answer(polls).unwrap()["exit_code"], 143);
    assert!(asked.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_client_that_disconnects_during_exec_finds_its_process_by_request_id() {
    let d = Daemon::start();
    let (report, go) = (d.gate("report"), d.gate("go"));
    let script = format!("echo once >> count; {}; {}; echo finished; exit 5", report.send("runs"), go.wait());
    let ask = json!({ "argv": ["/bin/sh", "-c", script], "request_id": "gone", "yield_ms": 50000 });
    let mut conn = d.conn();
    conn.request("exec", ask.clone());
    assert_eq!(report.recv(DEADLINE), "runs");
    drop(conn);
    go.open();
    let p = d.ok("exec", ask);
    assert_eq!((&p["exit_code"], &p["output"], &p["request_id"]), (&json!(5), &json!("finished\n"), &json!("gone")));
    assert_eq!(std::fs::read_to_string(d.home().join("count")).unwrap(), "once\n");
}

#[test]
fn a_request_is_executed_though_its_client_disconnects_at_once() {
    let d = Daemon::start();
    let report = d.gate("report");
    let mut conn = d.conn();
    conn.request(
        "exec",
        json!({ "argv": ["/bin/sh", "-c", format!("{}; exec sleep 1000", report.send("runs"))], "name": "kept" }),
    );
    drop(conn);
    assert_eq!(report.recv(DEADLINE), "runs");
    // The program reports to the test before the shim reports to the daemon.
    d.eventually("it runs", || d.process("kept")["status"] == "running");
}

#[test]
fn half_a_message_before_a_disconnect_has_no_effect() {
    let d = Daemon::start();
    let whole = call(1, "exec", json!({ "argv": ["/bin/true"] })).to_string();
    for cut in [1, whole.len() / 2, whole.len() - 1] {
        let mut conn = d.conn();
        conn.send_raw(&whole.as_bytes()[..cut]);
    }
    drop(d.conn());
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
}

#[test]
fn a_client_that_never_reads_delays_no_other() {
    let d = Daemon::start();
    let proc = id(&d.run("head -c 200000 /dev/zero | tr '\\0' x"));
    let mut deaf = d.conn();
    for _ in 0..40 {
        deaf.request("poll", json!({ "id": proc, "cursor": 0, "max_bytes": 200_000 }));
    }
    for _ in 0..20 {
        assert_eq!(d.process(&proc)["status"], "exited");
    }
    drop(deaf);
    assert_eq!(d.process(&proc)["status"], "exited");
}

#[test]
fn a_hundred_connections_are_served_at_once() {
    let d = Daemon::start();
    let mut conns: Vec<_> = (0..100).map(|_| d.conn()).collect();
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("daemon.info", json!({}))).collect();
    for (conn, n) in conns.iter_mut().zip(sent) {
        assert_eq!(conn.answer(n).unwrap()["pid"], d.pid());
    }
    drop(conns);
    d.eventually("their hang-up is seen", || d.ok("daemon.info", json!({}))["counts"]["connections"] == 1);
}

#[test]
fn unknown_first_bytes_are_rejected_and_affect_no_other_client() {
    let d = Daemon::start();
    for bytes in [&b"\x00\x01\x02\x03\n"[..], b"hello daemon\n", b"\xff\xff\xff\xff\r\n\r\n"] {
        crate::api::framing::http_raw(&d.socket(), bytes);
    }
    assert!(d.call("list", json!({})).is_ok());
}
