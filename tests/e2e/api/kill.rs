//! `kill`: which processes it selects, which signals it sends, and what it answers.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{DEADLINE, Daemon, id};

#[test]
fn a_killed_process_is_dead_when_the_answer_comes() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    let answer = d.ok("kill", json!({ "id": proc }));
    assert!(program.is_dead(), "the answer comes after the death");
    let expected = json!({ "status": "killed", "results": [{
        "id": proc, "status": "killed", "signals_sent": ["SIGTERM"], "survivors": [],
        "exit_code": 143, "signal": "SIGTERM", "reason": "killed",
    }] });
    assert_eq!(answer, expected);
    let p = d.exited(&proc);
    assert_eq!((&p["status"], &p["exit_code"], &p["reason"]), (&json!("exited"), &json!(143), &json!("killed")));
    assert!(p["killed_by"].is_string(), "killed by whom: {p}");
}

#[test]
fn a_label_or_a_pattern_of_names_selects_what_is_killed() {
    let d = Daemon::start();
    let start =
        |name: &str, label: &str| id(&d.sh_with("exec sleep 1000", json!({ "name": name, "labels": { label: "1" } })));
    let (one, two, three) = (start("test-1", "a"), start("test-2", "b"), start("other", "c"));
    let killed = |params: Value| {
        let results = d.ok("kill", params)["results"].clone();
        results.as_array().unwrap().iter().map(|result| result["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(killed(json!({ "label": "c=2" })), Vec::<String>::new());
    assert_eq!(killed(json!({ "name": "test-?" })), [two.as_str(), one.as_str()]);
    assert_eq!(killed(json!({ "label": "c" })), [three.as_str()]);
    d.refused_param("id", "kill", json!({ "label": "a", "name": "*" }));
    let last = start("last", "d");
    let output = d.ctl(&["kill", "--label", "d=1"]);
    assert_eq!((output.code, output.stdout), (0, format!("{last} killed (SIGTERM)\n")));
}

#[test]
fn a_program_that_ignores_the_signal_gets_sigkill_after_the_grace() {
    let d = Daemon::start();
    let proc = d.sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
    d.printed(&proc, "ready");
    let asked = Instant::now();
    let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 500 }));
    assert!(asked.elapsed() >= Duration::from_millis(500), "the grace was cut short");
    let r = &answer["results"][0];
    assert_eq!(r["signals_sent"], json!(["SIGTERM", "SIGKILL"]));
    assert_eq!((&r["status"], &r["exit_code"], &r["signal"]), (&json!("killed"), &json!(137), &json!("SIGKILL")));
}

#[test]
fn a_program_that_exits_within_the_grace_keeps_its_code_and_gets_no_sigkill() {
    let d = Daemon::start();
    let proc = d.sh("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    d.printed(&proc, "ready");
    let asked = Instant::now();
    let r = d.ok("kill", json!({ "id": proc, "grace_ms": 50000 }))["results"][0].clone();
    assert!(asked.elapsed() < Duration::from_secs(20), "the answer waited for the end of the grace");
    assert_eq!((&r["status"], &r["exit_code"], &r["signal"]), (&json!("killed"), &json!(7), &Value::Null));
    assert_eq!((&r["signals_sent"], &r["reason"]), (&json!(["SIGTERM"]), &json!("killed")));
}

#[test]
fn the_first_signal_is_the_callers_choice() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let r = d.ok("kill", json!({ "id": proc, "signal": "SIGINT" }))["results"][0].clone();
    assert_eq!(
        (&r["exit_code"], &r["signal"], &r["signals_sent"]),
        (&json!(130), &json!("SIGINT"), &json!(["SIGINT"]))
    );
    let proc = d.sh("exec sleep 1000");
    let r = d.ok("kill", json!({ "id": proc, "signal": "SIGKILL" }))["results"][0].clone();
    assert_eq!((&r["exit_code"], &r["signals_sent"]), (&json!(137), &json!(["SIGKILL"])));
}

#[test]
fn a_grace_of_zero_sends_sigkill_at_once() {
    let d = Daemon::start();
    let proc = d.sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
    d.printed(&proc, "ready");
    assert_eq!(d.ok("kill", json!({ "id": proc, "grace_ms": 0 }))["results"][0]["exit_code"], 137);
}

#[test]
fn a_process_with_an_empty_tree_has_already_exited_and_keeps_its_exit() {
    let d = Daemon::start();
    let proc = id(&d.run("exit 5"));
    let answer = d.ok("kill", json!({ "id": proc }));
    let expected = json!({ "status": "already_exited", "results": [{
        "id": proc, "status": "already_exited", "signals_sent": [], "survivors": [],
        "exit_code": 5, "signal": null, "reason": "exited",
    }] });
    assert_eq!(answer, expected);
    assert_eq!(d.process(&proc)["reason"], "exited");
}

#[test]
fn the_overall_status_is_the_worst_of_all() {
    let d = Daemon::start();
    let ended = id(&d.run("exit 5"));
    let runs = d.sh("exec sleep 1000");
    let answer = d.ok("kill", json!({ "ids": [ended, runs] }));
    let each: Vec<&Value> = answer["results"].as_array().unwrap().iter().map(|r| &r["status"]).collect();
    assert_eq!((&answer["status"], each), (&json!("killed"), vec![&json!("already_exited"), &json!("killed")]));
}

