//! Servers that print garbage, answer twice, too late, too much or never, and end at the wrong moment.

use super::Rig;
use serde_json::{Value, json};

fn kind(error: &Value) -> &str {
    error["data"]["kind"].as_str().unwrap_or_default()
}

#[test]
fn garbage_second_answers_and_unknown_ids_are_ignored() {
    let rig = Rig::start(&["--noise", "--end", "crlf"]);
    assert_eq!(rig.text("twice", json!({})), "first");
    assert_eq!(rig.text("echo", json!({ "text": "x" })), "x");
    assert_eq!(rig.text("twice", json!({})), "first");
    rig.end();
}

#[test]
fn an_answer_that_cannot_be_read_is_an_error_and_not_a_wait() {
    let rig = Rig::start(&[]);
    let error = rig.error("broken", json!({}));
    assert_eq!(kind(&error), "tool_failed", "{error}");
    assert!(error["message"].as_str().unwrap().contains("recursion limit"), "{error}");
    assert_eq!(rig.text("echo", json!({ "text": "x" })), "x");
    rig.end();
}

#[test]
fn an_answer_of_100_mb_is_refused_with_its_place_in_the_log_and_costs_no_memory() {
    let rig = Rig::start(&[]);
    assert_eq!(rig.text("huge", json!({ "n": 1_000_000 })).len(), 1_000_000);
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", rig.d.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_string();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let error = rig.error("huge", json!({ "n": 100_000_000 }));
    assert_eq!((kind(&error), &error["data"]["limit"]), ("limit", &json!("script.max_result_bytes")), "{error}");
    assert!(error["data"]["bytes"].as_u64().unwrap() > 100_000_000);
    // The bound of 16 MiB, and twice as much while its buffer grew.
    assert!(resident() < 96 << 10, "{} KiB", resident());
    let params = json!({ "id": error["data"]["process"], "cursor": error["data"]["cursor"], "max_bytes": 40 });
    let page = rig.d.ok("poll", params);
    assert!(page["output"].as_str().unwrap().starts_with("{\"jsonrpc\": \"2.0\", \"id\": "), "{page}");
    assert_eq!(rig.text("echo", json!({ "text": "x" })), "x");
    rig.end();
}

#[test]
fn a_server_that_never_answers_the_handshake_is_unavailable_and_killed() {
    let rig = Rig::with(&["--era", "mute", "--noise"], "start_timeout_ms = 600", "");
    let error = rig.error("echo", json!({}));
    let message = error["message"].as_str().unwrap();
    assert_eq!(kind(&error), "unavailable");
    assert!(message.contains("within 600 ms") && message.contains("Server started"), "{message}");
    assert_eq!(rig.process()["status"], "exited");
    rig.end();
}

#[test]
fn a_server_that_exits_at_once_is_tried_five_times_and_then_refused_with_what_it_printed() {
    let rig = Rig::start(&["--exit", "4"]);
    let mut refused = None;
    for n in 0..12 {
        let error = rig.error("echo", json!({}));
        assert_eq!(kind(&error), "unavailable", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("cannot read my config"), "{message}");
        if message.contains("failed too often") {
            refused = Some(n);
            break;
        }
    }
    assert!(refused.is_some_and(|n| n <= 5), "{refused:?}");
    let before = rig.d.ids(json!({ "name": "mcp/fake" })).len();
    rig.error("echo", json!({}));
    assert_eq!(rig.d.ids(json!({ "name": "mcp/fake" })).len(), before, "it was not started");
    rig.end();
}

#[test]
fn a_call_whose_server_dies_may_have_happened_and_the_next_one_starts_it_again() {
    let rig = Rig::start(&[]);
    let error = rig.error("die", json!({}));
    assert_eq!((&error["code"], kind(&error)), (&json!(-32010), "outcome_unknown"), "{error}");
    let data = &error["data"];
    assert_eq!(data["tool"], "fake.die");
    assert!(data["sent_at"].as_str().unwrap().ends_with('Z') && data["call"].is_string(), "{data}");
    assert!(error["message"].as_str().unwrap().contains("last line on stderr"), "{error}");
    assert_eq!(rig.count("die"), 1, "nothing repeats it");
    assert_eq!(rig.text("echo", json!({ "text": "back" })), "back");
    assert_eq!(rig.count("start"), 2);
    rig.end();
}

#[test]
fn an_idempotent_call_is_sent_once_more_to_the_next_server() {
    let rig = Rig::start(&[]);
    assert_eq!(rig.text("die_once", json!({})), "alive");
    assert_eq!((rig.count("die_once"), rig.count("start")), (2, 2));
    rig.end();
}

#[test]
fn other_calls_in_flight_end_too_when_their_server_is_killed() {
    let rig = Rig::start(&[]);
    let mut first = rig.begin("1", "effect", json!({ "text": "1", "gate": "never" }));
    let mut second = rig.begin("2", "look", json!({ "text": "2", "gate": "open" }));
    rig.waits_for("effect 1");
    rig.waits_for("look 2");
    rig.open("open");
    assert_eq!(second.0.answer(second.1).unwrap()["result"]["text"], "seen 2");
    rig.d.ok("kill", json!({ "id": "mcp/fake" }));
    assert_eq!(kind(&first.0.answer(first.1).unwrap_err()), "outcome_unknown");
    rig.end();
}

#[test]
fn a_full_log_loses_nothing_while_the_daemon_reads() {
    let rig = Rig::with(&[], "", "log_max_bytes = 262144");
    for _ in 0..3 {
        assert_eq!(rig.text("flood", json!({ "n": 4_000_000 })), "flooded");
    }
    rig.end();
}

#[test]
fn an_answer_in_a_part_of_the_log_that_was_dropped_is_unknown() {
    let mut rig = Rig::with(&[], "", "log_max_bytes = 262144");
    // The head of the log is kept; what follows is dropped first.
    assert_eq!(rig.text("flood", json!({ "n": 600_000 })), "flooded");
    let _waiting = rig.begin("1", "effect", json!({ "text": "1", "gate": "one" }));
    let _flood = rig.begin("2", "effect", json!({ "text": "2", "gate": "two" }));
    rig.waits_for("effect 1");
    rig.waits_for("effect 2");
    rig.d.kill9();
    rig.open("one");
    let log = rig.d.state().join("procs");
    let has = |text: &str| {
        let found = rig.d.tool("grep", &["-rqF", text, log.to_str().unwrap()]).status().unwrap();
        found.success()
    };
    rig.d.eventually("the answer is in the log", || has("done 1"));
    // Another client writes to the server: a flood that the daemon does not see.
    rig.d.spawn();
    let flood = json!({ "jsonrpc": "2.0", "id": "own", "method": "tools/call", "params": { "name": "flood", "arguments": { "n": 3_000_000 } } });
    rig.d.ok("submit", json!({ "id": "mcp/fake", "data": flood.to_string() }));
    rig.d.printed("mcp/fake", "\"id\": \"own\"");
    let error = rig.again("1", "effect", json!({ "text": "1", "gate": "one" })).unwrap_err();
    assert_eq!(kind(&error), "outcome_unknown", "{error}");
    assert!(error["message"].as_str().unwrap().contains("dropped"), "{error}");
    rig.open("two");
    rig.d.printed("mcp/fake", "done 2");
    let answer = rig.again("2", "effect", json!({ "text": "2", "gate": "two" }));
    assert_eq!(answer.unwrap()["result"]["text"], "done 2", "its answer is after what was dropped");
    assert_eq!((rig.count("effect 1"), rig.count("effect 2")), (1, 1));
    rig.end();
}
