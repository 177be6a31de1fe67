//! `toold-fetch mcp` against servers with sessions (revisions 2025-03-26 to 2025-11-25).

use crate::bridge::{Bridge, answer, begin_events, close, event, wait_for_close};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use toold_test_support::http::{HttpRequest, HttpServer, respond};

/// Serves the handshake, with a session per `initialize`, and leaves the rest to `more`.
fn server(more: impl Fn(&HttpRequest, &mut TcpStream) + Send + Sync + 'static) -> HttpServer {
    let sessions = AtomicU32::new(0);
    HttpServer::start(move |request, stream| {
        let body = request.json();
        match (request.method.as_str(), body["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let id = format!("session-{}", sessions.fetch_add(1, Ordering::SeqCst) + 1);
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
                answer(request, stream, &[("Mcp-Session-Id", &id)], result);
            }
            ("POST", Some(method)) if method.starts_with("notifications/") => respond(stream, "202 Accepted", &[], b""),
            ("DELETE", _) => respond(stream, "200 OK", &[], b""),
            _ => more(request, stream),
        }
    })
}

fn no_stream(request: &HttpRequest, stream: &mut TcpStream) -> bool {
    let is_get = request.method == "GET";
    if is_get {
        respond(stream, "405 Method Not Allowed", &[], b"");
    }
    is_get
}

fn method_of(request: &HttpRequest) -> String {
    request.json()["method"].as_str().unwrap_or(&request.method).to_string()
}

fn kind(answer: &Value) -> (i64, &str, &str) {
    let error = &answer["error"];
    let text = |name: &str| error["data"][name].as_str().unwrap_or("");
    (error["code"].as_i64().unwrap_or(0), text("kind"), text("reason"))
}

