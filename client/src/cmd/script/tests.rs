//! Tests of `script` against a fake daemon.

use crate::cli::test_run;
use crate::testing::{FakeDaemon, Reply, page, process};
use serde_json::{Value, json};

const ID: &str = "proc_0123456789ab";

/// Returns the result of a script with `changes` on top.
fn result(changes: Value) -> Value {
    let mut document = json!({
        "id": ID, "status": "running", "exit_code": null, "signal": null, "output": "", "stderr": "",
        "output_truncated": null, "calls": {"made": 0, "refused": 0, "failed": 0, "unknown": 0, "log": []},
        "artifacts": [], "redacted": [], "hints": [], "duration_ms": 1500, "log_path": "/l", "process": process(json!({}))
    });
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

fn ended(code: i32) -> Value {
    json!({"status": "exited", "reason": "exited", "exit_code": code, "closed": true,
        "spans": [{"stream": "stdout", "from": 0, "to": 4, "at_ms": 0}, {"stream": "stderr", "from": 4, "to": 8, "at_ms": 0}]})
}

#[test]
fn a_script_is_followed_as_a_process_and_its_code_is_ours() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(result(json!({}))),
        Reply::result(page(0, b"out\nerr\n", ended(7))),
    ]]);
    let line = "script --lang bash --tool terminal --tool read_file --arg {\"n\":1} --cwd /tmp --env A=1 --env-mode replace --name n \
        --task t --session s --label k=v --timeout 0 --call-timeout 2s --max-calls 3 --max-parallel 2 --notify --sandbox ci --request-id r -c";
    let args: Vec<&str> = line.split_whitespace().chain(["echo hi"]).collect();
    assert_eq!(test_run(&fake, &args), (7, "out\n".into(), "err\n".into()));
    let expected = json!({
        "code": "echo hi", "language": "bash", "tools": ["terminal", "read_file"], "args": {"n": 1}, "cwd": "/tmp",
        "env": {"A": "1"}, "env_mode": "replace", "name": "n", "task_id": "t", "session_key": "s", "labels": {"k": "v"},
        "timeout_ms": 0, "call_timeout_ms": 2000, "max_calls": 3, "max_parallel": 2, "notify": true, "sandbox": "ci",
        "yield_ms": 0, "request_id": "r"
    });
    assert_eq!(fake.next_request(), ("script.run".into(), expected));
    let (method, poll) = fake.next_request();
    assert_eq!((method.as_str(), &poll["id"], &poll["cursor"]), ("poll", &json!(ID), &json!(0)));
}

#[test]
fn a_file_is_sent_by_its_path_and_no_tools_is_an_empty_list() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(result(json!({}))),
        Reply::result(page(0, b"", json!({"status": "exited", "reason": "exited", "exit_code": 0, "closed": true}))),
    ]]);
    assert_eq!(test_run(&fake, &["script", "--no-tools", "/a/b.py"]).0, 0);
    let (_, asked) = fake.next_request();
    assert_eq!((&asked["file"], &asked["tools"], &asked["language"]), (&json!("/a/b.py"), &json!([]), &Value::Null));
    assert!(asked["request_id"].as_str().is_some_and(|id| id.starts_with("toolctl-")), "{asked}");
    let fake = FakeDaemon::start(vec![]);
    assert_eq!(test_run(&fake, &["script"]).0, 2);
    assert_eq!(test_run(&fake, &["script", "a.py", "-c", "x"]).0, 2);
    assert_eq!(test_run(&fake, &["script", "-c", "x", "--arg", "text"]).0, 2);
}

#[test]
fn with_json_the_result_is_waited_for_and_printed_as_one_document() {
    let done = result(json!({"status": "error", "exit_code": 3, "process": process(ended(3))}));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(result(json!({}))),
        Reply::result(result(json!({}))),
        Reply::result(&done),
    ]]);
    let (code, out, err) = test_run(&fake, &["--json", "script", "-c", "x"]);
    assert_eq!((code, err.as_str()), (3, ""));
    assert_eq!(serde_json::from_str::<Value>(&out).ok(), Some(done));
    let asked: Vec<_> = fake.requests().into_iter().skip(1).collect();
    let expected = ("script.result".to_owned(), json!({"id": ID, "wait_ms": 600000}));
    assert_eq!(asked, [expected.clone(), expected]);
}

#[test]
fn calls_are_a_table_of_all_pages() {
    let call = |n: u32, changes: Value| {
        let mut call = json!({"call": format!("00c0ffee-{n}"), "tool": "terminal", "args": "{\"command\": \"ls\"}", "status": "ok",
            "at": "2026-11-16T03:00:00.000Z", "ended_at": null, "ms": 12, "bytes": 90});
        call.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        call
    };
    let last = json!({"status": "failed", "error": "denied", "ms": null});
    let first = json!({"id": ID, "calls": [call(1, json!({}))], "total": 2, "next": "00c0ffee-1"});
    let second = json!({"id": ID, "calls": [call(2, last)], "total": 2, "next": null});
    let fake = FakeDaemon::start(vec![vec![Reply::result(first), Reply::result(second)]]);
    let (code, out, err) = test_run(&fake, &["script", "calls", "s"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 3, "{out}");
    assert!(rows[1].starts_with("00c0ffee-1  terminal  ok ") && rows[1].ends_with("{\"command\": \"ls\"}"), "{out}");
    assert!(rows[2].contains("failed (denied)"), "{out}");
    assert_eq!(fake.next_request(), ("script.calls".into(), json!({"id": "s", "limit": 200})));
    assert_eq!(fake.next_request().1, json!({"id": "s", "limit": 200, "after": "00c0ffee-1"}));
}

#[test]
fn a_result_has_its_status_as_exit_code() {
    let counts = json!({"made": 2, "refused": 0, "failed": 0, "unknown": 1, "log": []});
    for (status, args, code) in [
        ("ok", &[][..], 0),
        ("running", &[], 0),
        ("running", &["--wait", "1s"], 124),
        ("timeout", &["--wait", "1s"], 1),
    ] {
        let document = result(
            json!({"status": status, "output": "hi", "value": {"n": 1}, "calls": counts, "hints": ["use gather"]}),
        );
        let fake = FakeDaemon::start(vec![vec![Reply::result(document)]]);
        let (got, out, _) = test_run(&fake, &[&["script", "result", "s"], args].concat());
        assert_eq!(got, code, "{status}");
        let expected = format!(
            "hi\nvalue   {{\"n\":1}}\nhint    use gather\n{ID} {status} after 1s, 2 calls, 1 of them may have happened\n"
        );
        assert_eq!(out, expected);
    }
}

#[test]
fn a_cancellation_names_what_it_ended() {
    let fake =
        FakeDaemon::start(vec![vec![Reply::result(json!({"id": ID, "status": "cancelled", "calls": ["a", "b"]}))]]);
    assert_eq!(test_run(&fake, &["script", "cancel", "s", "--call", "a"]).1, format!("{ID} cancelled with 2 calls\n"));
    assert_eq!(fake.next_request(), ("script.cancel".into(), json!({"id": "s", "call": "a"})));
}
