//! `session.active` and `session.end`: the running processes of a session, and its end.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;

fn start(d: &Daemon, more: Value) -> String {
    id(&d.sh_with("exec sleep 1000", more))
}

#[test]
fn running_processes_are_counted_by_session_and_by_task() {
    let d = Daemon::start();
    let a = start(&d, json!({ "session_key": "s", "task_id": "t" }));
    let b = start(&d, json!({ "session_key": "s" }));
    start(&d, json!({ "session_key": "other" }));
    let ended = id(&d.sh_with("exit 0", json!({ "session_key": "s", "task_id": "t" })));
    d.closed(&ended);
    let active = |params: Value| {
        let answer = d.ok("session.active", params);
        let mut ids: Vec<String> = serde_json::from_value(answer["ids"].clone()).unwrap();
        ids.sort();
        assert_eq!(answer["count"], ids.len());
        ids
    };
    let mut both = vec![a.clone(), b];
    both.sort();
    assert_eq!(active(json!({ "session_key": "s" })), both);
    assert_eq!(active(json!({ "task_id": "t" })), vec![a]);
    assert_eq!(active(json!({ "session_key": "missing" })), Vec::<String>::new());
    d.refused(-32602, "invalid_params", "session.active", json!({}));
    d.refused(-32602, "invalid_params", "session.active", json!({ "session_key": "s", "task_id": "t" }));
}

#[test]
fn the_end_of_a_session_kills_its_processes_lists_them_and_affects_no_other() {
    let d = Daemon::start();
    let a = start(&d, json!({ "session_key": "s" }));
    let b = id(&d.sh_with("setsid sleep 1000 & echo ready; exec sleep 1000", json!({ "session_key": "s" })));
    d.printed(&b, "ready");
    let other = start(&d, json!({ "session_key": "other" }));
    let ended = id(&d.sh_with("exit 5", json!({ "session_key": "s" })));
    d.closed(&ended);
    let programs: Vec<Pidfd> = [&a, &b].into_iter().map(|p| d.program(p)).collect();
    let answer = d.ok("session.end", json!({ "session_key": "s" }));
    assert!(programs.iter().all(Pidfd::is_dead));
    let mut killed: Vec<String> = answer["killed"].as_array().unwrap().iter().map(id).collect();
    killed.sort();
    let mut both = vec![a, b];
    both.sort();
    assert_eq!((killed, &answer["count"], &answer["session_key"]), (both, &json!(2), &json!("s")));
    assert!(answer["killed"].as_array().unwrap().iter().all(|k| k["status"] == "killed" && k["exit_code"] == 143));
    assert_eq!(d.ok("session.active", json!({ "session_key": "s" })), json!({ "count": 0, "ids": [] }));
    assert_eq!(d.process(&other)["status"], "running");
    assert_eq!(d.process(&ended)["exit_code"], 5);
}

#[test]
fn the_end_of_a_session_without_processes_succeeds() {
    let d = Daemon::start();
    let answer = d.ok("session.end", json!({ "session_key": "missing" }));
    assert_eq!((&answer["killed"], &answer["count"]), (&json!([]), &json!(0)));
    d.refused_param("session_key", "session.end", json!({}));
}

#[test]
fn a_session_survives_a_restart() {
    let mut d = Daemon::start();
    let a = start(&d, json!({ "session_key": "s", "task_id": "t" }));
    d.restart();
    assert_eq!(d.ok("session.active", json!({ "session_key": "s" })), json!({ "count": 1, "ids": [a] }));
    assert_eq!(d.ok("session.end", json!({ "session_key": "s" }))["count"], 1);
}
