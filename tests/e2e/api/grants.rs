//! `grants.*`: what a person allowed for the rest of a session.

use super::approvals::{ask, asking, decision};
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// Approves for the session. Returns the grant.
#[track_caller]
fn grant(d: &Daemon, approval: &Value, terms: Value) -> Value {
    let mut call = decision(approval, "approve");
    call["scope"] = json!("session");
    if terms != json!({}) {
        call["grant"] = terms;
    }
    d.ok("approvals.decide", call)["grant"].clone()
}

fn grants(d: &Daemon) -> Vec<Value> {
    d.ok("grants.list", json!({}))["grants"].as_array().unwrap().clone()
}

#[test]
fn the_same_command_needs_no_question_again_in_its_session() {
    let mut d = Daemon::start();
    let session = || json!({ "session_key": "s" });
    let (process, approval) = ask(&d, "echo ran", session());
    assert_eq!(approval["offers"][0], json!({ "scope": "once", "grant": null }), "{approval}");
    assert_eq!(approval["offers"][1]["scope"], "session", "{approval}");
    let granted = grant(&d, &approval, json!({}));
    assert_eq!((&granted["session_key"], &granted["uses"]), (&json!("s"), &json!(0)), "{granted}");
    assert_eq!((&granted["approval"], &granted["expires_at"]), (&approval["id"], &Value::Null), "{granted}");
    assert_eq!(granted["owner"]["pid"], std::process::id(), "{granted}");
    d.closed(&id(&process));
    for (uses, restarted) in [(1, false), (2, true)] {
        if restarted {
            d.restart();
        }
        let again = d.ok("exec", asking("echo ran", session()));
        assert_ne!(again["status"], "pending", "{again}");
        d.closed(&id(&again));
        assert_eq!(grants(&d)[0]["uses"], uses);
    }
    for other in [
        asking("echo other", session()),
        asking("echo ran", json!({ "session_key": "t" })),
        asking("echo ran", json!({})),
        asking("echo ran", json!({ "session_key": "s", "cwd": "/" })),
    ] {
        assert_eq!(d.ok("exec", other.clone())["status"], "pending", "{other}");
    }
    let all = d.ok("events.next", json!({ "consumer": "c", "types": ["grant_added"] }));
    let events = all["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{all}");
    assert_eq!((&events[0]["grant"], &events[0]["approval"]), (&granted["id"], &approval["id"]), "{all}");
}

#[test]
fn a_revoked_grant_stops_later_uses_and_lists_what_runs_under_it() {
    let mut d = Daemon::start();
    let session = || json!({ "session_key": "s" });
    let (first, approval) = ask(&d, "exec sleep 1000", session());
    let granted = grant(&d, &approval, json!({}));
    let second = d.ok("exec", asking("exec sleep 1000", session()));
    assert_eq!(second["status"], "running", "{second}");
    d.refused_param("id", "grants.revoke", json!({}));
    d.refused_param("id", "grants.revoke", json!({ "id": "grant_x" }));
    d.refused(-32001, "not_found", "grants.revoke", json!({ "id": "grant_000000000000" }));
    let revoked = d.ok("grants.revoke", json!({ "id": granted["id"] }));
    assert_eq!(revoked["running"], json!([second["id"]]), "the first one was approved once: {revoked}");
    assert_eq!((&revoked["revoked"][0]["id"], &revoked["killed"]), (&granted["id"], &json!([])), "{revoked}");
    assert_eq!(d.process(&id(&second))["status"], "running");
    assert_eq!(grants(&d), Vec::<Value>::new());
    let all = d.ok("grants.list", json!({ "all": true }))["grants"][0].clone();
    assert_eq!((&all["uses"], &all["revoked_by"]["pid"]), (&json!(1), &json!(std::process::id())), "{all}");
    assert_eq!(d.ok("grants.revoke", json!({ "id": granted["id"] }))["revoked"], json!([]), "a second time");
    d.restart();
    let (_, approval) = ask(&d, "exec sleep 1000", session());
    grant(&d, &approval, json!({}));
    let third = d.ok("exec", asking("exec sleep 1000", session()));
    let revoked = d.ok("grants.revoke", json!({ "session_key": "s", "kill": true }));
    assert_eq!(revoked["killed"][0]["id"], third["id"], "{revoked}");
    assert_eq!(revoked["killed"][0]["status"], "killed", "{revoked}");
    assert_eq!(d.process(&id(&first))["status"], "running");
    let events = d.ok("events.next", json!({ "consumer": "c", "types": ["grant_revoked"] }));
    assert_eq!(events["events"].as_array().unwrap().len(), 2, "{events}");
}

#[test]
fn a_grant_ends_at_its_time() {
    let mut d = Daemon::prepare("", &[("TOOLD_HOOKS", "hooks")]);
    std::fs::create_dir(d.root().join("hooks")).unwrap();
    d.spawn();
    let (process, approval) = ask(&d, "echo ran", json!({ "session_key": "s" }));
    let granted = grant(&d, &approval, json!({ "expires_ms": 60_000 }));
    assert!(granted["expires_at"].is_string(), "{granted}");
    d.closed(&id(&process));
    std::fs::write(d.root().join("hooks/wall_offset_ms"), "61000").unwrap();
    assert_eq!(grants(&d), Vec::<Value>::new());
    let again = d.ok("exec", asking("echo ran", json!({ "session_key": "s" })));
    assert_eq!(again["status"], "pending", "{again}");
}

#[test]
fn an_approval_for_always_is_a_rule_and_the_command_needs_no_question_again() {
    let d = Daemon::start_with("[policy]\nunmatched = \"ask\"\n", &[]);
    let call = || json!({ "argv": ["/bin/echo", "ran"] });
    let process = d.ok("exec", call());
    assert_eq!(process["status"], "pending", "{process}");
    let approval = d.ok("approvals.get", json!({ "id": process["approval"] }));
    assert_eq!(approval["kind"], "exec", "{approval}");
    let offered = approval["offers"].as_array().unwrap().iter().find(|offer| offer["scope"] == "always");
    assert_eq!(offered.unwrap()["grant"]["prefix"], json!(["/bin/echo", "ran"]), "{approval}");
    let mut always = decision(&approval, "approve");
    always["scope"] = json!("always");
    d.ok("approvals.decide", always);
    assert_eq!(d.closed(&id(&process))["output"], "ran\n");
    let rules = fs::read_to_string(d.root().join("config/toold/rules/approved.toml")).unwrap();
    assert!(rules.contains("/bin/echo") && rules.contains("allow"), "{rules}");
    let again = d.ok("exec", call());
    assert_ne!(again["status"], "pending", "{again}");
    d.closed(&id(&again));
    // A rule for an interpreter alone would allow anything: it is not offered.
    let wide = d.ok("exec", json!({ "argv": ["/bin/sh"] }));
    let approval = d.ok("approvals.get", json!({ "id": wide["approval"] }));
    let mut always = decision(&approval, "approve");
    always["scope"] = json!("always");
    d.refused_param("scope", "approvals.decide", always);
}
