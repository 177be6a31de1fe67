//! `fields` and `view`: results with only the fields that a call selects.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

const SHORT: [&str; 7] = ["cursor", "exit_code", "id", "name", "output", "reason", "status"];

/// Returns the calls whose result has a process, with their parameters for this one. `list` shows no other.
fn calls(proc: &str) -> [(&'static str, Value); 5] {
    [
        ("exec", json!({ "argv": ["echo", "again"], "yield_ms": 60_000 })),
        ("poll", json!({ "id": proc, "cursor": 0 })),
        ("wait", json!({ "id": proc })),
        ("list", json!({ "name": "shown" })),
        ("inspect", json!({ "id": proc })),
    ]
}

/// Returns the process of a result: the result itself, or the first of its list.
fn process(result: &Value) -> &Value {
    result.get("processes").map_or(result, |list| &list[0])
}

fn names(process: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = process.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn with(params: &Value, more: Value) -> Value {
    let mut params = params.clone();
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn finished(d: &Daemon) -> String {
    let proc = d.ok("exec", json!({ "command": "echo hello; exit 3", "name": "shown", "yield_ms": 60_000 }));
    d.closed(&id(&proc));
    id(&proc)
}

#[test]
fn fields_are_exactly_those_and_have_the_values_of_the_whole_result() {
    let d = Daemon::start();
    let proc = finished(&d);
    for (method, params) in calls(&proc) {
        let fields = ["id", "exit_code", "bytes"];
        let whole = d.ok(method, params.clone());
        let part = d.ok(method, with(&params, json!({ "fields": fields })));
        assert_eq!(names(process(&part)), ["bytes", "exit_code", "id"], "{method}");
        assert_eq!(process(&part)["exit_code"], process(&whole)["exit_code"], "{method}");
        assert_eq!(process(&part)["bytes"], process(&whole)["bytes"], "{method}");
        // Each field alone, also one that is left out of the whole result when it has no value.
        for name in names(process(&whole)).into_iter().filter(|_| method != "exec") {
            let one = d.ok(method, with(&params, json!({ "fields": [name] })));
            assert_eq!(names(process(&one)), [name], "{method}");
        }
    }
    let spans = d.ok("poll", json!({ "id": proc, "fields": ["spans"] }));
    assert_eq!(spans, json!({ "spans": null }));
}

#[test]
fn the_short_view_has_the_same_seven_fields_everywhere() {
    let d = Daemon::start();
    let proc = finished(&d);
    for (method, params) in calls(&proc) {
        let result = d.ok(method, with(&params, json!({ "view": "short" })));
        let short = process(&result);
        assert_eq!(names(short), SHORT, "{method}");
        if method != "exec" {
            let expected = json!({ "id": proc, "name": "shown", "status": "exited", "exit_code": 3, "reason": "exited",
                "cursor": 6, "output": "hello\n" });
            assert_eq!(*short, expected, "{method}");
        }
        let full = d.ok(method, with(&params, json!({ "view": "full" })));
        assert!(process(&full)["argv"].is_array(), "{method}");
    }
}

#[test]
fn pause_and_resume_select_fields_too() {
    let d = Daemon::start();
    let proc = d.sh("echo up; exec sleep 1000");
    d.ok("wait", json!({ "id": proc, "until": { "match": "up" } }));
    for (method, stopped) in [("pause", true), ("resume", false)] {
        assert_eq!(d.ok(method, json!({ "id": proc, "fields": ["stopped"] })), json!({ "stopped": stopped }));
        let short = d.ok(method, json!({ "id": proc, "view": "short" }));
        assert_eq!((names(&short), &short["output"]), (SHORT.to_vec(), &json!("up\n")));
        assert!(d.call(method, json!({ "id": proc, "fields": ["x"] })).is_err());
    }
}

#[test]
fn the_facts_beside_the_processes_stay() {
    let d = Daemon::start();
    let proc = finished(&d);
    let waited = d.ok("wait", json!({ "id": proc, "timeout_ms": 1000, "fields": ["exit_code"] }));
    let expected = json!({ "status": "exited", "processes": [{ "exit_code": 3 }], "timeout_ms": 1000, "clamped": false, "note": null });
    assert_eq!(waited, expected);
    let listed = d.ok("list", json!({ "fields": ["name"], "limit": 1 }));
    assert_eq!(listed, json!({ "processes": [{ "name": "shown" }], "total": 1 }));
    d.sh("exec sleep 1000");
    let used = d.ok("list", json!({ "fields": ["usage"], "status": "running" }));
    assert_eq!(used["processes"][0]["usage"]["processes"], 1, "a field that is selected is made: {used}");
}

#[test]
fn a_wrong_selection_is_refused_and_changes_nothing() {
    let d = Daemon::start();
    let proc = finished(&d);
    for (method, params) in calls(&proc) {
        for (wrong, param) in [
            (json!({ "fields": ["id", "exitcode"] }), "fields"),
            (json!({ "fields": [] }), "fields"),
            (json!({ "fields": "id" }), "fields"),
            (json!({ "fields": ["id"], "view": "short" }), "view"),
            (json!({ "view": "shorter" }), "view"),
        ] {
            let error = d.call(method, with(&params, wrong.clone())).expect_err("refused");
            assert_eq!((&error["code"], &error["data"]["param"]), (&json!(-32602), &json!(param)), "{method} {wrong}");
        }
        let error = d.call(method, with(&params, json!({ "fields": ["exitcode"] }))).expect_err("refused");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("\"exitcode\"") && message.contains("exit_code"), "{message}");
    }
    assert!(d.call("list", json!({ "fields": ["next_cursor"] })).is_err(), "a field of another method");
    assert!(d.call("kill", json!({ "id": proc, "fields": ["id"] })).is_err(), "its result has no process");
    assert_eq!(d.ok("list", json!({}))["total"], 1, "no refused exec started anything");
}

#[test]
fn the_command_line_selects_fields_and_keeps_its_exit_codes() {
    let d = Daemon::start();
    let proc = finished(&d);
    let json = |args: &[&str], code: i32| -> Value {
        let output = d.ctl(args);
        assert_eq!((output.code, output.stderr.as_str()), (code, ""), "{args:?}");
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", output.stdout))
    };
    assert_eq!(names(&json(&["poll", "shown", "--short"], 0)), SHORT);
    assert_eq!(json(&["poll", "shown", "--fields", "id,exit_code"], 0), json!({ "id": proc, "exit_code": 3 }));
    assert_eq!(json(&["inspect", "shown", "--fields", "log_path,id"], 0)["id"], proc);
    assert_eq!(json(&["wait", "shown", "--fields", "name"], 3)["processes"], json!([{ "name": "shown" }]));
    assert_eq!(names(&json(&["list", "--short"], 0)["processes"][0]), SHORT);
    assert_eq!(names(&json(&["exec", "--short", "--yield", "1m", "--", "true"], 0)), SHORT);
    let wrong = d.ctl(&["poll", "shown", "--fields", "exitcode"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("exitcode"), "{wrong:?}");
}
