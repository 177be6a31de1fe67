//! `apply_patch <<'EOF' … EOF` given to `exec`: applied as a patch, kept as a process.

use super::patch_apply::Work;
use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

fn heredoc(operations: &str) -> String {
    format!("apply_patch <<'EOF'\n*** Begin Patch\n{operations}\n*** End Patch\nEOF\n")
}

fn exec(d: &Daemon, call: Value) -> Value {
    let process = id(&d.ok("exec", call));
    d.closed(&process)
}

#[test]
fn the_command_applies_the_patch_and_is_a_process_like_any_other() {
    let mut d = Daemon::start();
    let work = Work::new(&d);
    work.put("sub/f", "a\n");
    let command = format!("cd sub && {}", heredoc("*** Update File: f\n-a\n+b\n*** Add File: $HOME `x`\n+literal"));
    let call = json!({ "command": command, "cwd": work.dir, "request_id": "r", "notify": true, "session_key": "s" });
    let process = exec(&d, call.clone());
    assert_eq!(
        (&process["exit_code"], &process["reason"], &process["command"]),
        (&json!(0), &json!("exited"), &json!(command))
    );
    let patch = &process["patch"];
    assert_eq!((&patch["status"], &patch["files"][0]["path"]), (&json!("applied"), &json!("f")), "{patch}");
    assert!(patch["diff"].as_str().unwrap().contains("-a\n+b\n"));
    assert_eq!(work.text("sub/f"), "b\n");
    assert_eq!(work.text("sub/$HOME `x`"), "literal\n");
    let name = id(&process);
    let text = d.text(&name);
    assert!(text.contains("M f\n") && text.contains(patch["patch_id"].as_str().unwrap()), "{text}");
    let events = d.ok("events.next", json!({ "consumer": "c", "session_key": "s", "limit": 100 }));
    let kinds: Vec<&str> = events["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "patch_applied").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "completion").count(), 1, "{kinds:?}");
    // The same request: the same process, also after a restart, and nothing is applied again.
    d.restart();
    let again = d.ok("exec", call);
    assert_eq!((id(&again), &again["existing"], &again["patch"]), (name, &json!(true), patch));
    assert_eq!(work.text("sub/f"), "b\n");
    d.ok("patch.revert", json!({ "patch_id": patch["patch_id"] }));
    assert_eq!(work.text("sub/f"), "a\n");
}

#[test]
fn every_form_of_the_command_is_recognised() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let patch = |name: &str| format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch");
    let forms = [
        json!({ "command": format!("applypatch <<\"END\"\n{}\nEND", patch("1")) }),
        json!({ "argv": ["apply_patch", patch("2")] }),
        json!({ "argv": ["bash", "-lc", format!("apply_patch <<'EOF'\n{}\nEOF", patch("3"))] }),
        json!({ "argv": ["applypatch", patch("4")] }),
    ];
    for (at, mut form) in forms.into_iter().enumerate() {
        form["cwd"] = json!(work.dir);
        let process = exec(&d, form.clone());
        assert_eq!(
            (&process["exit_code"], &process["patch"]["status"]),
            (&json!(0), &json!("applied")),
            "{form}: {process}"
        );
        assert_eq!(work.text(&(at + 1).to_string()), "x\n");
    }
}

#[test]
fn a_patch_that_does_not_fit_is_a_process_that_fails_and_changes_nothing() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "one\n");
    let before = work.all();
    let call = json!({ "command": heredoc("*** Add File: g\n+g\n*** Update File: f\n-two\n+three"), "cwd": work.dir });
    let process = exec(&d, call);
    assert_eq!((&process["exit_code"], &process["reason"]), (&json!(1), &json!("exited")), "{process}");
    let patch = &process["patch"];
    assert_eq!((&patch["status"], &patch["patch_id"]), (&json!("failed"), &Value::Null), "{patch}");
    assert_eq!((&patch["failed"]["path"], &patch["failed"]["line"]), (&json!("f"), &json!(5)), "{patch}");
    assert!(d.text(&id(&process)).contains("the patch was not applied"), "{}", d.text(&id(&process)));
    assert_eq!(work.all(), before);
    let process = exec(&d, json!({ "command": "apply_patch <<'EOF'\nnonsense\nEOF", "cwd": work.dir }));
    assert_eq!((&process["exit_code"], &process["patch"]["failed"]["line"]), (&json!(1), &json!(1)), "{process}");
}

