//! Rules and approvals together: who let a process start, restarts, scope `always`, and the variables of a session.

use super::approvals::{ask, decide, decision};
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// A daemon that asks about every command but `sleep`.
fn untrusted() -> Daemon {
    let mut d = Daemon::prepare("[policy]\napproval = \"untrusted\"\n", &[]);
    let rules = d.root().join("config/toold/rules");
    fs::create_dir(&rules).unwrap();
    fs::write(rules.join("10.toml"), "[[rule]]\nprefix = ['sleep']\nverdict = 'allow'\n").unwrap();
    d.spawn();
    d
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

#[test]
fn a_restart_with_variables_that_run_code_is_judged_as_an_exec() {
    let d = untrusted();
    let process = d.ok("exec", json!({ "argv": ["sleep", "1000"], "name": "web", "cwd": d.home() }));
    assert_eq!(process["status"], "running", "a rule allows it: {process}");
    let error = d.refused(
        -32005,
        "denied",
        "restart",
        json!({ "id": "web", "env": { "PATH": path(), "LD_PRELOAD": "/x.so" } }),
    );
    assert!(error["message"].as_str().unwrap().contains("exec"), "{error}");
    assert_eq!(d.process(&id(&process))["status"], "running", "it was not touched");
    let again = d.ok("restart", json!({ "id": "web", "env": { "PATH": path(), "PORT": "1" } }));
    assert_eq!((&again["status"], &again["restart_of"]), (&json!("running"), &process["id"]), "{again}");
    let denied = d.ok("events.next", json!({ "consumer": "c", "types": ["denied"] }));
    assert_eq!(denied["events"].as_array().unwrap().len(), 1, "{denied}");
}

#[test]
fn who_or_which_rule_let_a_process_start_is_shown() {
    let d = untrusted();
    let process = d.ok("exec", json!({ "argv": ["sleep", "1000"], "cwd": d.home() }));
    let allowed = d.ok("inspect", json!({ "id": process["id"] }))["allowed_by"].clone();
    assert_eq!(allowed["rules"], json!([{ "file": "10.toml", "index": 0 }]), "{allowed}");
    let why = d.ctl(&["why", &id(&process)]);
    assert!(why.stdout.contains("Allowed by    10.toml, rule 0\n"), "{why:?}");

    let (process, approval) = ask(&d, "true", json!({ "session_key": "s" }));
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    let decided = d.ok("approvals.decide", session);
    d.closed(&id(&process));
    let allowed = d.ok("inspect", json!({ "id": process["id"] }))["allowed_by"].clone();
    assert_eq!(allowed["approval"], decided["approval"], "{allowed}");
    let (pid, at) = (std::process::id(), decided["approval"]["decided_at"].as_str().unwrap());
    let why = d.ctl(&["why", &id(&process)]).stdout;
    let line = format!("Approved      {} approved by uid ", approval["id"].as_str().unwrap());
    assert!(why.contains(&line) && why.contains(&format!(" pid {pid} (")), "{why}");
    assert!(why.contains(&format!(" at {at}, for the session\n")), "{why}");

    let again = d.ok("exec", super::approvals::asking("true", json!({ "session_key": "s" })));
    d.closed(&id(&again));
    let why = d.ctl(&["why", &id(&again)]).stdout;
    assert!(
        why.contains(&format!("Grant         {}, given by uid ", decided["grant"]["id"].as_str().unwrap())),
        "{why}"
    );
    // A process without rules, person or grant has no such line.
    let d = Daemon::start();
    let plain = d.run("true");
    assert_eq!(d.ok("inspect", json!({ "id": plain["id"] }))["allowed_by"], Value::Null);
    assert_eq!(d.ctl(&["why", &id(&plain)]).stdout, format!("{} had no sandbox\n", id(&plain)));
}

#[test]
fn a_rule_that_cannot_be_written_is_reported_with_the_decision() {
    let d = Daemon::start_with("[policy]\nunmatched = \"ask\"\n", &[]);
    let rules = d.root().join("config/toold/rules");
    fs::write(&rules, "not a directory").unwrap();
    let process = d.ok("exec", json!({ "argv": ["/bin/echo", "ran"] }));
    let approval = d.ok("approvals.get", json!({ "id": process["approval"] }));
    let mut always = decision(&approval, "approve");
    always["scope"] = json!("always");
    let decided = d.ok("approvals.decide", always);
    let why = decided["approval"]["rule_error"].as_str().unwrap();
    assert!(why.contains("approved.toml"), "{decided}");
    assert_eq!(d.closed(&id(&process))["output"], "ran\n", "it was approved, once");
    let got = d.ok("approvals.get", json!({ "id": approval["id"] }));
    assert_eq!(got["rule_error"], why, "{got}");
    let again = d.ok("exec", json!({ "argv": ["/bin/echo", "ran"] }));
    assert_eq!(again["status"], "pending", "it asks again: {again}");
    let printed = d.ctl(&["approve", again["approval"].as_str().unwrap(), "--always"]);
    assert!(printed.stdout.contains("the rule was not added, so this holds once: "), "{printed:?}");
}

#[test]
fn a_question_without_a_session_offers_no_grant() {
    let d = Daemon::start();
    let (_, approval) = ask(&d, "true", json!({}));
    let offers = approval["offers"].as_array().unwrap();
    assert!(offers.iter().all(|offer| offer["scope"] != "session"), "{approval}");
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    d.refused_param("scope", "approvals.decide", session);
    decide(&d, &approval, "deny");
}

#[test]
fn the_variables_of_a_session_reach_a_process_that_waited_over_the_death_of_the_daemon() {
    let mut d = Daemon::start_with("", &[("PASSED", "value"), ("NOT_PASSED", "value")]);
    d.ok("session.configure", json!({ "session_key": "s", "env_pass": ["PASSED"] }));
    let (process, approval) = ask(&d, "echo ${PASSED-none} ${NOT_PASSED-none}", json!({ "session_key": "s" }));
    d.kill9();
    d.spawn();
    decide(&d, &approval, "approve");
    assert_eq!(d.closed(&id(&process))["output"], "value none\n");
}
