//! The token budget of `exec`: the answer keeps head and tail, and states what was cut and where.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Compares a truncated answer with the whole output.
fn check(whole: &str, answer: &Value, budget_bytes: usize) {
    let (output, cut) = (answer["output"].as_str().unwrap(), &answer["truncated"]);
    let (from, to) = (cut["from"].as_u64().unwrap() as usize, cut["to"].as_u64().unwrap() as usize);
    assert!(0 < from && from < to && to < whole.len(), "head, cut and tail: {cut}");
    assert!(output.starts_with(&whole[..from]), "the head is the output up to the cut");
    assert!(output.ends_with(&whole[to..]), "the tail is the output from the cut on");
    assert_eq!(cut["omitted_bytes"], (to - from) as u64);
    assert!(cut["omitted_tokens"].as_u64().unwrap() > 0);
    assert!(from + whole.len() - to <= budget_bytes, "the answer exceeds the budget");
    assert!(output.len() <= from + whole.len() - to + 300, "the answer is head, tail and one note between them");
    assert!(!output.contains('\u{fffd}'), "a character was cut in two");
    assert_eq!(answer["next_cursor"], whole.len() as u64, "the next cursor is at the end of the output");
}

#[test]
fn output_over_the_budget_keeps_head_and_tail_and_states_what_was_cut() {
    let d = Daemon::start();
    let more = json!({ "yield_ms": 30000, "max_output_tokens": 100 });
    let p = d.sh_with("seq 1 20000", more);
    d.closed(&id(&p));
    let whole = d.text(&id(&p));
    assert_eq!(whole, (1..=20000).map(|n| format!("{n}\n")).collect::<String>());
    check(&whole, &p, 400);
}

#[test]
fn a_cut_falls_between_characters() {
    let d = Daemon::start();
    // Widths 1 to 4 in turn, so that a cut at a fixed byte would split some of the characters.
    let script = "i=0; while [ $i -lt 3000 ]; do printf 'aé€😀'; i=$((i+1)); done";
    for budget in [97u64, 98, 99, 100, 101] {
        let p = d.sh_with(script, json!({ "yield_ms": 30000, "max_output_tokens": budget }));
        d.closed(&id(&p));
        check(&"aé€😀".repeat(3000), &p, budget as usize * 4);
    }
}

#[test]
fn the_default_budget_is_ten_thousand_tokens() {
    let d = Daemon::start();
    let p = d.sh_with("head -c 30000 /dev/zero | tr '\\0' x", json!({ "yield_ms": 30000 }));
    assert_eq!((&p["truncated"], p["output"].as_str().unwrap().len()), (&Value::Null, 30000));
    let p = d.sh_with("head -c 100000 /dev/zero | tr '\\0' x", json!({ "yield_ms": 30000 }));
    check(&"x".repeat(100_000), &p, 40_000);
}

#[test]
fn the_cut_part_can_be_polled() {
    let d = Daemon::start();
    let p = d.sh_with("seq 1 5000", json!({ "yield_ms": 30000, "max_output_tokens": 50 }));
    let (from, to) = (p["truncated"]["from"].as_u64().unwrap(), p["truncated"]["to"].as_u64().unwrap());
    let page = d.ok("poll", json!({ "id": p["id"], "cursor": from, "max_bytes": to - from }));
    let whole: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(page["output"], whole[from as usize..to as usize]);
    assert_eq!(page["next_cursor"], to);
}

#[test]
fn an_incomplete_character_is_left_for_the_next_cursor() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("printf 'ab\\342\\202'; {}; printf '\\254\\n'", gate.wait()));
    d.eventually("its first bytes are there", || d.process(&proc)["bytes"] == 4);
    let wait = d.ok("wait", json!({ "id": proc, "timeout_ms": 1 }));
    let shown = &wait["processes"][0];
    assert_eq!((&shown["output"], &shown["next_cursor"]), (&json!("ab"), &json!(2)));
    assert_eq!(d.ok("log", json!({ "id": proc }))["output"], "ab");
    gate.open();
    d.closed(&proc);
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 2 }))["output"], "€\n");
}

#[test]
fn a_budget_above_the_maximum_is_clamped_and_the_answer_has_the_id() {
    let d = Daemon::start();
    let argv = json!(["head", "-c", "30000000", "/dev/zero"]);
    let p = d.ok("exec", json!({ "argv": argv, "yield_ms": 50000, "max_output_tokens": 1u64 << 40 }));
    assert_eq!((&p["status"], &p["bytes"]), (&json!("exited"), &json!(30_000_000)));
    assert!(p["truncated"]["omitted_bytes"].as_u64().unwrap() > 20_000_000, "{}", p["truncated"]);
}
