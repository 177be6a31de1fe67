//! Scope `script`: a person allows a tool for the rest of the script that asks.

use super::approvals::{decide, decision};
use super::policy::with_rules;
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

const ASK: &str = r#"
[[rule]]
prefix  = ["touch"]
verdict = "ask"
reason  = "makes files"

[[rule]]
prefix  = ["mkdir"]
verdict = "deny"
reason  = "no directories"
"#;

/// Starts a Python script.
pub fn start(d: &Daemon, code: &str, more: Value) -> String {
    let code = format!("from toold_tools import *\n{code}");
    let mut call = json!({ "code": code, "cwd": d.home(), "yield_ms": 0 });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    id(&d.ok("script.run", call))
}

/// Returns the result of a script that ends.
pub fn ended(d: &Daemon, script: &str) -> Value {
    let result = d.ok("script.result", json!({ "id": script, "wait_ms": 60_000 }));
    assert_ne!(result["status"], "running", "{result}");
    result
}

pub fn pending(d: &Daemon) -> Vec<Value> {
    d.ok("approvals.list", json!({}))["approvals"].as_array().unwrap().clone()
}

/// Returns the one question that waits, when there is one.
#[track_caller]
pub fn asked(d: &Daemon) -> Value {
    d.eventually("it asks", || !pending(d).is_empty());
    let mut all = pending(d);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Approves for the rest of the script. Returns the grant.
#[track_caller]
pub fn grant(d: &Daemon, approval: &Value, terms: Value) -> Value {
    let mut call = decision(approval, "approve");
    call["scope"] = json!("script");
    call["grant"] = terms;
    d.ok("approvals.decide", call)["grant"].clone()
}

fn all_grants(d: &Daemon) -> Vec<Value> {
    d.ok("grants.list", json!({ "all": true }))["grants"].as_array().unwrap().clone()
}

fn touch(count: usize) -> String {
    format!("for i in range({count}): terminal('touch f%d' % i, check=True)")
}

#[test]
fn a_loop_asks_once_and_its_grant_ends_with_the_script() {
    let d = with_rules("", ASK);
    let script = start(&d, &touch(4), json!({}));
    let approval = asked(&d);
    assert_eq!((&approval["script"], &approval["kind"]), (&json!(script), &json!("exec")), "{approval}");
    let offers: Vec<&Value> = approval["offers"].as_array().unwrap().iter().map(|offer| &offer["scope"]).collect();
    assert_eq!(offers, ["once", "script", "always"], "{approval}");
    d.eventually("its process shows it", || d.process(&script)["pending_on"] == json!({ "approval": approval["id"] }));
    let granted = grant(&d, &approval, json!({}));
    assert_eq!(granted["covers"], json!({ "script": script, "tool": "terminal" }), "{granted}");
    let result = ended(&d, &script);
    assert_eq!((&result["status"], &result["stderr"]), (&json!("ok"), &json!("")), "{result}");
    assert_eq!((&result["calls"]["made"], pending(&d).len()), (&json!(4), 0), "{result}");
    assert!((0..4).all(|i| d.home().join(format!("f{i}")).exists()));
    let over = all_grants(&d).remove(0);
    assert_eq!((&over["uses"], &over["revoke_reason"]), (&json!(3), &json!("the script ended")), "{over}");
    assert_eq!(d.ok("grants.list", json!({}))["grants"], json!([]));
    let calls = d.ok("script.calls", json!({ "id": script }))["calls"].clone();
    assert_eq!((&calls[0]["approval"], &calls[1]["approval"]), (&approval["id"], &Value::Null), "{calls}");
    let why = d.ok("inspect", json!({ "id": calls[1]["process"] }))["allowed_by"].clone();
    assert_eq!(why["grant"]["id"], granted["id"], "{why}");
    let events = d.ok("events.next", json!({ "consumer": "c", "types": ["grant_added", "grant_revoked"] }));
    assert_eq!((&events["events"][0]["scope"], &events["events"][1]["uses"]), (&json!("script"), &json!(3)));
    assert_eq!(events["events"][1]["reason"], "the script ended", "{events}");
}

#[test]
fn a_grant_for_a_script_covers_no_other_tool_script_or_argument() {
    let d = with_rules("", ASK);
    let (root, outside) = (d.root().join("w"), d.root().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    let code = "terminal('touch a'); terminal('touch b'); terminal('touch b', timeout=9)\n\
        try: terminal('mkdir d')\nexcept ToolDenied as e: print(e.data['rule']['index'])\n\
        for name in 'fg': write_file(args + '/' + name, 'x')";
    let script = start(&d, code, json!({ "args": outside, "cwd": root, "sandbox": { "profile": "workspace-write" } }));
    grant(&d, &asked(&d), json!({ "tool": "terminal", "args_like": { "command": "touch b" } }));
    let write = asked(&d);
    assert_eq!((&write["kind"], &write["script"]), (&json!("write"), &json!(script)), "another tool asks: {write}");
    let other = start(&d, "terminal('touch b')", json!({}));
    d.eventually("another script asks", || pending(&d).len() == 2);
    decide(&d, &pending(&d)[1], "approve");
    assert_eq!(ended(&d, &other)["status"], "ok");
    grant(&d, &write, json!({}));
    let result = ended(&d, &script);
    assert_eq!((&result["status"], &result["output"]), (&json!("ok"), &json!("1\n")), "a deny stays one: {result}");
    assert!(outside.join("f").exists() && outside.join("g").exists());
    let uses: Vec<Value> = all_grants(&d).iter().map(|grant| grant["uses"].clone()).collect();
    assert_eq!(uses, [2, 1]);
}

#[test]
fn a_call_that_a_rule_denies_is_a_refusal_and_leaves_the_budget() {
    let mut d = with_rules("", ASK);
    // It was counted and was a failed call, so that three denials used up this budget.
    let code = "for i in range(3):\n    try: terminal('mkdir d')\n    except ToolDenied as e: print(e.kind)\n\
        print(terminal('echo one')['output'] + terminal('echo two')['output'])\n\
        try: terminal('echo three')\nexcept ToolLimit as e: print(e.kind)";
    let result = ended(&d, &start(&d, code, json!({ "max_calls": 2 })));
    assert_eq!(result["output"], "denied\ndenied\ndenied\none\ntwo\n\nlimit\n", "{result}");
    let counts = |result: &Value| ["made", "refused", "failed", "unknown"].map(|of| result["calls"][of].clone());
    assert_eq!(counts(&result), [2, 4, 0, 0], "{result}");
    assert_eq!(result["process"]["script"]["calls"], 2, "{result}");
    assert_eq!(d.ok("script.calls", json!({ "id": id(&result) }))["total"], 2);
    d.kill9();
    d.spawn();
    assert_eq!(counts(&ended(&d, &id(&result))), [2, 4, 0, 0]);
}

#[test]
fn a_grant_for_a_script_has_a_number_of_uses_that_a_crash_does_not_refill() {
    let mut d = with_rules("", ASK);
    let gate = d.gate("gate");
    let code = format!("{}\nopen({:?}).readline()\n{}", touch(2), gate.path, touch(2));
    let script = start(&d, &code, json!({}));
    let approval = asked(&d);
    for (terms, scope) in [
        (json!({ "uses": 0 }), "script"),
        (json!({ "tool": "write_file" }), "script"),
        (json!({ "root": "/" }), "script"),
        (json!({ "uses": 1 }), "once"),
    ] {
        let mut call = decision(&approval, "approve");
        (call["scope"], call["grant"]) = (json!(scope), terms);
        d.refused_param("grant", "approvals.decide", call);
    }
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    d.refused_param("scope", "approvals.decide", session);
    grant(&d, &approval, json!({ "uses": 2 }));
    d.eventually("one use is counted", || all_grants(&d)[0]["uses"] == 1);
    d.kill9();
    d.spawn();
    assert_eq!(all_grants(&d)[0]["uses"], 1);
    gate.open();
    let last = asked(&d);
    assert_eq!(last["action"]["argv"][2], "touch f1", "{last}");
    assert_eq!(
        (all_grants(&d)[0]["uses"].clone(), d.ok("grants.list", json!({}))["grants"].clone()),
        (json!(2), json!([]))
    );
    decide(&d, &last, "approve");
    assert_eq!(ended(&d, &script)["status"], "ok");
}

#[test]
fn a_revoked_grant_and_a_denial_end_in_the_script() {
    let d = with_rules("", ASK);
    let gate = d.gate("gate");
    let code = format!(
        "terminal('touch a')\nopen({:?}).readline()\ntry: terminal('touch b')\n\
        except ToolDenied as e: print(e.kind, e.data['approval'])",
        gate.path
    );
    let script = start(&d, &code, json!({}));
    let granted = grant(&d, &asked(&d), json!({}));
    let revoked = d.ok("grants.revoke", json!({ "id": granted["id"] }));
    assert_eq!(revoked["revoked"][0]["id"], granted["id"], "{revoked}");
    gate.open();
    let approval = asked(&d);
    decide(&d, &approval, "deny");
    let result = ended(&d, &script);
    let expected = format!("denied {}\n", approval["id"].as_str().unwrap());
    assert_eq!((&result["status"], &result["output"]), (&json!("ok"), &json!(expected)), "{result}");
    assert!(!d.home().join("b").exists());
}

#[test]
fn the_time_of_a_question_does_not_count_for_the_call_and_the_script() {
    let d = with_rules("", ASK);
    let script = start(
        &d,
        "terminal('touch a', check=True); print('on')",
        json!({ "timeout_ms": 3000, "call_timeout_ms": 2000 }),
    );
    let approval = asked(&d);
    d.eventually("more than its time has passed", || d.process(&script)["uptime_ms"].as_u64().unwrap() > 5000);
    assert_eq!(d.process(&script)["pending_on"]["approval"], approval["id"]);
    decide(&d, &approval, "approve");
    let result = ended(&d, &script);
    assert_eq!((&result["status"], &result["output"]), (&json!("ok"), &json!("on\n")), "{result}");
    // What is left of its time is still bounded.
    let late =
        start(&d, "terminal('touch b', check=True)\nimport time\ntime.sleep(1000)", json!({ "timeout_ms": 3000 }));
    decide(&d, &asked(&d), "approve");
    assert_eq!(ended(&d, &late)["status"], "timeout");
}

#[test]
fn a_question_outlives_the_daemon_and_its_command_runs_once() {
    let mut d = with_rules("", ASK);
    let script = start(&d, "terminal('touch a; echo x >> ran')\nterminal('touch b')", json!({}));
    let approval = asked(&d);
    d.kill9();
    d.spawn();
    d.eventually("it waits again", || d.process(&script)["pending_on"]["approval"] == approval["id"]);
    assert_eq!(asked(&d)["expires_at"], approval["expires_at"]);
    grant(&d, &approval, json!({}));
    assert_eq!(ended(&d, &script)["status"], "ok");
    assert_eq!(fs::read_to_string(d.home().join("ran")).unwrap(), "x\n");
    assert_eq!(all_grants(&d)[0]["uses"], 1);
}

#[test]
fn a_script_that_is_cancelled_withdraws_its_questions_and_ends_its_grants() {
    let d = Daemon::start();
    let (root, outside) = (d.root().join("w"), d.root().join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    let script = start(
        &d,
        "write_file(args + '/f', 'x')",
        json!({ "args": outside, "cwd": root, "sandbox": "workspace-write" }),
    );
    let approval = asked(&d);
    d.ok("script.cancel", json!({ "id": script }));
    assert_eq!(d.ok("approvals.get", json!({ "id": approval["id"] }))["state"], "withdrawn");
    assert!(!outside.join("f").exists());
}

#[test]
fn a_person_approves_for_the_script_at_the_command_line() {
    let d = with_rules("", ASK);
    let script = start(&d, &touch(3), json!({}));
    let approval = asked(&d);
    let approved = d.ctl(&["approve", approval["id"].as_str().unwrap(), "--script", "--uses", "5"]);
    let text = approved.stdout;
    assert!(text.contains("allows it in the rest of the script"), "{text}");
    assert_eq!(ended(&d, &script)["status"], "ok");
    assert_eq!((&all_grants(&d)[0]["uses"], &all_grants(&d)[0]["covers"]["uses"]), (&json!(2), &json!(5)));
}
