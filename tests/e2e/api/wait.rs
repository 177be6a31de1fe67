//! `wait`: for exits, closes and matches, of one process or several, without an effect on them.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};

#[test]
fn an_exit_is_returned_with_the_last_two_thousand_characters() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d
        .sh(&format!("{}; i=0; while [ $i -lt 2500 ]; do printf é; i=$((i+1)); done; printf end; exit 7", gate.wait()));
    let mut conn = d.conn();
    let n = conn.request("wait", json!({ "id": proc, "timeout_ms": 50000 }));
    gate.open();
    let wait = conn.answer(n).unwrap();
    let p = &wait["processes"][0];
    assert_eq!((&wait["status"], &p["id"], &p["exit_code"]), (&json!("exited"), &json!(proc), &json!(7)));
    assert_eq!((&wait["clamped"], &wait["timeout_ms"]), (&json!(false), &json!(50000)));
    d.closed(&proc);
    assert_eq!(d.exited(&proc)["output"], "é".repeat(1997) + "end");
}

#[test]
fn a_process_that_ended_before_is_returned_at_once() {
    let d = Daemon::start();
    let proc = id(&d.run("exit 3"));
    let asked = Instant::now();
    assert_eq!(d.exited(&proc)["exit_code"], 3);
    assert!(asked.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_timeout_does_not_affect_the_process() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    let asked = Instant::now();
    let wait = d.ok("wait", json!({ "id": proc, "timeout_ms": 300 }));
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let p = &wait["processes"][0];
    assert_eq!((&wait["status"], &p["status"], &p["exit_code"]), (&json!("timeout"), &json!("running"), &Value::Null));
    assert!(!program.is_dead());
    assert_eq!(d.process(&proc)["killed_by"], Value::Null);
}

#[test]
fn a_timeout_of_zero_or_less_is_rejected() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for timeout_ms in [0, -1, i64::MIN] {
        d.refused_param("timeout_ms", "wait", json!({ "id": proc, "timeout_ms": timeout_ms }));
    }
}

#[test]
fn a_timeout_over_the_maximum_is_clamped_and_reported() {
    let d = Daemon::start_with("max_wait_ms = 400\n", &[]);
    let proc = d.sh("exec sleep 1000");
    let wait = d.ok("wait", json!({ "id": proc, "timeout_ms": 3_600_000 }));
    let facts = (&wait["status"], &wait["clamped"], &wait["timeout_ms"]);
    assert_eq!(facts, (&json!("timeout"), &json!(true), &json!(400)));
    assert!(wait["note"].as_str().unwrap().contains("max_wait_ms"), "{wait}");
    let wait = d.ok("wait", json!({ "id": proc, "timeout_ms": 200 }));
    assert_eq!((&wait["clamped"], &wait["note"]), (&json!(false), &Value::Null));
    // The default timeout is over this limit too.
    assert_eq!(d.ok("wait", json!({ "id": proc }))["status"], "timeout");
}