#[test]
fn a_session_is_kept_and_ended() {
    let server = server(|request, stream| {
        if request.method == "GET" {
            begin_events(stream);
            event(stream, "", &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            return wait_for_close(stream);
        }
        answer(request, stream, &[], json!({"tools": [], "big": 12345678901234567890_u64}));
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    assert_eq!(bridge.initialize()["result"]["serverInfo"]["name"], "s");
    assert_eq!(bridge.receive()["method"], "notifications/tools/list_changed");
    bridge.request(1, "tools/list", json!({}));
    assert_eq!(
        bridge.receive(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "big": 12345678901234567890_u64}})
    );
    bridge.terminate();
    let (status, left) = bridge.wait();
    assert_eq!((status.code(), left), (Some(0), vec![]));
    let requests = server.requests();
    let initialize = &requests[0];
    assert_eq!((initialize.header("mcp-session-id"), initialize.header("mcp-protocol-version")), (None, None));
    assert_eq!(initialize.header("accept"), Some("application/json, text/event-stream"));
    for request in &requests[1..] {
        let found = (request.header("mcp-session-id"), request.header("mcp-protocol-version"));
        assert_eq!(found, (Some("session-1"), Some("2025-11-25")), "{request:?}");
    }
    let get = requests.iter().find(|request| request.method == "GET").unwrap();
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(requests.last().unwrap().method, "DELETE");
}

#[test]
fn an_answer_may_be_a_stream_with_messages_before_it() {
    let server = server(|request, stream| {
        let body = request.json();
        if no_stream(request, stream) {
            return;
        }
        if body["method"].is_null() {
            return respond(stream, "202 Accepted", &[], b"");
        }
        begin_events(stream);
        event(stream, "", &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}));
        event(stream, "", &json!({"jsonrpc": "2.0", "id": "s-1", "method": "ping"}));
        event(stream, "", &json!({"jsonrpc": "2.0", "id": body["id"], "result": {"n": 1}}));
        // A second answer, and one to a call that is not there.
        event(stream, "", &json!({"jsonrpc": "2.0", "id": body["id"], "result": {"n": 2}}));
        event(stream, "", &json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
        close(stream);
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request("a", "tools/call", json!({"name": "t"}));
    assert_eq!(bridge.receive()["method"], "notifications/progress");
    assert_eq!(bridge.receive(), json!({"jsonrpc": "2.0", "id": "s-1", "method": "ping"}));
    assert_eq!(bridge.receive(), json!({"jsonrpc": "2.0", "id": "a", "result": {"n": 1}}));
    bridge.send(json!({"jsonrpc": "2.0", "id": "s-1", "result": {}}));
    server.wait_for(|request| request.json() == json!({"jsonrpc": "2.0", "id": "s-1", "result": {}}));
    bridge.close_stdin();
    let (status, left) = bridge.wait();
    assert_eq!((status.code(), left), (Some(0), vec![]));
}

#[test]
fn a_broken_stream_is_resumed_at_its_cursor_and_the_call_is_sent_once() {
    let resumed = AtomicU32::new(0);
    let server = server(move |request, stream| {
        match (request.method.as_str(), request.header("last-event-id")) {
            ("GET", None) => respond(stream, "405 Method Not Allowed", &[], b""),
            ("GET", Some("e-1")) if resumed.fetch_add(1, Ordering::SeqCst) == 0 => {
                // An error that passes, as of a proxy.
                respond(stream, "502 Bad Gateway", &[], b"");
            }
            ("GET", Some("e-1")) => {
                begin_events(stream);
                event(
                    stream,
                    "e-2",
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 2}}),
                );
                close(stream);
            }
            ("GET", Some(_)) => {
                begin_events(stream);
                event(stream, "e-3", &json!({"jsonrpc": "2.0", "id": 1, "result": {"done": true}}));
                close(stream);
            }
            _ => {
                begin_events(stream);
                let _ = stream.write_all(b"retry: 5\nid: e-1\ndata:\n\n");
                close(stream);
            }
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request(1, "tools/call", json!({"name": "t"}));
    assert_eq!(bridge.receive()["params"]["progress"], 2);
    assert_eq!(bridge.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": {"done": true}}));
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| method_of(request) == "tools/call").count(), 1);
    let cursors: Vec<&str> = requests.iter().filter_map(|request| request.header("last-event-id")).collect();
    assert_eq!(cursors, ["e-1", "e-1", "e-2"]);
}

#[test]
fn a_call_whose_connection_broke_has_an_unknown_outcome_and_is_not_repeated() {
    let server = server(|request, stream| {
        if no_stream(request, stream) {
            return;
        }
        match request.json()["params"]["name"].as_str() {
            // Nothing at all, a head that is cut, a body that is cut, a stream that ends.
            Some("nothing") => {}
            Some("head") => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-").unwrap(),
            Some("body") => stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")
                .unwrap(),
            Some("stream") => begin_events(stream),
            Some("empty") => return respond(stream, "202 Accepted", &[], b""),
            Some("text") => return respond(stream, "200 OK", &[("content-type", "text/html")], b"<html>"),
            Some("other") => {
                return respond(stream, "200 OK", &[("content-type", "application/json")], br#"{"id":7,"result":{}}"#);
            }
            _ => return respond(stream, "504 Gateway Timeout", &[], b""),
        }
        close(stream);
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    let names = ["nothing", "head", "body", "stream", "empty", "text", "other", "gateway"];
    for (id, name) in names.iter().enumerate() {
        bridge.request(id, "tools/call", json!({"name": name}));
        let answer = bridge.receive();
        assert_eq!(
            (answer["id"].as_u64(), kind(&answer).0, kind(&answer).1),
            (Some(id as u64), -32010, "outcome_unknown"),
            "{name}: {answer}"
        );
    }
    let calls = server.requests().iter().filter(|request| method_of(request) == "tools/call").count();
    assert_eq!(calls, names.len());
}

#[test]
fn a_call_that_was_not_sent_is_unavailable() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{closed}/mcp"), "http://no-such-host.invalid/mcp".into()] {
        let mut bridge = Bridge::start(&url);
        bridge.request(1, "tools/call", json!({"name": "t"}));
        let answer = bridge.receive();
        assert_eq!((kind(&answer).0, kind(&answer).1), (-32008, "unavailable"), "{answer}");
        bridge.close_stdin();
        assert_eq!(bridge.wait().0.code(), Some(0));
    }
}

#[test]
fn refusals_keep_their_reason() {
    let server = server(|request, stream| {
        let error = |id: Value| {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "own", "data": [1]}}).to_string()
        };
        match request.json()["params"]["name"].as_str() {
            Some("401") => respond(stream, "401 Unauthorized", &[], b""),
            Some("400") => respond(stream, "400 Bad Request", &[], b"bad"),
            Some("own") => respond(stream, "400 Bad Request", &[], error(Value::Null).as_bytes()),
            Some("same") => {
                respond(stream, "500 Internal Server Error", &[], error(request.json()["id"].clone()).as_bytes())
            }
            _ => respond(stream, "405 Method Not Allowed", &[], b""),
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    let mut call = |name: &str| {
        bridge.request(name, "tools/call", json!({"name": name}));
        bridge.receive()
    };
    assert_eq!(kind(&call("401")), (-32005, "denied", "authorization"));
    assert_eq!(kind(&call("400")), (-32008, "unavailable", "refused"));
    for name in ["own", "same"] {
        let expected = json!({"jsonrpc": "2.0", "id": name, "error": {"code": -32001, "message": "own", "data": [1]}});
        assert_eq!(call(name), expected);
    }
    bridge.send(json!("not a request"));
    assert_eq!(bridge.receive()["error"]["code"], -32700);
}

#[test]
fn an_expired_session_ends_its_calls_and_a_new_one_begins() {
    let server = server(|request, stream| {
        if no_stream(request, stream) {
            return;
        }
        match (request.header("mcp-session-id"), request.json()["params"]["name"].as_str()) {
            (Some("session-1"), Some("slow")) => {
                begin_events(stream);
                wait_for_close(stream);
            }
            (Some("session-1"), _) => respond(stream, "404 Not Found", &[], b""),
            _ => answer(request, stream, &[], json!({"session": request.header("mcp-session-id")})),
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request(1, "tools/call", json!({"name": "slow"}));
    server.wait_for(|request| request.json()["params"]["name"] == "slow");
    bridge.request(2, "tools/call", json!({"name": "quick"}));
    let mut answers = [bridge.receive(), bridge.receive()];
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(kind(&answers[0]), (-32010, "outcome_unknown", "session_expired"));
    assert_eq!(kind(&answers[1]), (-32008, "unavailable", "session_expired"));
    assert_eq!(bridge.receive()["method"], "notifications/tools/list_changed");
    bridge.request(3, "tools/call", json!({"name": "again"}));
    assert_eq!(bridge.receive()["result"]["session"], "session-2");
}

#[test]
fn a_session_that_cannot_begin_again_ends_the_bridge() {
    let handshakes = AtomicU32::new(0);
    let server = HttpServer::start(move |request, stream| match method_of(request).as_str() {
        "initialize" if handshakes.fetch_add(1, Ordering::SeqCst) == 0 => {
            answer(request, stream, &[("mcp-session-id", "s")], json!({"protocolVersion": "2025-06-18"}));
        }
        "initialize" => respond(stream, "503 Service Unavailable", &[], b""),
        "notifications/initialized" => respond(stream, "202 Accepted", &[], b""),
        "GET" => respond(stream, "405 Method Not Allowed", &[], b""),
        _ => respond(stream, "404 Not Found", &[], b""),
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request(1, "tools/list", json!({}));
    assert_eq!(kind(&bridge.receive()), (-32008, "unavailable", "session_expired"));
    let (status, left) = bridge.wait();
    assert_eq!((status.code(), left), (Some(3), vec![]));
}

#[test]
fn calls_run_at_the_same_time() {
    const CALLS: usize = 20;
    let all_there = Arc::new(Barrier::new(CALLS));
    let server = server(move |request, stream| {
        if !no_stream(request, stream) {
            all_there.wait();
            answer(request, stream, &[], json!({}));
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    (0..CALLS).for_each(|id| bridge.request(id, "tools/call", json!({"name": "t"})));
    let mut ids: Vec<u64> = (0..CALLS).map(|_| bridge.receive()["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..CALLS as u64).collect::<Vec<_>>());
}

#[test]
fn a_closed_stdin_does_not_end_calls_in_flight() {
    let gate = Arc::new(Barrier::new(2));
    let theirs = gate.clone();
    let server = server(move |request, stream| {
        if !no_stream(request, stream) {
            theirs.wait();
            answer(request, stream, &[], json!({"late": true}));
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request(1, "tools/call", json!({"name": "t"}));
    bridge.close_stdin();
    server.wait_for(|request| method_of(request) == "tools/call");
    gate.wait();
    assert_eq!(bridge.receive()["result"]["late"], true);
    assert_eq!(bridge.wait().0.code(), Some(0));
    assert_eq!(server.requests().last().unwrap().method, "DELETE");
}

#[test]
fn sigterm_answers_calls_in_flight() {
    let server = server(|request, stream| {
        if !no_stream(request, stream) {
            begin_events(stream);
            wait_for_close(stream);
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.initialize();
    bridge.request(1, "tools/call", json!({"name": "t"}));
    server.wait_for(|request| method_of(request) == "tools/call");
    bridge.terminate();
    assert_eq!(kind(&bridge.receive()), (-32010, "outcome_unknown", "bridge_ended"));
    assert_eq!(bridge.wait().0.code(), Some(0));
}

#[test]
fn redirects_on_the_same_server_are_followed_and_others_are_not() {
    let other = HttpServer::start(|request, stream| answer(request, stream, &[], json!({})));
    let away = other.url("/mcp");
    let server = HttpServer::start(move |request, stream| match request.path.as_str() {
        "/mcp" => respond(stream, "307 Temporary Redirect", &[("location", "/mcp/")], b""),
        "/mcp/" => answer(request, stream, &[], json!({"key": request.header("authorization")})),
        _ => respond(stream, "308 Permanent Redirect", &[("location", &away)], b""),
    });
    let env = [("MY_TOKEN", "s3cret")];
    for (path, result) in [("/mcp", json!("Bearer s3cret")), ("/away", Value::Null)] {
        let mut bridge = Bridge::start_with(&server.url(path), &["--bearer-env", "MY_TOKEN"], &env);
        bridge.request(1, "tools/list", json!({}));
        assert_eq!(bridge.receive()["result"]["key"], result);
    }
    assert_eq!(other.requests(), []);
}
