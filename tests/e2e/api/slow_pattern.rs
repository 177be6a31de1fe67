//! Regular expressions that take long: bounded, ended with a reason, and no other call waits for them.

use crate::api::events::{all, kinds, until};
use serde_json::{Value, json};
use toold_test_support::procfs::running_threads;
use toold_test_support::rig::{Daemon, id};

/// Takes about half a minute of computing time per mebibyte of a's and b's.
const SLOW: &str = "(?:[ab]{1,30}a){1,30}[c-z]";
/// Prints 256 KiB of a's and b's in one line, in an order that does not repeat.
const PRINT: &str =
    "head -c 131072 /dev/urandom | od -An -v -tu1 | tr -d ' \\n' | tr 0-4 a | tr 5-9 b | head -c 262144";

fn limited(ms: u64) -> Daemon {
    Daemon::start_with(&format!("max_search_ms_per_mib = {ms}\n"), &[])
}

fn assert_too_slow(error: &Value) {
    assert_eq!((&error["data"]["kind"], &error["data"]["limit"]), (&json!("limit"), &json!("max_search_ms_per_mib")));
    assert!(error["message"].as_str().unwrap().contains("too slow"), "{error}");
}

/// The broken code searched on for a minute, and `wait` did so on a thread that other calls needed.
#[test]
fn a_slow_pattern_ends_a_call_with_an_error_that_names_the_limit() {
    let d = limited(100);
    let process = id(&d.run(PRINT));
    assert_too_slow(&d.call("log", json!({ "id": process, "grep": SLOW })).unwrap_err());
    let until = json!({ "match": { "regex": SLOW } });
    assert_too_slow(&d.call("wait", json!({ "id": process, "until": until })).unwrap_err());
    let ready = json!({ "argv": ["sh", "-c", format!("{PRINT}; sleep 60")], "ready": until });
    assert_too_slow(&d.call("exec", ready).unwrap_err());
    // A usual pattern over the same output is not affected.
    let log = d.ok("log", json!({ "id": process, "grep": "^[ab]*$" }));
    assert_eq!(log["matched_lines"], 1);
}

/// The broken code held both threads of the daemon with two such calls, and calls of others waited for a minute.
#[test]
fn other_calls_are_answered_while_slow_patterns_are_searched() {
    let d = limited(3_600_000);
    let process = id(&d.run(&format!("{PRINT} | fold -w 2000")));
    let mut slow = d.conn();
    let until = json!({ "match": { "regex": SLOW } });
    let waits: Vec<u64> = (0..6)
        .map(|_| slow.request("wait", json!({ "id": process, "until": until, "timeout_ms": 3_600_000 })))
        .collect();
    let grep = slow.request("log", json!({ "id": process, "grep": SLOW }));
    // More than the daemon has threads, so one of these calls would wait for a search.
    let mut other = d.conn();
    for _ in 0..50 {
        other.call("daemon.info", json!({})).unwrap();
        other.call("poll", json!({ "id": process })).unwrap();
        other.call("list", json!({})).unwrap();
    }
    d.run("true");
    // A search of another takes its turn.
    assert_eq!(d.ok("log", json!({ "id": process, "grep": "b" }))["matched_lines"], 132);
    assert!(waits.iter().all(|wait| !slow.has_early(*wait)) && !slow.has_early(grep));
}

/// The broken code searched on for a minute.
#[test]
fn the_search_of_a_caller_that_hung_up_ends() {
    let d = limited(3_600_000);
    let process = id(&d.run(PRINT));
    let until = json!({ "match": { "regex": SLOW } });
    for (method, params) in
        [("wait", json!({ "id": process, "until": until })), ("log", json!({ "id": process, "grep": SLOW }))]
    {
        let mut caller = d.conn();
        caller.request(method, params);
        d.eventually("the search runs", || running_threads(d.pid()) > 0);
        drop(caller);
        let mut idle = 0;
        d.eventually("the search ends", || {
            idle = if running_threads(d.pid()) == 0 { idle + 1 } else { 0 };
            idle == 20
        });
    }
}

/// The broken code scanned such a watch on a thread that other calls needed, and every later daemon did it again.
#[test]
fn a_slow_watch_is_disabled_with_the_reason_and_stays_so_in_the_next_daemon() {
    let mut d = limited(100);
    let more = json!({ "watch": [{ "regex": SLOW }], "name": "slow" });
    let process = id(&d.sh_with(&format!("{PRINT}; exec sleep 1000"), more));
    let disabled = until(&d, "c", json!({ "types": ["watch_disabled"] }));
    let message = disabled["message"].as_str().unwrap();
    assert!(message.contains("too slow") && message.contains("100 ms"), "{message}");
    assert_eq!((&disabled["id"], &disabled["name"]), (&json!(process), &json!("slow")));
    assert_eq!(d.process(&process)["watch"]["disabled"], true);
    d.restart();
    assert_eq!(d.process(&process)["watch"]["disabled"], true);
    d.ok("kill", json!({ "id": process }));
    // The end is published as a completion, since no match will be published.
    until(&d, "e", json!({ "types": ["completion"] }));
    let events = all(&d);
    let kinds = kinds(&events);
    assert_eq!(kinds.iter().filter(|kind| **kind == "watch_disabled").count(), 1, "{kinds:?}");
}

/// The broken code answered nothing until a search of that watch had ended, also in the next daemon.
#[test]
fn a_daemon_that_adopts_a_slow_watch_answers_at_once() {
    let mut d = limited(3_600_000);
    let running = id(&d.sh_with(&format!("{PRINT}; exec sleep 1000"), json!({ "watch": [{ "regex": SLOW }] })));
    let ended = id(&d.sh_with(PRINT, json!({ "watch": [{ "regex": SLOW }] })));
    // The exit does not wait for the watch.
    d.exited(&ended);
    d.restart();
    for _ in 0..20 {
        assert_eq!(d.process(&running)["status"], "running");
        assert_eq!(d.process(&ended)["status"], "exited");
    }
}

#[test]
fn a_pattern_that_is_too_long_or_too_large_is_refused() {
    let d = Daemon::start();
    let process = id(&d.run("echo x"));
    for pattern in ["a".repeat(5000), r"(?:\w{100}){100}".into()] {
        d.refused_param("grep", "log", json!({ "id": process, "grep": pattern }));
        let until = json!({ "match": { "regex": pattern } });
        d.refused_param("until.match.regex", "wait", json!({ "id": process, "until": until }));
    }
}