#[test]
fn any_waits_for_one_of_several_and_all_for_every_one() {
    let d = Daemon::start();
    let (one, two) = (d.gate("one"), d.gate("two"));
    let first = d.sh(&format!("{}; exit 1", one.wait()));
    let second = d.sh(&format!("{}; exit 2", two.wait()));
    let mut conn = d.conn();
    let any = conn.request("wait", json!({ "ids": [first, second], "timeout_ms": 50000 }));
    let all = conn.request("wait", json!({ "ids": [first, second], "mode": "all", "timeout_ms": 50000 }));
    one.open();
    let wait = conn.answer(any).unwrap();
    let by_id = |wait: &Value, of: &str| wait["processes"].as_array().unwrap().iter().find(|p| p["id"] == of).cloned();
    assert_eq!(wait["status"], "exited");
    assert_eq!(by_id(&wait, &first).unwrap()["exit_code"], 1);
    assert_ne!(by_id(&wait, &second).map(|p| p["status"].clone()), Some(json!("exited")), "its gate is still closed");
    assert!(!conn.has_early(all), "one of two is not all");
    two.open();
    let wait = conn.answer(all).unwrap();
    assert_eq!(wait["status"], "exited");
    assert_eq!(
        (&by_id(&wait, &first).unwrap()["exit_code"], &by_id(&wait, &second).unwrap()["exit_code"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn a_timeout_of_all_reports_which_have_ended() {
    let d = Daemon::start();
    let ended = id(&d.run("exit 1"));
    let runs = d.sh("exec sleep 1000");
    let wait = d.ok("wait", json!({ "ids": [ended, runs], "mode": "all", "timeout_ms": 300 }));
    let states: Vec<Value> = wait["processes"].as_array().unwrap().iter().map(|p| p["status"].clone()).collect();
    assert_eq!((&wait["status"], states), (&json!("timeout"), vec![json!("exited"), json!("running")]));
}

#[test]
fn closed_is_waited_for_beyond_the_exit() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("({}; echo late) & exit 0", gate.wait()));
    assert_eq!(d.exited(&proc)["closed"], false);
    let mut conn = d.conn();
    let n = conn.request("wait", json!({ "id": proc, "until": "closed", "timeout_ms": 50000 }));
    gate.open();
    let wait = conn.answer(n).unwrap();
    assert_eq!((&wait["status"], &wait["processes"][0]["closed"]), (&json!("exited"), &json!(true)));
    assert_eq!(wait["processes"][0]["output"], "late\n");
}

#[test]
fn a_match_printed_before_the_call_counts() {
    let d = Daemon::start();
    let proc = d.sh("echo listening on 8080; seq 1 5000; exec sleep 1000");
    d.printed(&proc, "5000");
    let wait = d.ok("wait", json!({ "id": proc, "until": { "match": "listening" }, "timeout_ms": 50000 }));
    assert_eq!((&wait["status"], &wait["processes"][0]["matched"]), (&json!("matched"), &json!("listening on 8080")));
}

#[test]
fn a_match_printed_after_the_call_in_two_halves_counts() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{p}; printf 'now list'; {p}; echo ening; exec sleep 1000", p = gate.wait()));
    let mut conn = d.conn();
    let n = conn.request("wait", json!({ "id": proc, "until": { "match": "listening" }, "timeout_ms": 50000 }));
    gate.open();
    d.ok("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 50000 }));
    gate.open();
    let wait = conn.answer(n).unwrap();
    assert_eq!((&wait["status"], &wait["processes"][0]["matched"]), (&json!("matched"), &json!("now listening")));
    assert_eq!(wait["processes"][0]["status"], "running");
}

#[test]
fn a_prompt_without_a_newline_matches() {
    let d = Daemon::start();
    let proc = d.sh("echo hello; printf 'Password: '; exec sleep 1000");
    assert_eq!(d.printed(&proc, "Password:")["status"], "running");
}

#[test]
fn a_pattern_is_plain_text_unless_it_is_a_regex() {
    let d = Daemon::start();
    let proc = id(&d.run("echo 'port 8080'; echo 'a.c'; echo abc"));
    let ask = |pattern: Value| {
        let wait = d.ok("wait", json!({ "id": proc, "until": { "match": pattern }, "timeout_ms": 20000 }));
        (wait["status"].clone(), wait["processes"][0]["matched"].clone())
    };
    assert_eq!(ask(json!({ "regex": r"^port \d+$" })), (json!("matched"), json!("port 8080")));
    assert_eq!(ask(json!("a.c")), (json!("matched"), json!("a.c")));
    assert_eq!(ask(json!({ "regex": "^abc|never$" })), (json!("matched"), json!("abc")));
    assert_eq!(ask(json!("p.rt")), (json!("exited"), Value::Null), "a dot is a dot");
    d.refused_param("until", "wait", json!({ "id": proc, "until": { "match": { "regex": "(" } } }));
}

#[test]
fn a_match_that_never_comes_is_answered_as_exited_or_timeout() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("echo something; {}; exit 3", gate.wait()));
    let ask = |timeout_ms: u64| json!({ "id": proc, "until": { "match": "else" }, "timeout_ms": timeout_ms });
    assert_eq!(d.ok("wait", ask(300))["status"], "timeout");
    let mut conn = d.conn();
    let n = conn.request("wait", ask(50000));
    gate.open();
    let wait = conn.answer(n).unwrap();
    assert_eq!((&wait["status"], &wait["processes"][0]["exit_code"]), (&json!("exited"), &json!(3)));
}

#[test]
fn a_match_is_found_across_a_restart_of_the_daemon() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("echo before; printf ha; {}; echo lves; exec sleep 1000", gate.wait()));
    d.printed(&proc, "ha");
    d.restart();
    assert_eq!(d.printed(&proc, "before")["matched"], "before");
    gate.open();
    assert_eq!(d.printed(&proc, "halves")["matched"], "halves");
}

#[test]
fn all_waiting_clients_get_the_same_exit() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{}; exit 9", gate.wait()));
    let mut conns: Vec<_> = (0..20).map(|_| d.conn()).collect();
    let ask = json!({ "id": proc, "timeout_ms": 50000 });
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("wait", ask.clone())).collect();
    gate.open();
    for (conn, n) in conns.iter_mut().zip(sent) {
        let wait = conn.answer(n).unwrap();
        assert_eq!((&wait["status"], &wait["processes"][0]["exit_code"]), (&json!("exited"), &json!(9)));
    }
}

#[test]
fn a_client_that_disconnects_while_it_waits_changes_nothing() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    conn.request("wait", json!({ "id": proc, "timeout_ms": 50000 }));
    drop(conn);
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn wait_takes_either_id_or_ids() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    d.refused_param("id", "wait", json!({}));
    d.refused_param("id", "wait", json!({ "id": proc, "ids": [proc] }));
    d.refused_param("ids", "wait", json!({ "ids": [] }));
    d.refused(-32001, "not_found", "wait", json!({ "ids": [proc, "proc_000000000000"], "timeout_ms": 50000 }));
}
