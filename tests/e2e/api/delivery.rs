//! Answers that cannot be delivered: what they would have acknowledged comes again, in every framing.

use crate::api::framing::{Framed, Ws, http_raw, post};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use toold_test_support::rig::{DEADLINE, Daemon, id};

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Sends a message and hangs up without reading.
type SendAndHangUp = fn(&Daemon, &Value);

/// A client in each framing, and in batches, which hangs up while its call waits.
const CLIENTS: &[(&str, SendAndHangUp)] = &[
    ("lines", |d, message| d.conn().send(message)),
    ("lines-half-closed", |d, message| {
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        stream.write_all(format!("{message}\n").as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }),
    ("headers", |d, message| Framed::open(&d.socket()).send(message)),
    ("http", |d, message| Framed::open(&d.socket()).send_raw(post(message).as_bytes())),
    ("websocket", |d, message| Ws::open(&d.socket()).send(message)),
    ("batch", |d, message| d.conn().send(&json!([message, call(2, "list", json!({}))]))),
    ("http-batch", |d, message| Framed::open(&d.socket()).send_raw(post(&json!([message])).as_bytes())),
    ("notification", |d, message| {
        let mut message = message.clone();
        message.as_object_mut().unwrap().remove("id");
        d.conn().send(&message);
    }),
];

/// Returns the types of the events about the exit of a process that a consumer gets.
fn exits(d: &Daemon, consumer: &str, process: &str) -> Vec<String> {
    let next = d.ok("events.next", json!({ "consumer": consumer, "id": process, "types": ["exited", "completion"] }));
    next["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().into()).collect()
}

fn connections(d: &Daemon) -> u64 {
    d.ok("daemon.info", json!({}))["counts"]["connections"].as_u64().unwrap()
}

/// The broken code acknowledged the exit as soon as the call had its result, though its client was gone.
#[test]
fn an_exit_in_an_answer_that_was_not_received_is_delivered_again() {
    let d = Daemon::start();
    for (client, hang_up) in CLIENTS {
        let gate = d.gate(client);
        let process = id(&d.sh_with(&gate.wait(), json!({ "notify": true })));
        hang_up(&d, &call(1, "wait", json!({ "id": process, "consumer": client, "timeout_ms": 600_000 })));
        d.eventually("the hang-up is noticed", || connections(&d) == 1);
        gate.open();
        d.closed(&process);
        // Calls that wait for one exit are woken in the order in which they began, so the lost one is over now.
        d.ok("wait", json!({ "id": process, "consumer": "other" }));
        assert_eq!(exits(&d, client, &process), ["exited", "completion"], "{client}");
        assert_eq!(exits(&d, "other", &process), [""; 0], "{client}: the one who got the answer");
    }
}

#[test]
fn an_exec_whose_client_hung_up_while_it_yielded_acknowledges_nothing() {
    let d = Daemon::start();
    for (client, hang_up) in CLIENTS {
        let gate = d.gate(client);
        let params = json!({
            "argv": ["/bin/sh", "-c", gate.wait()], "notify": true, "yield_ms": 600_000, "consumer": client, "name": client,
        });
        hang_up(&d, &call(1, "exec", params));
        d.eventually("the process runs and the hang-up is noticed", || {
            connections(&d) == 1 && !d.ids(json!({ "name": client, "status": "running" })).is_empty()
        });
        let process = d.ids(json!({ "name": client }))[0].clone();
        gate.open();
        d.closed(&process);
        assert_eq!(exits(&d, client, &process), ["exited", "completion"], "{client}");
    }
}

/// A client may use one connection for its waits and another for its events: the acknowledgement holds as soon as the
/// answer can be read.
#[test]
fn an_exit_that_was_answered_never_comes_again_on_another_connection() {
    let d = Daemon::start();
    let mut events = d.conn();
    for n in 0..50 {
        let mut ws = Ws::open(&d.socket());
        let consumer = json!(format!("c{n}"));
        let params = json!({ "argv": ["/bin/true"], "notify": true, "yield_ms": 600_000, "consumer": consumer });
        let exec = call(1, "exec", params);
        let answer = match n % 4 {
            0 => d.ok("exec", exec["params"].clone()),
            1 => {
                let mut conn = Framed::open(&d.socket());
                conn.send(&exec);
                conn.recv()["result"].clone()
            }
            2 => {
                let text = http_raw(&d.socket(), post(&exec).as_bytes());
                let (_, body) = text.split_once("\r\n\r\n").unwrap();
                serde_json::from_str::<Value>(body).unwrap()["result"].clone()
            }
            _ => {
                ws.send(&exec);
                ws.recv().unwrap()["result"].clone()
            }
        };
        assert_eq!(answer["exit_code"], 0, "{answer}");
        let params = json!({ "consumer": consumer, "id": id(&answer), "types": ["exited", "completion"] });
        let next = events.call("events.next", params).unwrap();
        assert_eq!(next["events"], json!([]), "{n}");
    }
}

/// The broken code took the fact off its list when any call named the consumer, also one whose answer does not have it.
#[test]
fn the_expiry_of_a_consumer_is_reported_though_another_call_named_it_first() {
    let d = Daemon::start_with("[events]\nconsumer_ttl_ms = 500\n", &[]);
    d.ok("events.next", json!({ "consumer": "c" }));
    let known = || d.ok("daemon.info", json!({}))["events"]["consumers"].as_array().unwrap().len();
    d.eventually("the consumer expires", || known() == 0);
    d.ok("exec", json!({ "argv": ["/bin/true"], "consumer": "c" }));
    let back = d.ok("events.next", json!({ "consumer": "c" }));
    assert_eq!(back["forgotten"]["position"], 0, "{back}");
}

/// The broken code dropped the connection as soon as it saw the end of the client's input: 32 of 100 got no answer.
#[test]
fn a_post_whose_sender_closes_its_sending_side_is_answered() {
    let d = Daemon::start();
    for n in 0..100 {
        let request = post(&call(n, "exec", json!({ "argv": ["/bin/echo", "hi"], "yield_ms": 600_000 })));
        let (head, body) = half_closed(&d, &request);
        assert!(head.starts_with("HTTP/1.1 200 "), "{n}: {head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["output"]), (&json!(n), &json!("hi\n")), "{answer}");
    }
    // Also on a connection that is kept, and for a call that is answered at once.
    let (head, _) = half_closed(&d, &post(&call(1, "list", json!({}))).replace("Connection: close\r\n", ""));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

/// Sends a request, closes the sending side, and returns head and body of the response.
fn half_closed(d: &Daemon, request: &str) -> (String, String) {
    let mut stream = UnixStream::connect(d.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.into(), body.into())
}

/// A client that is gone holds no place under `max_connections` until its call ends.
#[test]
fn a_post_whose_sender_hangs_up_is_forgotten_and_its_call_goes_on() {
    let d = Daemon::start();
    let gate = d.gate("gate");
    let process = d.sh(&gate.wait());
    for close_first in [false, true] {
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        stream.write_all(post(&call(1, "wait", json!({ "id": process }))).as_bytes()).unwrap();
        if close_first {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        d.eventually("it is connected", || connections(&d) == 2);
        drop(stream);
        d.eventually("the hang-up is noticed", || connections(&d) == 1);
    }
    let name = json!({ "argv": ["/bin/sleep", "1000"], "name": "kept" });
    // The whole request is there before the connection is accepted, and no client waits for its answer.
    drop({
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        stream.write_all(post(&call(1, "exec", name)).as_bytes()).unwrap();
        stream
    });
    d.eventually("the exec was run", || !d.ids(json!({ "name": "kept" })).is_empty());
}
