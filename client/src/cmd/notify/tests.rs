//! `notify` against a fake daemon.

use crate::cli::{Screen, test_run, test_run_on};
use crate::testing::{FakeDaemon, Reply, process};
use serde_json::{Value, json};

fn ended(id: &str, changes: Value) -> Value {
    let mut document = process(json!({"id": id, "status": "exited", "reason": "exited", "exit_code": 3, "name": "web",
        "bytes": 12, "lines": 2, "output": "one\ntwo\u{0}\n", "next_cursor": 12, "matched": null, "listener": null}));
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

fn answer(status: &str, processes: &[Value]) -> Reply {
    Reply::result(
        json!({"status": status, "processes": processes, "timeout_ms": 600000, "clamped": false, "note": null}),
    )
}

fn inspected(log: Value) -> Reply {
    Reply::result(process(json!({"tree": [], "usage": {"processes": 0, "cpu_ms": 0, "rss_bytes": 0}, "log_path": log,
        "state_path": "/s", "env_names": [], "shim_pid": null, "timeout_ms": null, "heartbeat_ms": null})))
}

#[test]
fn the_command_runs_once_for_each_process_with_the_facts_in_its_environment() {
    let (first, second) = ("proc_00000000000a", "proc_00000000000b");
    let killed = json!({"name": null, "exit_code": null, "signal": "SIGKILL", "reason": "lost", "status": "lost"});
    let fake = FakeDaemon::start(vec![vec![
        answer("exited", &[ended(first, json!({})), ended(second, killed)]),
        inspected(json!("/s/out.log")),
        Reply::error(json!({"code": -32001, "message": "gone", "data": {"kind": "not_found"}})),
    ]]);
    let file = fake.dir().join("facts").display().to_string();
    let command = format!("env -0 | grep -z ^TOOLD_ | sort -z >> {file}; printf 'end\\0' >> {file}");
    let (code, out, err) = test_run(&fake, &["notify", "web", "b", "--run", &command]);
    assert_eq!((code, err.as_str()), (3, ""));
    assert_eq!(out, format!("{first} (web) exited 3\n{second} lost\n"));
    let printed = std::fs::read_to_string(&file).expect("the command ran");
    let printed: Vec<&str> = printed.split_terminator('\0').collect();
    let first_facts = [
        "TOOLD_BYTES=12",
        "TOOLD_COMMAND=make test",
        "TOOLD_DURATION_MS=300000",
        "TOOLD_EXIT_CODE=3",
        "TOOLD_ID=proc_00000000000a",
        "TOOLD_LINES=2",
        "TOOLD_LOG=/s/out.log",
        "TOOLD_NAME=web",
        "TOOLD_OUTPUT=one\ntwo\u{fffd}\n",
        "TOOLD_REASON=exited",
        "TOOLD_SIGNAL=",
        "TOOLD_STATUS=exited",
        "end",
    ];
    assert_eq!(printed[..13], first_facts);
    let second_facts = [
        "TOOLD_EXIT_CODE=",
        "TOOLD_ID=proc_00000000000b",
        "TOOLD_LOG=",
        "TOOLD_NAME=",
        "TOOLD_SIGNAL=SIGKILL",
        "TOOLD_STATUS=lost",
    ];
    assert!(second_facts.iter().all(|fact| printed[13..].contains(fact)), "{printed:?}");
    let asked = fake.requests();
    assert_eq!(asked[0], ("wait".into(), json!({"ids": ["web", "b"], "mode": "all", "timeout_ms": 600000})));
    assert_eq!(asked[1], ("inspect".into(), json!({"id": first})));
}

#[test]
fn it_waits_on_without_a_limit_and_across_a_restart_and_then_rings() {
    let running = process(json!({"output": "", "next_cursor": 0, "matched": null, "listener": null}));
    let script = || {
        let (over, hang_up) = (answer("timeout", std::slice::from_ref(&running)), Reply::HangUp);
        vec![vec![over, hang_up], vec![answer("exited", &[ended("proc_00000000000a", json!({}))])]]
    };
    let fake = FakeDaemon::start(script());
    let (code, _, err) = test_run_on(Screen::Errors, &fake, &["notify", "web", "--bell"]);
    assert_eq!((code, err.as_str(), fake.requests().len()), (3, "\x07", 3));
    let (code, _, err) = test_run(&FakeDaemon::start(script()), &["notify", "web", "--bell"]);
    assert_eq!((code, err.as_str()), (3, ""), "a bell is for a terminal");
}

#[test]
fn any_notifies_only_of_ended_processes_and_a_failing_command_changes_no_code() {
    let running = process(json!({"output": "", "next_cursor": 0, "matched": null, "listener": null}));
    let fake = FakeDaemon::start(vec![vec![
        answer("exited", &[running, ended("proc_00000000000a", json!({"exit_code": 0}))]),
        inspected(Value::Null),
    ]]);
    let file = fake.dir().join("facts").display().to_string();
    let command = format!("echo $TOOLD_ID >> {file}; exit 9");
    let (code, _, err) = test_run(&fake, &["notify", "a", "b", "--any", "--run", &command]);
    assert_eq!((code, err.as_str()), (0, "toolctl: the command of --run ended with exit status: 9\n"));
    assert_eq!(std::fs::read_to_string(&file).expect("it ran"), "proc_00000000000a\n");
    assert_eq!(fake.next_request().1, json!({"ids": ["a", "b"], "timeout_ms": 600000}));
}

#[test]
fn a_time_limit_is_124_and_notifies_no_one() {
    let running = process(json!({"output": "", "next_cursor": 0, "matched": null, "listener": null}));
    let waits: Vec<Reply> = (0..50).map(|_| answer("timeout", std::slice::from_ref(&running))).collect();
    let fake = FakeDaemon::start(vec![waits]);
    let (code, _, err) = test_run(&fake, &["notify", "a", "--timeout", "1ms", "--run", "exit 1"]);
    assert_eq!((code, err.as_str()), (124, "toolctl: timed out after 1ms; the process keeps running\n"));
    assert!(fake.requests().iter().all(|(method, params)| method == "wait" && params["timeout_ms"] == 1));
}
