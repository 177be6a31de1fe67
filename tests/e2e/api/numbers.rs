//! Every numeric parameter at its extremes: an answer or an error that names it, and a large time is never.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Numbers that clocks, sizes and other languages' integers stumble over.
const LARGE: [u64; 4] = [1 << 31, 1 << 53, i64::MAX as u64, u64::MAX];

/// Sets a parameter, given by a path with dots.
fn with(mut params: Value, path: &str, value: u64) -> Value {
    let mut at = &mut params;
    for part in path.split('.') {
        at = &mut at[part];
    }
    *at = json!(value);
    params
}

/// Returns the error kind of a refusal, which must name the parameter.
#[track_caller]
fn refusal(error: &Value, path: &str) -> String {
    let name = path.rsplit('.').next().unwrap();
    assert!(error["message"].as_str().unwrap().contains(name), "{path}: the error must name it: {error}");
    error["data"]["kind"].as_str().unwrap().to_string()
}

#[test]
fn a_limit_on_time_that_no_clock_reaches_is_never() {
    // The end of the time was computed by an addition that wrapped: `idle_ms` near 2^64 ended the process at once.
    let d = Daemon::start();
    for path in ["timeout_ms", "limits.idle_ms", "heartbeat_ms"] {
        for n in LARGE {
            let gate = d.gate(&format!("{path}-{n}"));
            let params = json!({ "argv": ["/bin/sh", "-c", format!("echo out; {}; exit 3", gate.wait())] });
            let started = match d.call("exec", with(params, path, n)) {
                Ok(started) => started,
                Err(error) => {
                    assert_eq!((refusal(&error, path).as_str(), n), ("invalid_params", u64::MAX), "{path} {n}");
                    continue;
                }
            };
            let proc = id(&started);
            d.printed(&proc, "out");
            gate.open();
            let p = d.exited(&proc);
            assert_eq!((&p["exit_code"], &p["reason"]), (&json!(3), &json!("exited")), "{path} {n}");
        }
    }
}

#[test]
fn a_call_that_may_wait_for_ever_waits_for_its_event() {
    let d = Daemon::start();
    for (method, path, more) in [
        ("wait", "timeout_ms", json!({})),
        ("poll", "wait_ms", json!({ "cursor": 0 })),
        ("kill", "grace_ms", json!({ "signal": "SIGUSR1" })),
        ("events.next", "wait_ms", json!({ "consumer": "c", "types": ["exited"] })),
    ] {
        for n in LARGE {
            let gate = d.gate(&format!("{method}-{n}"));
            let ready = d.gate(&format!("{method}-{n}-ready"));
            let script = format!("trap : USR1; {}; {}; exit 5", ready.send("up"), gate.wait());
            let proc = d.sh(&format!("trap '' USR1; {script}"));
            ready.recv(toold_test_support::rig::DEADLINE);
            let mut params = with(more.clone(), path, n);
            params["id"] = json!(proc);
            let mut conn = d.conn();
            let call = conn.request(method, params);
            // The call is in the daemon's hands: a later one of the same connection has been answered.
            conn.call("daemon.info", json!({})).unwrap();
            gate.open();
            match conn.answer(call) {
                Err(error) => {
                    assert_eq!((refusal(&error, path).as_str(), n), ("invalid_params", u64::MAX), "{method} {n}");
                }
                Ok(answer) => match method {
                    "wait" => assert_eq!(answer["status"], "exited", "{n}: {answer}"),
                    "poll" => assert_eq!(answer["exit_code"], 5, "{n}: {answer}"),
                    "kill" => assert_eq!(answer["results"][0]["exit_code"], 5, "{n}: {answer}"),
                    _ => assert_eq!(answer["events"][0]["id"], json!(proc), "{n}: {answer}"),
                },
            }
            d.exited(&proc);
            if method == "events.next" {
                let last = d.ok("daemon.info", json!({}))["events"]["last"].clone();
                d.ok("events.ack", json!({ "consumer": "c", "seq": last }));
            }
        }
    }
}

#[test]
fn a_start_that_may_wait_for_ever_is_answered_when_it_is_ready() {
    let d = Daemon::start();
    for (path, more) in [
        ("yield_ms", json!({})),
        ("ready_timeout_ms", json!({ "ready": { "match": "up" } })),
        ("max_output_tokens", json!({ "yield_ms": 30000 })),
    ] {
        for n in LARGE {
            let mut params = with(more.clone(), path, n);
            params["argv"] = json!(["/bin/sh", "-c", "echo up; exit 3"]);
            match d.call("exec", params) {
                Ok(p) => assert_eq!(p["output"], "up\n", "{path} {n}: {p}"),
                Err(error) => {
                    assert_eq!((refusal(&error, path).as_str(), n), ("invalid_params", u64::MAX), "{path} {n}");
                }
            }
        }
    }
}