#[test]
fn a_kill_by_task_session_or_all_affects_no_other_process() {
    let d = Daemon::start();
    let start = |more: Value| id(&d.sh_with("exec sleep 1000", more));
    let (task, session) = (start(json!({ "task_id": "t" })), start(json!({ "session_key": "s" })));
    let (other, plain) = (start(json!({ "task_id": "u", "session_key": "v" })), start(json!({})));
    let killed = |params: Value| -> Vec<String> {
        let answer = d.ok("kill", params);
        answer["results"].as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(killed(json!({ "task_id": "t" })), vec![task]);
    assert_eq!(killed(json!({ "session_key": "s" })), vec![session]);
    let mut running = d.ids(json!({ "status": "running" }));
    running.sort();
    let mut expected = vec![other, plain];
    expected.sort();
    assert_eq!(running, expected);
    killed(json!({ "all": true }));
    assert_eq!(d.ids(json!({ "status": "running" })), Vec::<String>::new());
}

#[test]
fn kill_takes_exactly_one_selector() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for params in [
        json!({}),
        json!({ "id": proc, "all": true }),
        json!({ "id": proc, "ids": [proc] }),
        json!({ "task_id": "t", "session_key": "s" }),
        json!({ "signal": "SIGKILL" }),
    ] {
        d.refused(-32602, "invalid_params", "kill", params);
    }
    d.refused(-32001, "not_found", "kill", json!({ "id": "proc_000000000000" }));
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_stopped_process_is_killed_too() {
    let d = Daemon::start();
    let proc = d.sh("kill -STOP $$; exit 0");
    let program = d.program(&proc);
    d.eventually("it is stopped", || {
        let inspect = d.ok("inspect", json!({ "id": proc }));
        inspect["tree"].as_array().unwrap().iter().any(|m| m["pid"] == program.pid && m["state"] == "T")
    });
    assert_eq!(d.ok("kill", json!({ "id": proc, "grace_ms": 300 }))["status"], "killed");
    assert!(program.is_dead());
}

#[test]
fn two_kills_of_one_process_are_both_answered_and_a_wait_returns() {
    let d = Daemon::start();
    let proc = d.sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
    d.printed(&proc, "ready");
    let (mut a, mut b, mut w) = (d.conn(), d.conn(), d.conn());
    let waits = w.request("wait", json!({ "id": proc, "timeout_ms": 50000 }));
    let (x, y) = (
        a.request("kill", json!({ "id": proc, "grace_ms": 300 })),
        b.request("kill", json!({ "id": proc, "grace_ms": 300 })),
    );
    for answer in [a.answer(x).unwrap(), b.answer(y).unwrap()] {
        let r = &answer["results"][0];
        assert_eq!((&r["exit_code"], &r["signal"], &r["survivors"]), (&json!(137), &json!("SIGKILL"), &json!([])));
    }
    let wait = w.answer(waits).unwrap();
    assert_eq!((&wait["status"], &wait["processes"][0]["reason"]), (&json!("exited"), &json!("killed")));
}

#[test]
fn a_second_kill_does_not_wait_for_the_grace_of_the_first() {
    let d = Daemon::start();
    let proc = d.sh("trap '' TERM; echo ready; while :; do sleep 1000; done");
    d.printed(&proc, "ready");
    let mut conn = d.conn();
    let asked = Instant::now();
    let patient = conn.request("kill", json!({ "id": proc, "grace_ms": 50000 }));
    conn.call("kill", json!({ "id": proc, "signal": "SIGKILL", "grace_ms": 0 })).unwrap();
    assert_eq!(conn.answer(patient).unwrap()["results"][0]["exit_code"], 137);
    assert!(asked.elapsed() < Duration::from_secs(30), "the second waited for the first");
}

#[test]
fn a_program_that_exits_by_itself_while_it_is_killed_was_not_killed() {
    let mut d = Daemon::prepare("", &[]);
    let hooks = d.root().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    d.spawn();
    let gate = d.gate("gate");
    let proc = d.sh(&format!("{}; exit 3", gate.wait()));
    let program = d.program(&proc);
    // The shim has found the program and is about to signal it.
    std::fs::write(hooks.join("kill.listed"), "").unwrap();
    let mut conn = d.conn();
    let kill = conn.request("kill", json!({ "id": proc }));
    d.eventually("the shim pauses", || hooks.join("kill.listed.hit").exists());
    gate.open();
    assert!(program.dies_within(DEADLINE));
    std::fs::remove_file(hooks.join("kill.listed")).unwrap();
    let expected = json!({ "status": "already_exited", "results": [{
        "id": proc, "status": "already_exited", "signals_sent": [], "survivors": [],
        "exit_code": 3, "signal": null, "reason": "exited",
    }] });
    assert_eq!(conn.answer(kill).unwrap(), expected);
    // The blame was recorded before the signal was sent: the answer was `already_exited`, the reason `killed`.
    let p = d.process(&proc);
    assert_eq!((&p["reason"], &p["killed_by"], &p["exit_code"]), (&json!("exited"), &Value::Null, &json!(3)));
}

#[test]
fn every_signal_is_sent_and_named() {
    // A report has a bit per signal, and signal 64 was read as none: `killed`, with nothing sent.
    let d = Daemon::start();
    for (asked, name, number) in
        [("64", "SIGRTMIN+30", 64), ("SIGRTMIN+30", "SIGRTMIN+30", 64), ("SIGRTMAX", "SIGRTMIN+30", 64)]
            .into_iter()
            .chain([("SIGRTMIN", "SIGRTMIN+0", 34), ("63", "SIGRTMIN+29", 63), ("1", "SIGHUP", 1)])
    {
        let proc = d.sh("exec sleep 1000");
        let r = d.ok("kill", json!({ "id": proc, "signal": asked }))["results"][0].clone();
        assert_eq!(
            (&r["status"], &r["signals_sent"], &r["signal"], &r["exit_code"], &r["reason"]),
            (&json!("killed"), &json!([name]), &json!(name), &json!(128 + number), &json!("killed")),
            "{asked}"
        );
    }
}
