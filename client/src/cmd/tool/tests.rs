//! Tests of `tool` against a fake daemon.

use crate::cli::test_run;
use crate::testing::{FakeDaemon, Reply};
use serde_json::{Value, json};

fn listed() -> Reply {
    let schema = json!({"type": "object", "properties": {
        "command": {"type": "string"}, "timeout": {"type": "integer"}, "check": {"type": "boolean"}}});
    Reply::result(json!({"tools": [{"name": "terminal", "input_schema": schema}]}))
}

fn answer(result: Value) -> Reply {
    Reply::result(json!({"result": result, "call": "c"}))
}

#[test]
fn a_command_prints_its_output_and_gives_its_exit_code() {
    for (result, code, printed) in [
        (json!({"output": "hi\n", "exit_code": 3, "timed_out": false, "process": "p"}), 3, "hi\n"),
        (json!({"output": "x", "exit_code": 143, "timed_out": true, "process": "p"}), 124, "x\n"),
        (json!({"process": "proc_0123456789ab"}), 0, "proc_0123456789ab\n"),
    ] {
        let fake = FakeDaemon::start(vec![vec![listed(), answer(result)]]);
        let args =
            ["tool", "terminal", "command=true", "timeout=5", "check=true", "--cwd", "/tmp", "--request-id", "r"];
        assert_eq!(test_run(&fake, &args), (code, printed.into(), String::new()));
        assert_eq!(fake.next_request(), ("tools.list".into(), json!({"detail": "full"})));
        let asked = json!({"name": "terminal", "args": {"command": "true", "timeout": 5, "check": true}, "cwd": "/tmp", "request_id": "r"});
        assert_eq!(fake.next_request(), ("tools.call".into(), asked));
    }
}

#[test]
fn any_other_result_is_json_or_text_and_types_are_not_asked_for_without_need() {
    let fake = FakeDaemon::start(vec![vec![answer(json!({"a": [true], "b": 1}))]]);
    let args = ["tool", "x.y", "--args", "{\"n\": 1, \"m\": 2}", "m:=[3]", "--session", "s", "--timeout", "2s"];
    let (code, out, err) = test_run(&fake, &args);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "{\n  \"a\": [\n    true\n  ],\n  \"b\": 1\n}\n", ""));
    let (method, asked) = fake.next_request();
    assert_eq!((method.as_str(), &asked["args"]), ("tools.call", &json!({"n": 1, "m": [3]})));
    assert_eq!((&asked["session_key"], &asked["timeout_ms"]), (&json!("s"), &json!(2000)));
    let fake = FakeDaemon::start(vec![vec![answer(json!("Exit code: 0"))]]);
    let args = ["tool", "shell", "command:=[\"ls\"]", "--toolset", "codex"];
    assert_eq!(test_run(&fake, &args).1, "Exit code: 0\n");
}

#[test]
fn json_is_the_result_of_the_method_and_a_refusal_is_code_5() {
    let fake = FakeDaemon::start(vec![vec![Reply::result("{\"result\":{\"exit_code\":2},  \"call\":\"c\"}")]]);
    let (code, out, _) = test_run(&fake, &["tool", "terminal", "--json"]);
    assert_eq!((code, out.as_str()), (2, "{\"result\":{\"exit_code\":2},  \"call\":\"c\"}\n"));
    let denied = json!({"code": -32005, "message": "no", "data": {"kind": "denied"}});
    let fake = FakeDaemon::start(vec![vec![Reply::error(denied)]]);
    assert_eq!(test_run(&fake, &["tool", "terminal"]), (5, String::new(), "toolctl: no\n".into()));
    assert_eq!(test_run(&fake, &["tool", "terminal", "--args", "[1]"]).0, 2);
}
