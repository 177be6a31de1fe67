//! `log_max_bytes` and `output_bytes`: head and tail are kept, the middle is dropped and counted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toold_test_support::rig::{DEADLINE, Daemon, id};

const MAX_BYTES: u64 = 262_144;
const LINES: u64 = 300_000;

fn whole() -> Vec<u8> {
    (1..=LINES).flat_map(|n| format!("{n}\n").into_bytes()).collect()
}

/// Reads all pages and compares them with what was written: a head, one gap, a tail.
fn check(d: &Daemon, proc: &str) -> (u64, u64) {
    let whole = whole();
    let p = d.process(proc);
    assert_eq!((&p["bytes"], &p["cursor"], &p["lines"]), (&json!(whole.len()), &json!(whole.len()), &json!(LINES)));
    let (mut cursor, mut gaps, mut kept) = (0u64, Vec::new(), 0);
    while cursor < whole.len() as u64 {
        let page = d.ok("poll", json!({ "id": proc, "cursor": cursor, "encoding": "base64" }));
        if let Some(gap) = page["gap"].as_object() {
            assert_eq!(gap["from"], cursor, "the gap starts where the last page ended");
            assert_eq!(gap["to"], page["from"], "the gap ends where this page starts");
            gaps.push((gap["from"].as_u64().unwrap(), gap["to"].as_u64().unwrap()));
        }
        let (from, next) = (page["from"].as_u64().unwrap(), page["next_cursor"].as_u64().unwrap());
        let bytes = STANDARD.decode(page["output"].as_str().unwrap()).unwrap();
        assert!(bytes == whole[from as usize..next as usize], "the page at {from} is not what was written there");
        assert!(next > cursor);
        (cursor, kept) = (next, kept + bytes.len() as u64);
    }
    assert_eq!(gaps.len(), 1, "one gap, in the middle: {gaps:?}");
    let (from, to) = gaps[0];
    assert!(0 < from && to < whole.len() as u64, "head and tail are kept");
    assert_eq!((&p["dropped_bytes"], whole.len() as u64 - kept), (&json!(to - from), to - from));
    assert!((MAX_BYTES / 4..=MAX_BYTES).contains(&kept), "{kept} of {MAX_BYTES} kept");
    (from, to)
}

#[test]
fn the_limit_of_a_call_keeps_head_and_tail_and_counts_the_rest() {
    let d = Daemon::start();
    let proc = id(&d.sh_with(&format!("seq 1 {LINES}"), json!({ "limits": { "output_bytes": MAX_BYTES } })));
    assert_eq!(d.closed(&proc)["exit_code"], 0, "the program is not affected");
    let (from, to) = check(&d, &proc);
    let inside = d.ok("poll", json!({ "id": proc, "cursor": from + 10, "max_bytes": 100 }));
    assert_eq!((&inside["from"], &inside["gap"]), (&json!(to), &json!({ "from": from + 10, "to": to })));
    let before = d.ok("poll", json!({ "id": proc, "cursor": from - 50, "max_bytes": 50 }));
    assert_eq!(
        (&before["from"], &before["next_cursor"], &before["gap"]),
        (&json!(from - 50), &json!(from), &Value::Null)
    );
    let after = d.ok("poll", json!({ "id": proc, "cursor": to, "max_bytes": 50 }));
    assert_eq!((&after["from"], &after["gap"]), (&json!(to), &Value::Null));
    assert_eq!(d.ok("poll", json!({ "id": proc }))["gap"], Value::Null, "the last thousand characters are there");
}

#[test]
fn the_limit_of_the_config_applies_to_all_and_a_call_may_only_lower_it() {
    let d = Daemon::start_with(&format!("log_max_bytes = {MAX_BYTES}\n"), &[]);
    let proc = id(&d.run(&format!("seq 1 {LINES}")));
    check(&d, &proc);
    let proc = id(&d.sh_with(&format!("seq 1 {LINES}"), json!({ "limits": { "output_bytes": 1u64 << 40 } })));
    d.closed(&proc);
    check(&d, &proc);
}

#[test]
fn output_below_the_limit_is_kept_whole() {
    let d = Daemon::start_with(&format!("log_max_bytes = {MAX_BYTES}\n"), &[]);
    let p = d.run(&format!("head -c {MAX_BYTES} /dev/zero | tr '\\0' x"));
    assert_eq!((&p["bytes"], &p["dropped_bytes"]), (&json!(MAX_BYTES), &json!(0)));
    assert_eq!(d.bytes(&id(&p)).len() as u64, MAX_BYTES);
}

#[test]
fn the_limit_applies_without_a_daemon() {
    let mut d = Daemon::start_with(&format!("log_max_bytes = {MAX_BYTES}\n"), &[]);
    let (go, report) = (d.gate("go"), d.gate("report"));
    let proc = d.sh(&format!("seq 1 100; {}; seq 101 {LINES}; {}", go.wait(), report.send("done")));
    d.printed(&proc, "100");
    d.kill9();
    go.open();
    report.recv(DEADLINE);
    d.spawn();
    d.closed(&proc);
    check(&d, &proc);
    let stored: u64 = toold_test_support::rig::files(&d.state()).iter().map(|f| f.metadata().unwrap().len()).sum();
    assert!(stored < 4 * MAX_BYTES, "{stored} bytes on disk for a limit of {MAX_BYTES}");
}

#[test]
fn log_reports_the_gap_and_returns_the_last_lines() {
    let d = Daemon::start();
    let proc = id(&d.sh_with(&format!("seq 1 {LINES}"), json!({ "limits": { "output_bytes": MAX_BYTES } })));
    d.closed(&proc);
    let last = d.ok("log", json!({ "id": proc, "limit": 3 }));
    assert_eq!(last["output"].as_str().unwrap().lines().collect::<Vec<_>>(), ["299998", "299999", "300000"]);
    let first = d.ok("log", json!({ "id": proc, "offset": 0, "limit": 3 }));
    assert_eq!(first["output"].as_str().unwrap().lines().collect::<Vec<_>>(), ["1", "2", "3"]);
    assert!(
        [&first, &last].iter().any(|l| !l["gap"].is_null()) || first["total_lines"] != LINES,
        "the gap is reported"
    );
}

#[test]
fn a_token_budget_over_a_gap_still_answers_with_head_and_tail() {
    let d = Daemon::start();
    let more = json!({ "limits": { "output_bytes": MAX_BYTES }, "yield_ms": 30000, "max_output_tokens": 200 });
    let p = d.sh_with(&format!("seq 1 {LINES}"), more);
    let output = p["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n3\n") && output.ends_with("299999\n300000\n"), "{output}");
    assert!(!p["truncated"].is_null() || !p["gap"].is_null());
}
