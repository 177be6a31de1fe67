//! `exec` with `hold`: at the cap the program waits for the connection that started it, and nothing that this one has not read
//! is dropped.

use crate::api::framing::{Ws, http_raw, post};
use serde_json::{Value, json};
use toold_test_support::conn::Conn;
use toold_test_support::rig::{DEADLINE, Daemon, id};

/// A log that is full at once.
const SMALL: &str = "log_max_bytes = 65536\n";

/// Many times the log, with bytes that differ.
const LINES: usize = 400_000;

fn expected() -> String {
    (1..=LINES).map(|n| format!("{n}\n")).collect()
}

/// Starts the program on this connection, which holds it.
fn start(conn: &mut Conn, more: Value) -> String {
    let mut params = json!({ "argv": ["seq", "1", LINES.to_string()], "hold": true });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    id(&conn.call("exec", params).unwrap())
}

fn held_back(d: &Daemon, id: &str) {
    d.eventually("it is held back", || d.process(id)["held_back"] == true);
}

/// Reads to the end of the output, and checks that nothing is missing.
fn read_all(conn: &mut Conn, id: &str, text: &mut String) -> Value {
    loop {
        let ask = json!({ "id": id, "cursor": text.len(), "wait_ms": 30_000, "hold": true });
        let page = conn.call("poll", ask).unwrap();
        assert_eq!((&page["gap"], &page["from"]), (&json!(null), &json!(text.len())), "something was dropped");
        *text += page["output"].as_str().unwrap();
        if page["closed"] == true && page["cursor"] == text.len() {
            return page;
        }
    }
}

#[test]
fn a_program_is_held_back_at_the_cap_until_the_connection_that_started_it_has_read() {
    // Without `hold`, a reader that is slower than the program misses the middle.
    let d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    let proc = start(&mut conn, json!({}));
    held_back(&d, &proc);
    let before = d.process(&proc);
    assert_eq!((&before["dropped_bytes"], &before["status"]), (&json!(0), &json!("running")), "{before}");
    assert!(before["bytes"].as_u64() <= Some(65_536), "the cap stays: {before}");
    // Another reader counts for nothing, and may read.
    assert_eq!(d.bytes(&proc).len() as u64, before["bytes"].as_u64().unwrap());
    assert_eq!(d.process(&proc)["bytes"], before["bytes"]);
    let mut text = String::new();
    let end = read_all(&mut conn, &proc, &mut text);
    assert!(text == expected(), "{} bytes came", text.len());
    assert_eq!((&end["exit_code"], &end["held_back"]), (&json!(0), &json!(false)));
    // What was read may go.
    assert!(end["dropped_bytes"].as_u64() > Some(0) && d.bytes(&proc).len() <= 65_536);
}

#[test]
fn the_end_of_the_connection_ends_the_hold() {
    let d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    let proc = start(&mut conn, json!({}));
    held_back(&d, &proc);
    drop(conn);
    let end = d.closed(&proc);
    assert_eq!((&end["exit_code"], &end["bytes"]), (&json!(0), &json!(expected().len())));
    assert!(end["dropped_bytes"].as_u64() > Some(0), "{end}");
    // A client that is gone before its answer holds nothing either.
    let mut conn = d.conn();
    conn.request("exec", json!({ "argv": ["seq", "1", LINES.to_string()], "hold": true, "name": "left" }));
    drop(conn);
    d.eventually("it is started", || d.call("poll", json!({ "id": "left" })).is_ok());
    assert_eq!(d.closed("left")["exit_code"], 0);
}

#[test]
fn a_killed_daemon_loses_and_doubles_nothing_for_a_reader_that_comes_back() {
    let mut d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    let proc = start(&mut conn, json!({}));
    held_back(&d, &proc);
    let mut text = String::new();
    for restart in [Daemon::kill9 as fn(&mut Daemon), |d| assert_eq!(d.stop(libc::SIGTERM), 0), Daemon::kill9] {
        for _ in 0..3 {
            let ask = json!({ "id": proc, "cursor": text.len(), "wait_ms": 30_000, "max_bytes": 20_000, "hold": true });
            let page = conn.call("poll", ask).unwrap();
            assert_eq!(page["gap"], json!(null), "{page}");
            text += page["output"].as_str().unwrap();
        }
        restart(&mut d);
        d.spawn();
        conn = d.conn();
    }
    let end = read_all(&mut conn, &proc, &mut text);
    assert!(text == expected(), "{} bytes came", text.len());
    assert_eq!(end["exit_code"], 0);
}

#[test]
fn without_a_daemon_or_a_reader_the_hold_ends_after_a_bounded_time() {
    let mut d = Daemon::start_with("log_max_bytes = 65536\nhold_timeout_ms = 300\n", &[]);
    let mut conn = d.conn();
    let alone = start(&mut conn, json!({}));
    held_back(&d, &alone);
    let program = d.program(&alone);
    // As long as the reader is connected, time does not matter.
    let waited = d.ok("wait", json!({ "id": alone, "timeout_ms": 900 }));
    assert_eq!((&waited["status"], program.is_dead()), (&json!("timeout"), false));
    d.kill9();
    assert!(program.dies_within(DEADLINE), "no daemon came back, and it waits for ever");
    d.spawn();
    let end = d.closed(&alone);
    assert!(end["dropped_bytes"].as_u64() > Some(0) && end["exit_code"] == 0, "{end}");
    // A daemon that came back without the reader does not prolong it.
    let mut conn = d.conn();
    let left = start(&mut conn, json!({}));
    held_back(&d, &left);
    d.kill9();
    drop(conn);
    d.spawn();
    assert_eq!(d.closed(&left)["exit_code"], 0);
}

