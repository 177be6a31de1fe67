//! The toolset of Hermes: `process` with each action, `terminal`, `execute_code` and the tools for files.

use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn params(d: &Daemon, name: &str, args: Value) -> Value {
    json!({ "toolset": "hermes", "name": name, "args": args, "session_key": "s", "cwd": d.root() })
}

#[track_caller]
fn hermes(d: &Daemon, name: &str, args: Value) -> Value {
    d.ok("tools.call", params(d, name, args))["result"].clone()
}

#[track_caller]
fn act(d: &Daemon, action: &str, id: &str, more: Value) -> Value {
    let mut args = json!({ "action": action, "session_id": id });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hermes(d, "process", args)
}

/// Starts a command in the background.
#[track_caller]
fn background(d: &Daemon, command: &str) -> String {
    let started = hermes(d, "terminal", json!({ "command": command, "background": true }));
    let id = started["session_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    assert_eq!(
        started,
        json!({ "process": id, "session_id": id, "output": "Background process started", "exit_code": 0, "error": null })
    );
    id
}

/// Replaces what differs from run to run.
fn masked(mut result: Value) -> Value {
    for key in ["pid", "uptime_seconds", "started_at", "duration_seconds"] {
        if let Some(value) = result.get_mut(key) {
            *value = json!("*");
        }
    }
    result
}

#[test]
fn a_process_is_listed_polled_read_waited_for_and_killed() {
    let d = Daemon::start();
    let gate = d.gate("gate");
    let command = format!("for i in 1 2 3; do echo line $i; done; {}; exit 3", gate.wait());
    let id = background(&d, &command);
    d.printed(&id, "line 3");
    let output = "line 1\nline 2\nline 3\n";
    assert_eq!(
        masked(act(&d, "poll", &id, json!({}))),
        json!({ "session_id": id, "command": command, "status": "running", "pid": "*", "uptime_seconds": "*", "output_preview": output })
    );
    let listed = hermes(&d, "process", json!({ "action": "list" }));
    assert_eq!(
        listed["processes"].as_array().unwrap().iter().cloned().map(masked).collect::<Vec<_>>(),
        [
            json!({ "session_id": id, "command": command, "cwd": d.root(), "pid": "*", "started_at": "*", "uptime_seconds": "*",
            "status": "running", "output_preview": output })
        ]
    );
    assert_eq!(
        act(&d, "log", &id, json!({ "offset": 1, "limit": 1 })),
        json!({ "session_id": id, "status": "running", "output": "line 2\n", "total_lines": 3, "showing": "1 lines" })
    );
    assert_eq!(act(&d, "log", &id, json!({ "limit": 2 }))["output"], "line 2\nline 3\n");
    assert_eq!(
        act(&d, "wait", &id, json!({ "timeout": 1 })),
        json!({ "status": "timeout", "session_id": id, "output": output, "timeout_note": "Waited 1s, process still running" })
    );
    gate.open();
    assert_eq!(
        act(&d, "wait", &id, json!({ "timeout": 60 })),
        json!({ "status": "exited", "session_id": id, "output": output, "exit_code": 3 })
    );
    assert_eq!(
        act(&d, "kill", &id, json!({})),
        json!({ "status": "already_exited", "session_id": id, "exit_code": 3 })
    );
    let endless = background(&d, "exec sleep 1000");
    assert_eq!(
        act(&d, "kill", &endless, json!({})),
        json!({ "status": "killed", "session_id": endless, "exit_code": 143, "signal": "SIGTERM" })
    );
    let other = json!({ "toolset": "hermes", "name": "process", "args": { "action": "list" }, "session_key": "other" });
    assert_eq!(d.ok("tools.call", other)["result"], json!({ "processes": [] }), "a session sees its own");
}

#[test]
fn a_long_wait_is_clamped_and_stated() {
    let d = Daemon::start_with("max_wait_ms = 1000\n", &[]);
    let id = background(&d, "exec sleep 1000");
    let note = "Requested wait of 60s was clamped to configured limit of 1s. Waited 1s, process still running";
    assert_eq!(act(&d, "wait", &id, json!({ "timeout": 60 }))["timeout_note"], note);
}

#[test]
fn input_is_written_submitted_and_closed() {
    let d = Daemon::start();
    let started = d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe", "session_key": "s" }));
    let id = started["id"].as_str().unwrap();
    assert_eq!(act(&d, "write", id, json!({ "data": "a" })), json!({ "status": "ok", "bytes_written": 1 }));
    let mut call = params(&d, "process", json!({ "action": "submit", "session_id": id, "data": "b" }));
    call["request_id"] = json!("r");
    assert_eq!(d.ok("tools.call", call.clone())["result"], json!({ "status": "ok", "bytes_written": 2 }));
    assert_eq!(d.ok("tools.call", call)["result"], json!({ "status": "ok", "bytes_written": 2 }));
    assert_eq!(act(&d, "close", id, json!({})), json!({ "status": "ok", "message": "stdin closed" }));
    assert_eq!(
        act(&d, "wait", id, json!({})),
        json!({ "status": "exited", "session_id": id, "output": "ab\n", "exit_code": 0 })
    );
    let late = act(&d, "write", id, json!({ "data": "c" }));
    assert!(late["error"].as_str().unwrap().contains("exited"), "{late}");
}

