//! `signal`: sends one signal to the process group and nothing else.

use serde_json::json;
use toold_test_support::rig::{Daemon, id};

#[test]
fn the_group_gets_the_signal_and_other_sessions_do_not() {
    let d = Daemon::start();
    let watch =
        |who: &str| format!("sh -c 'trap \"echo {who} got it\" USR1; echo {who} ready; while :; do sleep 0.02; done'");
    let proc = d.sh(&format!(
        "trap 'echo leader got it' USR1; {} & setsid {} & echo leader ready; while :; do sleep 0.02; done",
        watch("member"),
        watch("outsider")
    ));
    for who in ["leader", "member", "outsider"] {
        d.printed(&proc, &format!("{who} ready"));
    }
    let answer = d.ok("signal", json!({ "id": proc, "signal": "SIGUSR1" }));
    assert_eq!(answer, json!({ "id": proc, "signal": "SIGUSR1" }));
    d.printed(&proc, "leader got it");
    d.printed(&proc, "member got it");
    let p = d.process(&proc);
    assert_eq!((&p["status"], &p["killed_by"]), (&json!("running"), &json!(null)));
    assert!(!d.text(&proc).contains("outsider got it"));
}

#[test]
fn a_stopped_program_continues_and_is_running_all_the_time() {
    let d = Daemon::start();
    let proc = d.sh("echo ready; while :; do sleep 0.02; done");
    d.printed(&proc, "ready");
    let state = || d.ok("inspect", json!({ "id": proc }))["tree"][0]["state"].clone();
    d.ok("signal", json!({ "id": proc, "signal": "SIGSTOP" }));
    // A shell that starts a program with vfork cannot stop before that program, stopped too, has started.
    d.eventually("it is stopped", || state() == "T" || state() == "D");
    assert_eq!(d.process(&proc)["status"], "running");
    d.ok("signal", json!({ "id": proc, "signal": "SIGCONT" }));
    d.eventually("it goes on", || state() != "T");
}

#[test]
fn a_signal_that_ends_the_program_is_its_exit() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    d.ok("signal", json!({ "id": proc, "signal": "SIGHUP" }));
    let p = d.exited(&proc);
    assert_eq!((&p["exit_code"], &p["signal"]), (&json!(129), &json!("SIGHUP")));
}

#[test]
fn a_signal_to_an_exited_program_is_an_error_with_its_exit() {
    let d = Daemon::start();
    let proc = id(&d.run("exit 4"));
    let error = d.refused(-32002, "already_exited", "signal", json!({ "id": proc, "signal": "SIGTERM" }));
    let p = &error["data"]["process"];
    assert_eq!((&p["id"], &p["exit_code"], &p["reason"]), (&json!(proc), &json!(4), &json!("exited")));
}

#[test]
fn an_unknown_signal_name_is_rejected_and_sends_nothing() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for signal in ["SIGNOTHING", "", "TERM INT", "0", "-1", "99999"] {
        d.refused_param("signal", "signal", json!({ "id": proc, "signal": signal }));
        d.refused_param("signal", "kill", json!({ "id": proc, "signal": signal }));
    }
    assert_eq!(d.process(&proc)["status"], "running");
}
