//! Connections that never send a whole first request.

use crate::api::framing::Framed;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use toold_test_support::rig::{DEADLINE, Daemon};

/// Beginnings of a first request in every framing.
const OPENINGS: &[&str] = &[
    "{",
    "[",
    "C",
    "P",
    "{\"jsonrpc\":\"2.0\",\"id\":1,",
    "Content-Length: 20\r\n",
    "Content-Length: 20\r\n\r\n{",
    "POST / HTTP/1.1\r\nHost: x\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{",
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
];

/// The broken code timed only the first byte: such connections held every place for ever.
#[test]
fn unfinished_openings_are_closed_with_the_reason_and_the_owner_gets_in() {
    let config = format!("first_byte_ms = 1000\nmax_connections = {}\n", OPENINGS.len());
    let d = Daemon::start_with(&config, &[]);
    let mut openings = Vec::new();
    for opening in OPENINGS {
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(opening.as_bytes()).unwrap();
        openings.push(stream);
    }
    let answered = |wanted: &str| {
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        let _ = stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.info\"}\n");
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).contains(wanted)
    };
    d.eventually("the owner gets in", || answered("\"result\""));
    for (opening, mut stream) in OPENINGS.iter().zip(openings) {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let json = answer.find('{').map(|at| serde_json::from_str::<Value>(&answer[at..]).unwrap());
        // The last one may have found no place.
        let limit = json.unwrap_or_else(|| panic!("{opening:?}: no reason"))["error"]["data"]["limit"].clone();
        assert!(limit == "first_byte_ms" || limit == "max_connections", "{opening:?}: {answer}");
    }
    d.eventually("only this connection is left", || answered("\"connections\":1}"));
}

#[test]
fn a_connection_that_sent_one_whole_request_may_be_silent_and_then_send_half_of_the_next() {
    let d = Daemon::start_with("first_byte_ms = 200\n", &[]);
    let (mut lines, mut framed) = (d.conn(), Framed::open(&d.socket()));
    lines.call("list", json!({})).unwrap();
    framed.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "list" }));
    framed.recv();
    let mut http = Framed::open(&d.socket());
    http.send_raw(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]");
    http.response();
    lines.send_raw(b"{\"jsonrpc\":\"2.0\",");
    framed.send_raw(b"Content-Length: 40\r\n");
    http.send_raw(b"POST / HTTP/1.1\r\nHost: x\r\n");
    // A connection that sends nothing is closed when its time is over, and that of the others would be too.
    let mut silent = Framed::open(&d.socket()).rest();
    silent.extend(Framed::open(&d.socket()).rest());
    assert!(String::from_utf8_lossy(&silent).contains("first_byte_ms"));
    lines.send_raw(b"\"id\":9,\"method\":\"list\"}\n");
    assert_eq!(lines.recv()["id"], 9);
    framed.send_raw(b"\r\n{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"list\"}");
    assert_eq!(framed.recv()["id"], 8);
    http.send_raw(b"Content-Length: 2\r\n\r\n[]");
    assert!(http.response().0.starts_with("http/1.1 200 "));
}
