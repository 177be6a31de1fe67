//! Limits of the wire at their edges: every number of the config, descriptors that run out, web pages.

use crate::api::framing::{http_raw, post};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use toold_test_support::rig::{DEADLINE, Daemon};

/// Makes one call on a connection of its own. None: the daemon disconnected without an answer.
fn ask(d: &Daemon, method: &str, params: &Value) -> Option<Value> {
    let mut stream = UnixStream::connect(d.socket()).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let _ = stream.write_all(format!("{call}\n").as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer or a disconnect, not a hang");
    serde_json::from_str(&line).ok()
}

/// Returns the answer to a call. Calls again while the connection has no place or no time, which `key` may cause.
fn answer(d: &Daemon, key: &str, method: &str, params: Value) -> Value {
    let mut last = None;
    d.eventually(&format!("{key}: {method} is answered"), || {
        last = ask(d, method, &params);
        let connection = ["max_connections", "first_byte_ms"];
        last.as_ref().is_some_and(|answer| !connection.iter().any(|limit| answer["error"]["data"]["limit"] == *limit))
    });
    last.unwrap()
}

/// Makes a call of every kind. Each is answered with a result, or with the name of the limit that forbids it.
fn exercise(d: &Daemon, key: &str) {
    let result = |method: &str, params: Value| {
        let answer = answer(d, key, method, params);
        let limit = answer["error"]["data"]["limit"].as_str();
        assert!(answer["result"] != Value::Null || limit.is_some_and(|limit| key.contains(limit)), "{key}: {answer}");
        answer["result"].clone()
    };
    result("daemon.info", json!({}));
    let run = json!({ "argv": ["/bin/sh", "-c", "echo hi"], "yield_ms": 60_000, "consumer": "c", "notify": true });
    let done = result("exec", run);
    if done != Value::Null && key != "max_wait_ms" {
        assert_eq!((&done["exit_code"], &done["output"]), (&json!(0), &json!("hi\n")), "{key}: {done}");
    }
    let params = json!({
        "argv": ["/bin/sh", "-c", "echo ready; exec sleep 1000"], "watch": ["ready"], "timeout_ms": 86_400_000,
    });
    let sleeper = result("exec", params);
    result("events.next", json!({ "consumer": "c" }));
    result("events.subscribe", json!({ "output": true }));
    if let Some(id) = sleeper["id"].as_str() {
        result("wait", json!({ "id": id, "timeout_ms": 60_000, "until": { "match": "ready" } }));
        result("poll", json!({ "id": id, "wait_ms": 1 }));
        let killed = result("kill", json!({ "id": id }));
        assert_eq!(killed["survivors"].as_array().map_or(0, Vec::len), 0, "{key}: {killed}");
    }
    result("list", json!({}));
    let both = json!([{ "jsonrpc": "2.0", "id": 1, "method": "list" }]);
    assert!(http_raw(&d.socket(), post(&both).as_bytes()).starts_with("HTTP/1.1 "), "{key}");
}

fn config(keys: &[(&str, i64)]) -> String {
    // A key of a table is written `table.key`, which TOML takes at the top.
    keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

/// A daemon that may refuse its first clients, which the rig's own start does not expect.
struct Started(Daemon, Child);

impl Started {
    /// Returns None if the check refuses the config; the daemon must refuse it too.
    fn new(text: &str) -> Option<Started> {
        let d = Daemon::prepare(text, &[]);
        let checked = d.command().arg("--check-config").stderr(Stdio::null()).status().unwrap();
        let mut child = d.command().spawn().unwrap();
        if !checked.success() {
            assert!(!child.wait().unwrap().success(), "refused by the check, and taken by the daemon: {text}");
            return None;
        }
        Some(Started(d, child))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.1.kill();
        let _ = self.1.wait();
    }
}

/// The broken code took `max_requests_in_flight = 9223372036854775807` and then answered no call.
#[test]
fn every_number_that_the_config_check_takes_works() {
    let all = Daemon::start().ok("daemon.info", json!({}))["limits"].clone();
    let keys: Vec<&str> = all.as_object().unwrap().iter().filter(|(_, v)| v.is_u64()).map(|(k, _)| &**k).collect();
    assert!(keys.len() >= 20 && keys.contains(&"events.lag_bytes"), "{keys:?}");
    let taken: Vec<(&str, i64)> = keys.iter().map(|key| (*key, i64::MAX)).collect();
    // All at once: the largest value of one does not disturb another. Those with a maximum are refused by name.
    let fits = |key: &(&str, i64)| {
        // The journal has at least one segment.
        let pair =
            if key.0 == "events.segment_bytes" { vec![*key, ("events.max_bytes", i64::MAX)] } else { vec![*key] };
        let d = Daemon::prepare(&config(&pair), &[]);
        d.command().arg("--check-config").stderr(Stdio::null()).status().unwrap().success()
    };
    let taken: Vec<(&str, i64)> = taken.into_iter().filter(fits).collect();
    let largest = Started::new(&config(&taken)).expect("each was taken");
    exercise(&largest.0, &taken.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(" "));
    drop(largest);
    let mut refused = 0;
    for value in [0, 1] {
        for key in &keys {
            match Started::new(&config(&[(key, value)])) {
                Some(started) => exercise(&started.0, key),
                None => refused += 1,
            }
        }
    }
    assert!(refused > 0 && refused < 2 * keys.len());
}

/// The broken code left new clients waiting until another disconnected.
#[test]
fn a_client_that_finds_no_descriptor_gets_the_reason_and_a_place_when_one_is_free() {
    let mut d = Daemon::prepare("", &[]);
    d.before = Some("ulimit -n 64".into());
    d.spawn();
    let mut clients = Vec::new();
    let error = loop {
        let mut stream = UnixStream::connect(d.socket()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
            .write_all(
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.active\",\"params\":{\"session_key\":\"\"}}\n",
            )
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut line).expect("an answer, not a hang");
        let answer: Value = serde_json::from_str(&line).unwrap();
        if answer["error"] != Value::Null {
            break answer["error"].clone();
        }
        clients.push(reader);
        assert!(clients.len() < 64, "64 descriptors cannot serve 64 clients");
    };
    assert_eq!((&error["data"]["kind"], &error["data"]["limit"]), (&json!("limit"), &json!("open_files")), "{error}");
    drop(clients);
    d.eventually("a client gets in", || ask(&d, "list", &json!({})).is_some_and(|a| a["result"] != Value::Null));
}

/// The broken code answered any page that a proxy let through.
#[test]
fn a_request_of_a_web_page_is_denied_unless_its_origin_is_listed() {
    let d = Daemon::start_with("allowed_origins = [\"https://good.example\"]\n", &[]);
    let exec = |name: &str| {
        let params = json!({ "argv": ["/bin/true"], "name": name });
        post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "exec", "params": params }))
    };
    let from = |request: String, origin: &str| {
        http_raw(&d.socket(), request.replace("Host: toold\r\n", &format!("Host: toold\r\n{origin}")).as_bytes())
    };
    let upgrade = "GET / HTTP/1.1\r\nHost: toold\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    for origin in
        ["Origin: https://evil.example\r\n", "origin: null\r\n", "Origin: https://good.example\r\nOrigin: null\r\n"]
    {
        for request in [exec("evil"), upgrade.into()] {
            let answer = from(request.replace("Upgrade\r\n", "Upgrade, close\r\n"), origin);
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && answer.contains("\"kind\":\"denied\""),
                "{origin}: {answer}"
            );
        }
    }
    assert!(d.ids(json!({ "name": "evil" })).is_empty());
    assert!(from(exec("good"), "Origin: https://good.example\r\n").starts_with("HTTP/1.1 200 "));
    assert!(from(exec("none"), "").starts_with("HTTP/1.1 200 "));
}