#[test]
fn a_patch_whose_process_cannot_be_is_not_applied_and_its_request_may_be_used_again() {
    let d = Daemon::start_with("max_running = 2\n", &[]);
    let work = Work::new(&d);
    work.put("f", "a\n");
    let before = work.all();
    let patch = heredoc("*** Update File: f\n-a\n+b\n*** Add File: new/g\n+g");
    let call = |more: Value| {
        let mut call = json!({ "command": patch, "cwd": work.dir, "request_id": "r" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let gate = d.gate("holder");
    let holder = id(&d.sh_with(&gate.wait(), json!({ "name": "web" })));
    // The patch was applied, and the answer was an error.
    d.refused(-32007, "already_exists", "exec", call(json!({ "name": "web" })));
    assert_eq!(work.all(), before);
    d.refused_param("if_running", "exec", call(json!({ "name": "web", "if_running": "return" })));
    let second = d.sh(&gate.wait());
    d.refused(-32004, "limit", "exec", call(json!({})));
    assert_eq!(work.all(), before);
    gate.open();
    gate.open();
    d.closed(&holder);
    d.closed(&second);
    let process = exec(&d, call(json!({ "name": "web" })));
    assert_eq!((&process["exit_code"], &process["patch"]["status"]), (&json!(0), &json!("applied")), "{process}");
    assert_eq!((work.text("f"), work.text("new/g")), ("b\n".into(), "g\n".into()));
}

#[test]
fn patches_of_one_name_at_once_are_applied_or_refused_and_never_half() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let count = 12;
    let answers: Vec<Result<Value, Value>> = std::thread::scope(|scope| {
        let call = |at: usize| {
            let command = heredoc(&format!("*** Add File: f{at}\n+{at}"));
            d.call("exec", json!({ "command": command, "cwd": work.dir, "name": "same" }))
        };
        let calls: Vec<_> = (0..count).map(|at| scope.spawn(move || call(at))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(answers.iter().any(Result::is_ok), "{answers:?}");
    for (at, answer) in answers.iter().enumerate() {
        let is_there = work.dir.join(format!("f{at}")).exists();
        match answer {
            Ok(process) => assert!(is_there && process["patch"]["status"] == "applied", "{process}"),
            Err(error) => assert!(!is_there && error["data"]["kind"] == "already_exists", "{error}"),
        }
    }
}

#[test]
fn a_bare_patch_is_an_error_that_shows_the_way_and_other_commands_are_not_touched() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let bare = "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch";
    for (param, call) in [("command", json!({ "command": bare })), ("argv", json!({ "argv": [bare] }))] {
        let error = d.refused(-32602, "invalid_params", "exec", call);
        assert_eq!(error["data"]["param"], param);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("patch.apply") && message.contains("apply_patch <<'EOF'"), "{message}");
    }
    let apply = heredoc("*** Add File: f\n+x");
    for (param, more) in [("command", json!({ "queue": "q" })), ("command", json!({ "restart": "always" }))] {
        let mut call = json!({ "command": apply, "cwd": work.dir });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.refused_param(param, "exec", call);
    }
    assert_eq!(work.all(), []);
    // Something after it: a shell runs it, and finds no such program.
    let call = json!({ "command": format!("{apply}echo after"), "cwd": work.dir, "shell": "/bin/sh", "login": false });
    let process = exec(&d, call);
    assert_eq!(process["patch"], Value::Null);
    assert!(d.text(&id(&process)).contains("after\n"));
    assert_eq!(work.all(), []);
}
