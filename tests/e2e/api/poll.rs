//! `poll`: pages from a cursor, waiting for output, streams and spans. It consumes nothing.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};

#[test]
fn without_a_cursor_poll_returns_the_last_thousand_characters() {
    let d = Daemon::start();
    let proc = id(&d.run("i=0; while [ $i -lt 1500 ]; do printf é; i=$((i+1)); done; printf end"));
    let page = d.process(&proc);
    assert_eq!(page["output"], "é".repeat(997) + "end");
    assert_eq!((&page["from"], &page["next_cursor"]), (&json!(2 * 503), &json!(3003)));
    let short = id(&d.run("printf short"));
    assert_eq!(d.process(&short)["output"], "short");
}

#[test]
fn a_cursor_returns_the_output_after_it_and_the_same_the_next_time() {
    let d = Daemon::start();
    let proc = id(&d.run("printf 0123456789"));
    for _ in 0..2 {
        let page = d.ok("poll", json!({ "id": proc, "cursor": 3, "max_bytes": 4 }));
        assert_eq!((&page["output"], &page["from"], &page["next_cursor"]), (&json!("3456"), &json!(3), &json!(7)));
    }
    let rest = d.ok("poll", json!({ "id": proc, "cursor": 7 }));
    assert_eq!((&rest["output"], &rest["next_cursor"], &rest["gap"]), (&json!("789"), &json!(10), &Value::Null));
    let end = d.ok("poll", json!({ "id": proc, "cursor": 10 }));
    assert_eq!((&end["output"], &end["next_cursor"]), (&json!(""), &json!(10)));
}

#[test]
fn a_page_holds_65536_bytes_by_default() {
    let d = Daemon::start();
    let proc = id(&d.run("head -c 200000 /dev/zero | tr '\\0' x"));
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0 }));
    assert_eq!((page["output"].as_str().unwrap().len(), &page["next_cursor"]), (65536, &json!(65536)));
}

#[test]
fn a_waiting_poll_answers_on_the_first_byte_for_every_client() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{}; printf x; exec sleep 1000", gate.wait()));
    let mut conns: Vec<_> = (0..3).map(|_| d.conn()).collect();
    let ask = json!({ "id": proc, "cursor": 0, "wait_ms": 50000 });
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("poll", ask.clone())).collect();
    gate.open();
    for (conn, n) in conns.iter_mut().zip(sent) {
        let page = conn.answer(n).unwrap();
        assert_eq!(
            (&page["output"], &page["next_cursor"], &page["status"]),
            (&json!("x"), &json!(1), &json!("running"))
        );
    }
}

#[test]
fn a_waiting_poll_answers_at_the_exit_and_at_the_close() {
    let d = Daemon::start();
    let (go, let_go) = (d.gate("go"), d.gate("let-go"));
    let proc = d.sh(&format!("({}) & {}; exit 2", let_go.wait(), go.wait()));
    let mut conn = d.conn();
    let asked = Instant::now();
    let n = conn.request("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 50000 }));
    go.open();
    let exit = conn.answer(n).unwrap();
    assert_eq!((&exit["status"], &exit["exit_code"], &exit["closed"]), (&json!("exited"), &json!(2), &json!(false)));
    // A client that received the exit waits for the close.
    let n = conn.request("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 50000 }));
    let_go.open();
    let close = conn.answer(n).unwrap();
    assert_eq!((&close["closed"], &close["output"]), (&json!(true), &json!("")));
    assert!(asked.elapsed() < Duration::from_secs(40), "an answer came only after its timeout");
}

#[test]
fn a_poll_that_times_out_reports_it() {
    let d = Daemon::start();
    let proc = d.sh("printf abc; exec sleep 1000");
    d.printed(&proc, "abc");
    let asked = Instant::now();
    let page = d.ok("poll", json!({ "id": proc, "cursor": 3, "wait_ms": 400 }));
    assert!(asked.elapsed() >= Duration::from_millis(400));
    assert_eq!((&page["output"], &page["next_cursor"], &page["status"]), (&json!(""), &json!(3), &json!("running")));
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 50000 }));
    assert_eq!(page["output"], "abc", "existing output is answered at once");
}

