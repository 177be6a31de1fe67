//! kill -9 of the daemon at every step of a call of a toolset: each effect happens once, and the same request gets the same text.

use crate::script::{CALL_POINTS, CallCase};
use serde_json::{Value, json};
use std::fs;

/// A call, and the file that shows whether it happened once.
struct Effect {
    toolset: &'static str,
    tool: &'static str,
    args: Value,
    file: (&'static str, &'static str),
    /// A part of the result.
    result: &'static str,
}

fn effects() -> Vec<Effect> {
    let patch = "*** Begin Patch\n*** Update File: patched\n@@\n-old\n+old new\n*** End Patch";
    let command = "echo x >> ran; echo done";
    let ran = ("ran", "x\n");
    let effect = |toolset, tool, args, file, result| Effect { toolset, tool, args, file, result };
    vec![
        effect("codex", "exec_command", json!({ "cmd": command }), ran, "Process exited with code 0"),
        effect("codex", "shell", json!({ "command": ["sh", "-c", command] }), ran, "Stdout:\\ndone\\n"),
        effect("codex", "apply_patch", json!({ "input": patch }), ("patched", "old new\n"), "M patched"),
        effect("hermes", "terminal", json!({ "command": command }), ran, "\"exit_code\":0"),
        effect("hermes", "execute_code", json!({ "code": "open('ran', 'a').write('x\\n')" }), ran, "success"),
    ]
}

fn check(case: &CallCase, call: &Value, effect: &Effect, what: &str) {
    let result = case.daemon.ok("tools.call", call.clone());
    assert!(result["result"].to_string().contains(effect.result), "{what}: {result}");
    assert_eq!(case.daemon.ok("tools.call", call.clone()), result, "{what}");
    let (name, expected) = effect.file;
    assert_eq!(fs::read_to_string(case.daemon.home().join(name)).unwrap(), expected, "{what}");
}

#[test]
fn a_call_of_a_toolset_happens_once_whichever_step_the_daemon_dies_in() {
    for effect in effects() {
        for point in CALL_POINTS {
            let what = format!("{} {} at {point}", effect.tool, effect.args);
            let mut case = CallCase::start();
            case.arm(point);
            let Effect { toolset, tool, args, .. } = &effect;
            let call =
                json!({ "toolset": toolset, "name": tool, "args": args, "cwd": case.daemon.home(), "request_id": "r" });
            case.daemon.conn().request("tools.call", call.clone());
            case.strike(point);
            check(&case, &call, &effect, &what);
        }
    }
}

#[test]
fn input_reaches_a_session_once_whichever_step_the_daemon_dies_in() {
    let terminal = json!({ "cmd": "while read -r x; do echo $x >> ran; [ $x = end ] && exit; done", "tty": true });
    let pipe = json!({ "cmd": "trap 'echo x >> ran; exit' INT; echo > ready; while :; do sleep 1000; done" });
    for (start, chars, expected) in [(terminal, "x\nend\n", "x\nend\n"), (pipe, "\u{3}", "x\n")] {
        for point in CALL_POINTS {
            let what = format!("{chars:?} at {point}");
            let mut case = CallCase::start();
            let call = |name: &str, mut args: Value, request: Option<&str>| {
                args["yield_time_ms"] = json!(if request.is_some() { 30000 } else { 250 });
                json!({ "toolset": "codex", "name": name, "args": args, "cwd": case.daemon.home(), "request_id": request })
            };
            let mut start = start.clone();
            (start["shell"], start["login"]) = (json!("/bin/sh"), json!(false));
            let started = case.daemon.ok("tools.call", call("exec_command", start.clone(), None));
            assert!(started["result"].as_str().unwrap().contains("session ID 1000\n"), "{what}: {started}");
            let ready = case.daemon.home().join("ready");
            case.daemon.eventually("it is ready", || start["tty"] == true || ready.exists());
            let write = call("write_stdin", json!({ "session_id": 1000, "chars": chars }), Some("w"));
            case.arm(point);
            case.daemon.conn().request("tools.call", write.clone());
            case.strike(point);
            let (toolset, tool, args, result) = ("codex", "write_stdin", Value::Null, "Process exited with code");
            check(&case, &write, &Effect { toolset, tool, args, file: ("ran", expected), result }, &what);
        }
    }
}
