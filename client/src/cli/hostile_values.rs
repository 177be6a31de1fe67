//! No view lets a control character of a value through to a terminal, and no value makes a line of its own.

use super::{Screen, test_run_on};
use crate::testing::{FakeDaemon, Reply, info, listed, process, started};
use serde_json::{Value, json};

/// A value that clears the screen, sets a title, reverses text, and adds a line that looks like ours.
const HOSTILE: &str = "x\x1b[2J\x1b]0;t\x07\u{9b}31m\u{202e}\x7f\rFORGED\nFORGED";

/// Every string of a document in turn replaced by the hostile one, and each key of a map of the user's.
fn variants(document: &Value) -> Vec<Value> {
    let mut paths = Vec::new();
    strings(document, String::new(), &mut paths);
    let change = |path: &String| {
        let mut changed = document.clone();
        *changed.pointer_mut(path).expect("a path of this document") = json!(HOSTILE);
        changed
    };
    paths.iter().map(change).collect()
}

fn strings(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        // Output has lines of its own; its control characters are tested with the sanitizer.
        Value::String(_) if path == "/output" => {}
        Value::String(_) => found.push(path),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| strings(item, format!("{path}/{n}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, item)| strings(item, format!("{path}/{}", key.replace('/', "~1")), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[track_caller]
fn check(args: &[&str], reply: impl Fn() -> Vec<Reply>, what: &Value) {
    for more in [&[][..], &["--json"]] {
        let fake = FakeDaemon::start((0..4).map(|_| reply()).collect());
        let args = [args, more].concat();
        let (_, out, err) = test_run_on(Screen::Both, &fake, &args);
        for text in [&out, &err] {
            let acts = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}');
            assert!(!text.contains(acts), "{args:?}: {what}\n{text:?}");
            // The continuation of a long value is indented.
            assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{args:?}: {what}\n{text}");
        }
    }
}

/// A process with something in every field.
fn full_process() -> Value {
    process(json!({"name": "web", "signal": "SIGTERM", "reason": "killed", "killed_by": "uid 0", "status": "exited",
        "exited_at": "2026-11-16T03:01:00.000Z", "exit_code": null, "task_id": "t", "session_key": "s",
        "failure": {"step": "exec", "path": "/p", "error": "no", "errno": 2},
        "labels": {"k\x1b[2J\nFORGED": "v"}, "request_id": "r", "limits": {}}))
}

#[test]
fn every_view_of_a_result_shows_hostile_values_as_text() {
    let mut inspected = full_process();
    let more = json!({"tree": [], "usage": {"processes": 0, "cpu_ms": 0, "rss_bytes": 0}, "log_path": "/l",
        "state_path": "/s", "env_names": ["PATH"], "shim_pid": null, "timeout_ms": null});
    inspected.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let mut run = started(json!({}));
    let waited = json!({"status": "exited", "processes": [full_process()]});
    let killed = json!({"results": [{"id": "proc_0123456789ab", "status": "killed", "signals": ["SIGTERM"],
        "survivors": [], "exit_code": null, "signal": "SIGTERM"}]});
    run["ready"] = json!(null);
    let mut list = listed(&[full_process()]);
    list["processes"][0]["preview"] = json!("last line");
    for (args, result) in [
        (&["list", "--all"][..], list),
        (&["inspect", "web"], inspected),
        (&["info"], info(1, 9)),
        (&["wait", "web"], waited),
        (&["kill", "web"], killed),
        (&["exec", "--", "true"], run),
    ] {
        for changed in variants(&result) {
            check(args, || vec![Reply::result(&changed), Reply::result(&changed)], &changed);
        }
    }
}

#[test]
fn every_error_of_the_daemon_shows_hostile_values_as_text() {
    let kinds = ["not_found", "spawn_failed", "already_exists", "limit", "invalid_params", "stdin_unavailable", "x"];
    for kind in kinds {
        let error = json!({"code": -32006, "message": "m", "data": {"kind": kind, "id": "i", "param": "labels.k",
            "problem": "p", "reason": "r", "path": "/p", "error": "e", "step": "exec", "process": process(json!({"name": "n"}))}});
        for changed in variants(&error) {
            for args in [&["exec", "--", "true"][..], &["run", "--", "true"], &["close", "x"], &["log", "x"], &["list"]]
            {
                check(args, || vec![Reply::error(&changed)], &changed);
            }
        }
    }
}

#[test]
fn an_argument_and_a_broken_answer_are_shown_as_text() {
    for args in [&["poll", HOSTILE][..], &[HOSTILE], &["list", HOSTILE], &["exec", "--cwd", HOSTILE, "--", HOSTILE]] {
        check(
            args,
            || {
                vec![Reply::error(
                    json!({"code": -32001, "message": HOSTILE, "data": {"kind": "not_found", "id": HOSTILE}}),
                )]
            },
            &Value::Null,
        );
    }
    check(&["list"], || vec![Reply::Line(format!("{HOSTILE}\n"))], &Value::Null);
    check(&["list"], || vec![Reply::result(json!({"processes": HOSTILE}))], &Value::Null);
}
