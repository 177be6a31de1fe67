//! Tests of `kernel` against a fake daemon.

use crate::cli::test_run;
use crate::testing::{FakeDaemon, Reply, listed, process, started};
use serde_json::{Value, json};

const ID: &str = "proc_0123456789ab";

fn cell(changes: Value) -> Value {
    let mut document = json!({
        "id": ID, "status": "ok", "exit_code": null, "signal": null, "output": "", "stderr": "", "output_truncated": null,
        "calls": {"made": 0, "refused": 0, "failed": 0, "unknown": 0, "log": []}, "artifacts": [], "redacted": [],
        "hints": [], "duration_ms": 1, "log_path": "/l", "process": process(json!({})), "cell": 1, "from": 0, "to": 0
    });
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

#[test]
fn a_cell_is_asked_for_until_it_has_ended_and_prints_output_and_value() {
    let running = Reply::result(cell(json!({"status": "running"})));
    let done = Reply::result(cell(json!({"output": "hi\n", "stderr": "note\n", "value": "42"})));
    let fake = FakeDaemon::start(vec![vec![running, done]]);
    let line = "kernel run py --timeout 10s --max-calls 3 --if-busy error --request-id r -c";
    let args: Vec<&str> = line.split(' ').chain(["6 * 7"]).collect();
    assert_eq!(test_run(&fake, &args), (0, "hi\n42\n".into(), "note\n".into()));
    let asked = json!({"id": "py", "code": "6 * 7", "timeout_ms": 10000, "yield_ms": 600000, "max_calls": 3, "if_busy": "error",
        "request_id": "r"});
    assert_eq!(fake.requests(), [("kernel.run".to_owned(), asked.clone()), ("kernel.run".to_owned(), asked)]);
}

#[test]
fn a_cell_that_fails_is_code_1_and_its_error_is_printed_once() {
    let error = json!({"type": "NameError", "message": "no x", "line": 1, "traceback": ""});
    for (changes, printed) in [
        (json!({"status": "error", "error": error, "stderr": "NameError: no x\n"}), "NameError: no x\n"),
        (json!({"status": "error", "error": error}), "toolctl: NameError: no x\n"),
        (json!({"status": "interrupted", "duration_ms": 40}), "toolctl: the cell was interrupted after 40ms\n"),
    ] {
        let fake = FakeDaemon::start(vec![vec![Reply::result(cell(changes))]]);
        assert_eq!(test_run(&fake, &["kernel", "run", "py", "-c", "x"]), (1, String::new(), printed.into()));
    }
}

#[test]
fn every_other_subcommand_is_one_call() {
    let kernel = json!({"name": "py", "cwd": "/p", "kernel": {"cells": 2, "busy": true, "language": "python"}});
    let all = listed(&[kernel, json!({"id": "proc_00000000000a"})]);
    let table =
        format!("ID                 NAME  LANGUAGE  STATE  CELLS  DIRECTORY\n{ID}  py    python    busy       2  /p\n");
    for (line, method, reply, printed) in [
        ("kernel open --name py --idle 1m", "kernel.open", started(json!({})), format!("{ID}\n")),
        ("kernel list", "list", all.clone(), table.clone()),
        ("kernel", "list", all, table),
        (
            "kernel interrupt py",
            "kernel.interrupt",
            json!({"id": ID, "cell": 3, "state_kept": true}),
            format!("{ID} cell 3 interrupted, state kept\n"),
        ),
        (
            "kernel reset py",
            "kernel.reset",
            json!({"id": ID, "cell": 4, "interrupted": 3, "dropped": [5]}),
            format!("{ID} reset, cell 3 interrupted, 1 cell dropped\n"),
        ),
        ("kernel close py", "kernel.close", json!({"id": ID, "status": "killed"}), format!("{ID} closed\n")),
    ] {
        let fake = FakeDaemon::start(vec![vec![Reply::result(reply)]]);
        let args: Vec<&str> = line.split(' ').collect();
        assert_eq!(test_run(&fake, &args), (0, printed, String::new()), "{line}");
        let (asked, params) = fake.next_request();
        assert_eq!(asked, method, "{line}");
        if method == "kernel.open" {
            assert_eq!((&params["name"], &params["idle_ms"]), (&json!("py"), &json!(60000)), "{params}");
        }
    }
}

#[test]
fn at_last_is_the_newest_kernel_and_not_a_process_that_a_call_started() {
    let kernel = json!({"id": ID, "kernel": {"cells": 0, "busy": false, "language": "python"}});
    let all = Reply::result(listed(&[json!({"id": "proc_00000000000a"}), kernel]));
    let fake = FakeDaemon::start(vec![vec![all, Reply::result(json!({"id": ID, "status": "killed"}))]]);
    assert_eq!(test_run(&fake, &["kernel", "close", "@last"]).0, 0);
    assert_eq!(fake.requests()[1], ("kernel.close".into(), json!({"id": ID})));
}