#[test]
fn an_exit_is_reported_although_output_waits_and_the_rest_follows() {
    let d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    // More than the log, and little enough for log and pipe together.
    let script = "head -c 100000 /dev/zero | tr '\\0' x; exit 3";
    let proc = id(&conn.call("exec", json!({ "argv": ["/bin/sh", "-c", script], "hold": true })).unwrap());
    let ended = d.exited(&proc);
    assert_eq!((&ended["exit_code"], &ended["closed"], &ended["held_back"]), (&json!(3), &json!(false), &json!(true)));
    let mut text = String::new();
    let end = read_all(&mut conn, &proc, &mut text);
    assert_eq!((text.len(), &end["dropped_bytes"].is_u64()), (100_000, &true));
}

#[test]
fn signals_kill_and_a_terminal_work_while_it_is_held_back() {
    let d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    for pty in [false, true] {
        let proc = id(&conn.call("exec", json!({ "argv": ["yes"], "hold": true, "pty": pty })).unwrap());
        held_back(&d, &proc);
        d.ok("signal", json!({ "id": proc, "signal": "INT" }));
        assert_eq!(d.exited(&proc)["signal"], "SIGINT", "{pty}");
        let proc = id(&conn.call("exec", json!({ "argv": ["yes"], "hold": true, "pty": pty })).unwrap());
        held_back(&d, &proc);
        assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed", "{pty}");
        // Its output up to there is for the reader.
        let kept = d.process(&proc);
        assert_eq!((&kept["dropped_bytes"], &kept["unstored_bytes"]), (&json!(0), &json!(0)), "{kept}");
    }
    let proc = id(&conn.call("exec", json!({ "argv": ["yes"], "hold": true, "pty": true })).unwrap());
    held_back(&d, &proc);
    d.ok("write", json!({ "id": proc, "data": "\u{3}" }));
    assert_eq!(d.exited(&proc)["signal"], "SIGINT", "Ctrl-C on its terminal");
}

#[test]
fn a_program_that_waits_for_its_reader_is_not_idle() {
    let d = Daemon::start_with(SMALL, &[]);
    let mut conn = d.conn();
    let proc = start(&mut conn, json!({ "limits": { "idle_ms": 200 } }));
    held_back(&d, &proc);
    let waited = d.ok("wait", json!({ "id": proc, "timeout_ms": 700 }));
    assert_eq!(waited["status"], "timeout", "it was ended as idle: {waited}");
    let mut text = String::new();
    assert_eq!(read_all(&mut conn, &proc, &mut text)["reason"], "exited");
    assert!(text == expected());
}

#[test]
fn a_subscriber_to_the_output_of_its_own_process_misses_nothing() {
    let d = Daemon::start_with("log_max_bytes = 65536\n[events]\nlag_bytes = 65536\n", &[]);
    let mut conn = d.conn();
    conn.call("events.subscribe", json!({ "task_id": "mine", "types": ["closed"], "output": true })).unwrap();
    let proc = start(&mut conn, json!({ "task_id": "mine" }));
    held_back(&d, &proc);
    let pushes = conn.pushes_until("closed");
    assert!(pushes.iter().all(|push| push["type"] != "lagged"), "something was left out");
    let text: String = pushes.iter().filter_map(|push| push["data"].as_str()).collect();
    assert!(text == expected(), "{} bytes came", text.len());
}

#[test]
fn a_connection_that_cannot_follow_and_a_process_without_a_hold_are_refused() {
    let d = Daemon::start();
    let exec = json!({ "jsonrpc": "2.0", "id": 1, "method": "exec", "params": { "argv": ["true"], "hold": true } });
    for message in [exec.clone(), json!([exec])] {
        let response = http_raw(&d.socket(), post(&message).as_bytes());
        let answer: Value = serde_json::from_str(response.split("\r\n\r\n").last().unwrap()).unwrap();
        let error = answer.get(0).unwrap_or(&answer)["error"].clone();
        assert_eq!((&error["code"], &error["data"]["param"]), (&json!(-32602), &json!("hold")), "{answer}");
    }
    assert_eq!(d.ids(json!({})), Vec::<String>::new(), "nothing was started");
    let proc = id(&d.run("true"));
    assert_eq!(d.process(&proc)["held_back"], json!(null));
    d.refused_param("hold", "poll", json!({ "id": proc, "cursor": 0, "hold": true }));
    d.refused_param("hold", "exec", json!({ "argv": ["true"], "hold": 1 }));
    assert_eq!(d.ids(json!({})).len(), 1);
    // A WebSocket begins as HTTP, and stays.
    let mut ws = Ws::open(&d.socket());
    ws.send(&exec);
    assert_eq!(ws.recv().unwrap()["result"]["held_back"], false);
}

#[test]
fn the_same_request_again_takes_the_hold_and_the_process_of_another_keeps_its_own() {
    let d = Daemon::start_with(SMALL, &[]);
    let (mut first, mut second) = (d.conn(), d.conn());
    let proc = start(&mut first, json!({ "request_id": "r", "name": "n" }));
    held_back(&d, &proc);
    let ask = json!({ "argv": ["true"], "hold": true, "name": "n", "if_running": "return" });
    assert_eq!(id(&second.call("exec", ask).unwrap()), proc);
    drop(second);
    d.ok("daemon.info", json!({}));
    assert_eq!(d.process(&proc)["held_back"], true, "it was not the second's to end");
    let mut third = d.conn();
    assert_eq!(start(&mut third, json!({ "request_id": "r", "name": "n" })), proc);
    drop(first);
    let mut text = String::new();
    read_all(&mut third, &proc, &mut text);
    assert!(text == expected(), "{} bytes came", text.len());
}