#[test]
fn what_runs_in_the_background_can_be_written_to_and_foreground_commands_are_not_listed() {
    let d = Daemon::start();
    let id = background(&d, "read -r x; echo got $x");
    hermes(&d, "terminal", json!({ "command": "true" }));
    hermes(&d, "execute_code", json!({ "code": "print(1)" }));
    let listed = hermes(&d, "process", json!({ "action": "list" }));
    let ids: Vec<&Value> = listed["processes"].as_array().unwrap().iter().map(|one| &one["session_id"]).collect();
    assert_eq!(ids, [&json!(id)]);
    act(&d, "submit", &id, json!({ "data": "it" }));
    assert_eq!(act(&d, "wait", &id, json!({}))["output"], "got it\n");
}

#[test]
fn a_process_that_is_not_there_is_an_error_for_the_model() {
    let d = Daemon::start();
    for action in ["poll", "log", "wait", "kill", "write", "submit", "close"] {
        // A number is taken as a text.
        let result = hermes(&d, "process", json!({ "action": action, "session_id": 4242 }));
        assert_eq!(result, json!({ "error": "no process \"4242\"; `list` shows what there is" }), "{action}");
    }
}

#[test]
fn terminal_and_the_tools_for_files_have_their_results() {
    let d = Daemon::start();
    let done = hermes(&d, "terminal", json!({ "command": "echo hi; exit 4" }));
    assert_eq!(
        (&done["output"], &done["exit_code"], &done["error"], done.get("session_id")),
        (&json!("hi\n"), &json!(4), &Value::Null, None)
    );
    let late = hermes(&d, "terminal", json!({ "command": "sleep 1000", "timeout": 0.3 }));
    assert_eq!((&late["error"], &late["timed_out"]), (&json!("Command timed out"), &json!(true)), "{late}");
    let written = hermes(&d, "write_file", json!({ "path": "f", "content": "old\n" }));
    assert_eq!(written["bytes"], 4, "{written}");
    let patched = hermes(&d, "patch", json!({ "path": "f", "old_string": "old", "new_string": "new" }));
    assert_eq!(patched["status"], "applied", "{patched}");
    assert_eq!(hermes(&d, "read_file", json!({ "path": "f" }))["content"], "new\n");
    assert_eq!(hermes(&d, "search_files", json!({ "pattern": "new" }))["total"], 1);
    let missing = hermes(&d, "read_file", json!({ "path": "none" }));
    assert!(missing["error"].as_str().unwrap().contains("none"), "{missing}");
}

#[test]
fn code_is_run_as_a_script_once() {
    let mut d = Daemon::start();
    let code = "from toold_tools import terminal\nprint(terminal('echo x >> ran; cat ran')['output'].strip())";
    let mut call = params(&d, "execute_code", json!({ "code": code }));
    call["request_id"] = json!("r");
    let first = d.ok("tools.call", call.clone());
    assert_eq!(
        masked(first["result"].clone()),
        json!({ "status": "success", "output": "x\n", "tool_calls_made": 1, "duration_seconds": "*" })
    );
    d.kill9();
    d.spawn();
    assert_eq!(d.ok("tools.call", call), first);
    let failed = hermes(&d, "execute_code", json!({ "code": "print('out')\nraise ValueError('x')" }));
    assert_eq!((&failed["status"], &failed["error"]), (&json!("error"), &json!("ValueError: x")), "{failed}");
    let output = failed["output"].as_str().unwrap();
    assert!(output.starts_with("out\n--- stderr ---\n") && output.ends_with("ValueError: x\n"), "{failed}");
}

#[test]
fn a_script_goes_on_when_the_daemon_is_killed_and_the_same_call_gets_its_end() {
    let mut d = Daemon::start();
    let gate = d.gate("gate");
    let code = format!("open('ran', 'a').write('x')\nopen({:?}).readline()\nprint(open('ran').read())", gate.path);
    let mut call = params(&d, "execute_code", json!({ "code": code }));
    call["request_id"] = json!("r");
    let mut conn = d.conn();
    conn.request("tools.call", call.clone());
    let ran = d.root().join("ran");
    d.eventually("it runs", || ran.exists());
    d.kill9();
    d.spawn();
    gate.open();
    assert_eq!(
        masked(d.ok("tools.call", call)["result"].clone()),
        json!({ "status": "success", "output": "x\n", "tool_calls_made": 0, "duration_seconds": "*" })
    );
}