#[test]
fn a_waiting_poll_at_the_end_of_a_closed_output_answers_at_once() {
    let d = Daemon::start();
    let proc = id(&d.run("printf abc"));
    let asked = Instant::now();
    let page = d.ok("poll", json!({ "id": proc, "cursor": 3, "wait_ms": 50000 }));
    assert!(asked.elapsed() < Duration::from_secs(20), "no more output can arrive");
    assert_eq!((&page["output"], &page["closed"]), (&json!(""), &json!(true)));
}

/// Prints to both streams in a known order: each part waits until the previous one has arrived.
fn two_streams(d: &Daemon) -> String {
    let gate = d.gate("go");
    let proc = d.sh(&format!(
        "echo out1; {pass}; echo err1 >&2; {pass}; printf '\\033[31mout2\\033[0m\\n'; {pass}; echo err2 >&2",
        pass = gate.wait()
    ));
    for text in ["out1", "err1", "out2"] {
        d.printed(&proc, text);
        gate.open();
    }
    d.closed(&proc);
    proc
}

#[test]
fn streams_are_in_arrival_order_and_spans_separate_them() {
    let d = Daemon::start();
    let proc = two_streams(&d);
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "spans": true }));
    assert_eq!(page["output"], "out1\nerr1\nout2\nerr2\n");
    let spans: Vec<Value> = page["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| json!([s["stream"], s["from"], s["to"], s["at_ms"].as_u64().unwrap() > 1_600_000_000_000]))
        .collect();
    // The escape sequences are 9 bytes of the log that stripping removes from the text.
    let expected =
        json!([["stdout", 0, 5, true], ["stderr", 5, 10, true], ["stdout", 10, 24, true], ["stderr", 24, 29, true]]);
    assert_eq!(json!(spans), expected);
    assert!(d.ok("poll", json!({ "id": proc, "cursor": 0 })).get("spans").is_none(), "spans only when asked for");
}

#[test]
fn one_stream_is_returned_with_the_cursor_of_both() {
    let d = Daemon::start();
    let proc = two_streams(&d);
    for (stream, text) in [("stdout", "out1\nout2\n"), ("stderr", "err1\nerr2\n")] {
        let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": stream }));
        assert_eq!((&page["output"], &page["next_cursor"]), (&json!(text), &json!(29)));
    }
    let tail = d.ok("poll", json!({ "id": proc, "stream": "stderr" }));
    assert_eq!(tail["output"], "err1\nerr2\n");
}

#[test]
fn escape_sequences_are_stripped_unless_kept() {
    let d = Daemon::start();
    let proc = id(&d.run("printf '\\033[1;31mred\\033[0m \\033]0;title\\007plain\\n'"));
    let text = |ansi: Value| d.ok("poll", json!({ "id": proc, "cursor": 0, "ansi": ansi }))["output"].clone();
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 0 }))["output"], "red plain\n");
    assert_eq!(text(json!("strip")), "red plain\n");
    assert_eq!(text(json!("keep")), "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}plain\n");
}

#[test]
fn counts_of_bytes_and_lines_are_exact() {
    let d = Daemon::start();
    let p = d.run("seq 1 1000; seq 1 500 >&2");
    let expected: usize = (1..=1000).chain(1..=500).map(|n: u32| n.to_string().len() + 1).sum();
    assert_eq!((&p["bytes"], &p["cursor"], &p["lines"]), (&json!(expected), &json!(expected), &json!(1500)));
}

#[test]
fn a_program_that_closes_its_output_and_keeps_running_is_closed_and_running() {
    let d = Daemon::start();
    let proc = d.sh("exec >&- 2>&-; exec sleep 1000");
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 50000 }));
    assert_eq!((&page["status"], &page["closed"]), (&json!("running"), &json!(true)));
    let wait = d.ok("wait", json!({ "id": proc, "until": "closed" }));
    assert_eq!(wait["processes"][0]["status"], "running");
}