#[test]
fn every_number_is_answered_or_refused_by_name() {
    let d = Daemon::start();
    let ended = id(&d.run("echo one; echo two; exit 3"));
    let terminal = id(&d.ok("exec", json!({ "argv": ["/bin/sh", "-c", "exec sleep 1000"], "pty": true })));
    let piped = id(&d.sh_with("exec cat", json!({ "stdin": "pipe" })));
    let exec = |more: Value| {
        let mut params = json!({ "argv": ["/bin/sh", "-c", "echo out"], "yield_ms": 30000 });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let pty = json!({ "pty": { "rows": 24, "cols": 80 } });
    let cases = [
        ("exec", "max_output_tokens", exec(json!({}))),
        ("exec", "timeout_ms", exec(json!({}))),
        ("exec", "heartbeat_ms", exec(json!({}))),
        ("exec", "ready_timeout_ms", exec(json!({ "ready": { "match": "out" } }))),
        ("exec", "limits.memory_bytes", exec(json!({}))),
        ("exec", "limits.cpu_percent", exec(json!({}))),
        ("exec", "limits.pids", exec(json!({}))),
        ("exec", "limits.output_bytes", exec(json!({}))),
        ("exec", "limits.idle_ms", exec(json!({}))),
        ("exec", "pty.rows", exec(pty.clone())),
        ("exec", "pty.cols", exec(pty)),
        ("poll", "cursor", json!({ "id": ended })),
        ("poll", "max_bytes", json!({ "id": ended, "cursor": 0 })),
        ("poll", "wait_ms", json!({ "id": ended, "cursor": 0 })),
        ("log", "offset", json!({ "id": ended })),
        ("log", "limit", json!({ "id": ended })),
        ("log", "limit", json!({ "id": ended, "offset": u64::MAX })),
        ("log", "offset", json!({ "id": ended, "limit": 100_000, "grep": "o" })),
        ("wait", "timeout_ms", json!({ "id": ended })),
        ("wait", "until.quiet_ms", json!({ "id": ended, "timeout_ms": 1 })),
        ("wait", "until.port", json!({ "id": ended, "timeout_ms": 1 })),
        ("kill", "grace_ms", json!({ "id": ended })),
        ("write", "timeout_ms", json!({ "id": piped, "data": "x\n" })),
        ("submit", "timeout_ms", json!({ "id": piped, "data": "x" })),
        ("resize", "rows", json!({ "id": terminal, "cols": 80 })),
        ("resize", "cols", json!({ "id": terminal, "rows": 24 })),
        ("list", "limit", json!({})),
        ("list", "ended_within_ms", json!({})),
        ("events.subscribe", "after", json!({})),
        ("events.unsubscribe", "subscription", json!({})),
        ("events.next", "limit", json!({ "consumer": "c" })),
        ("events.next", "wait_ms", json!({ "consumer": "c", "from": "oldest" })),
        ("events.ack", "seq", json!({ "consumer": "c" })),
    ];
    for (method, path, params) in cases {
        for n in [0, 1].into_iter().chain(LARGE) {
            let params = with(params.clone(), path, n);
            let answer = d.call(method, params);
            if let Ok(p) = &answer
                && method == "exec"
            {
                // A memory limit of one byte killed the shim with the program.
                assert_ne!(p["status"], "lost", "{path} {n}: {p}");
                let limit = &p["limits"][path.strip_prefix("limits.").unwrap_or("none")];
                let note = limit["note"].to_string();
                assert!(!note.contains("Invalid argument") && !note.contains("out of range"), "{path} {n}: {note}");
            }
            if let Err(error) = answer {
                let kind = error["data"]["kind"].as_str().unwrap_or_default().to_string();
                assert!(
                    matches!(kind.as_str(), "invalid_params" | "limit" | "spawn_failed" | "not_found"),
                    "{method} {path} {n}: {error}"
                );
                if kind == "invalid_params" {
                    refusal(&error, path);
                }
            }
        }
    }
    for n in LARGE.into_iter().chain([1, 0]) {
        d.ok("forget", json!({ "older_than_ms": n }));
        let left = d.ids(json!({})).contains(&ended);
        assert!(n < 2 || left, "{n}: a process was forgotten that is not that old");
    }
    let running = d.ids(json!({ "status": "running" }));
    assert!(running.contains(&terminal) && running.contains(&piped), "{running:?}");
    assert!(!d.log().contains("panicked"), "{}", d.log());
}
