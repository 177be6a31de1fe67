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

#[test]
fn the_settings_of_a_session_are_durable_and_replaced_as_a_whole() {
    let mut d = Daemon::start();
    let home = d.home().display().to_string();
    let none = json!({
        "session_key": "s", "configured": false, "cwd": null, "sandbox": null, "approval": "on-request", "roots": [],
        "env_pass": [], "running": [], "grants": [], "approvals": []
    });
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" })), none);
    let set = json!({
        "session_key": "s", "cwd": home, "approval": "never", "roots": [home], "env_pass": ["EDITOR"]
    });
    let mut expected = none.clone();
    for (key, value) in set.as_object().unwrap() {
        expected[key] = value.clone();
    }
    expected["configured"] = json!(true);
    assert_eq!(d.ok("session.configure", set), expected);
    d.restart();
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" })), expected);
    // A call without a directory runs in that of its session.
    let run = |session: &str| {
        let call = json!({ "argv": ["pwd"], "session_key": session, "yield_ms": 60000 });
        d.ok("exec", call)["cwd"].clone()
    };
    assert_eq!(run("s"), json!(home));
    let running = start(&d, json!({ "session_key": "s" }));
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" }))["running"], json!([running]));
    d.ok("session.configure", json!({ "session_key": "s", "approval": "untrusted" }));
    let replaced = d.ok("session.get", json!({ "session_key": "s" }));
    assert_eq!(
        (&replaced["approval"], &replaced["cwd"], &replaced["roots"]),
        (&json!("untrusted"), &json!(null), &json!([]))
    );
    d.ok("session.end", json!({ "session_key": "s" }));
    assert_eq!(
        d.ok("session.get", json!({ "session_key": "s" }))["approval"],
        "untrusted",
        "the end of a session keeps them"
    );
    d.ok("session.configure", json!({ "session_key": "s" }));
    d.restart();
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" })), none);
}

#[test]
fn settings_that_cannot_hold_are_refused_and_change_nothing() {
    let d = Daemon::start();
    d.ok("session.configure", json!({ "session_key": "s", "approval": "never" }));
    for (param, call) in [
        ("session_key", json!({ "session_key": "" })),
        ("session_key", json!({ "session_key": "x".repeat(5000) })),
        ("cwd", json!({ "session_key": "s", "cwd": "relative" })),
        ("cwd", json!({ "session_key": "s", "cwd": "/no/such/dir" })),
        ("roots[0]", json!({ "session_key": "s", "roots": ["/etc/passwd"] })),
        ("env_pass[0]", json!({ "session_key": "s", "env_pass": ["A=B"] })),
    ] {
        d.refused_param(param, "session.configure", call);
    }
    d.refused(-32602, "invalid_params", "session.configure", json!({ "session_key": "s", "approval": "maybe" }));
    d.refused(-32602, "invalid_params", "session.get", json!({ "session_key": "" }));
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" }))["approval"], "never");
}

#[test]
fn the_profile_of_a_session_is_its_default_and_its_ceiling() {
    let config = "[policy]\nmax = \"workspace-write\"\ndefault = \"read-only\"\n";
    let d = Daemon::start_with(config, &[]);
    let home = d.home();
    let sandbox = |more: serde_json::Value| {
        let mut call = json!({ "command": "ls", "session_key": "s" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.call("policy.check", call)
    };
    // Never wider than `policy.max`.
    for wide in [json!("full"), json!({ "mode": "full" }), json!({ "network": "full" }), json!("none")] {
        d.call("session.configure", json!({ "session_key": "s", "sandbox": wide })).expect_err("too wide, or unknown");
    }
    assert_eq!(d.ok("session.get", json!({ "session_key": "s" }))["configured"], false);
    assert_eq!(sandbox(json!({})).unwrap()["sandbox"]["profile"], "read-only");
    d.ok(
        "session.configure",
        json!({ "session_key": "s", "sandbox": "workspace-write", "cwd": home, "roots": ["/var/tmp"] }),
    );
    let checked = sandbox(json!({})).unwrap()["sandbox"].clone();
    assert_eq!((&checked["profile"], &checked["network"]), (&json!("workspace-write"), &json!("off")), "{checked}");
    let roots: Vec<String> = serde_json::from_value(checked["roots"].clone()).unwrap();
    assert!(roots.contains(&"/var/tmp".to_string()) && roots.contains(&home.display().to_string()), "{roots:?}");
    assert_eq!(sandbox(json!({ "sandbox": "read-only" })).unwrap()["sandbox"]["profile"], "read-only");
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": "read-only" }));
    let error = sandbox(json!({ "sandbox": "workspace-write" })).expect_err("wider than the session");
    assert_eq!(error["data"]["kind"], "denied", "{error}");
}
