//! The policy `on-failure`: a command that failed because of its sandbox runs once more without it, if a person allows that.

use super::approvals::{decide, decision, events_of};
use serde_json::{Value, json};
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::{Gate, Pidfd};

/// A daemon with a session `s`, and directories that no private `/tmp` hides.
struct Rig {
    daemon: Daemon,
    base: tempfile::TempDir,
}

impl Deref for Rig {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

/// Starts a daemon whose session `s` has this policy, in `workspace-write`.
fn daemon(approval: &str, config: &str) -> Rig {
    let base = tempfile::Builder::new().prefix("toold-retry-").tempdir_in("/var/tmp").unwrap();
    let d = Rig { daemon: Daemon::start_with(config, &[]), base };
    fs::create_dir(work(&d)).unwrap();
    let session = json!({ "session_key": "s", "cwd": work(&d), "sandbox": "workspace-write", "approval": approval });
    d.ok("session.configure", session);
    d
}

fn work(d: &Rig) -> PathBuf {
    d.base.path().join("work")
}

fn outside(d: &Rig) -> PathBuf {
    d.base.path().join("outside")
}

/// Writes outside the root, and fails if it cannot.
fn writes(d: &Rig, more: Value) -> Value {
    let script = format!("echo try; echo \"${{MARK-none}}\" >> {} || exit 3", outside(d).display());
    let mut call = json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s", "yield_ms": 20000 });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn written(d: &Rig) -> String {
    fs::read_to_string(outside(d)).unwrap_or_default()
}

fn pending(d: &Daemon) -> Vec<Value> {
    d.ok("approvals.list", json!({}))["approvals"].as_array().unwrap().clone()
}

fn count(d: &Daemon) -> usize {
    d.ids(json!({})).len()
}

/// Runs the script that fails, and returns it with the question.
#[track_caller]
fn fail(d: &Rig, more: Value) -> (Value, Value) {
    let failed = d.ok("exec", writes(d, more));
    assert_eq!((&failed["status"], &failed["exit_code"]), (&json!("exited"), &json!(3)), "{failed}");
    assert!(failed["sandbox"]["denials"]["count"].as_u64().unwrap() > 0, "{failed}");
    let approval = failed["retry"]["approval"].clone();
    assert!(approval.is_string(), "the answer names the approval: {failed}");
    (failed, d.ok("approvals.get", json!({ "id": approval })))
}

#[test]
fn a_failure_by_the_sandbox_asks_and_runs_once_more_without_it() {
    let d = daemon("on-failure", "");
    let (failed, approval) = fail(&d, json!({ "env": { "MARK": "value" }, "task_id": "t", "name": "build" }));
    let action = &approval["action"];
    for (key, value) in [
        ("kind", json!("retry")),
        ("state", json!("pending")),
        ("process", failed["id"].clone()),
        ("retry", failed["retry"]["process"].clone()),
        ("session_key", json!("s")),
        ("task_id", json!("t")),
    ] {
        assert_eq!(approval[key], value, "{key}: {approval}");
    }
    assert_eq!((&action["retry_of"], &action["argv"]), (&failed["id"], &failed["argv"]), "{approval}");
    assert_eq!(action["profile"], json!({ "from": "workspace-write", "to": "full" }), "{approval}");
    assert_eq!(action["env_names"], json!(["MARK"]), "{approval}");
    assert_eq!(approval["requested_by"]["pid"], std::process::id(), "{approval}");
    let why = &approval["why"][0];
    assert_eq!(why["label"], "denials", "{approval}");
    assert!(why["text"].as_str().unwrap().contains(outside(&d).to_str().unwrap()), "{approval}");
    assert_eq!(written(&d), "", "nothing ran unasked");
    // `wait` and `poll` of the process that ended show it too, and do not wait for the answer.
    let waited = d.ok("wait", json!({ "id": failed["id"] }));
    assert_eq!(waited["processes"][0]["retry"], failed["retry"], "{waited}");
    let next = d.process(&id(&json!({ "id": failed["retry"]["process"] })));
    assert_eq!((&next["status"], &next["pending_on"]["approval"]), (&json!("pending"), &approval["id"]), "{next}");
    decide(&d, &approval, "approve");
    let again = d.closed(&id(&next));
    assert_eq!((&again["exit_code"], &again["retry_of"]), (&json!(0), &failed["id"]), "{again}");
    assert_eq!((&again["name"], &again["task_id"]), (&json!("build"), &json!("t")), "{again}");
    assert_eq!((&again["sandbox"]["kind"], &again["approval"]), (&json!("none"), &approval["id"]), "{again}");
    assert_eq!(written(&d), "value\n", "once, with the values of the first run");
    let events = events_of(&d, &next);
    assert_eq!(events, ["started", "exited", "closed"], "begin and end events again");
    let of_failed = events_of(&d, &failed);
    assert_eq!(of_failed.iter().filter(|kind| *kind == "approval_requested").count(), 1, "{of_failed:?}");
    assert_eq!(of_failed.iter().filter(|kind| *kind == "approval_decided").count(), 1, "{of_failed:?}");
    // Its shim kept the values, and goes when they are used.
    d.eventually("nothing is left of the first run", || {
        !d.ok("forget", json!({ "ids": [failed["id"]] }))["forgotten"].as_array().unwrap().is_empty()
    });
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
}

#[test]
fn only_a_failure_with_refused_calls_is_asked_about() {
    let d = daemon("on-failure", "");
    for (script, code) in [("exit 3".to_string(), 3), (format!("echo x > {}; exit 0", outside(&d).display()), 0)] {
        let call = json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s", "yield_ms": 20000 });
        let ended = d.ok("exec", call);
        assert_eq!((&ended["exit_code"], &ended["retry"]), (&json!(code), &Value::Null), "{ended}");
    }
    // A client that killed it does not want it again.
    let script = format!("echo x > {}; exec sleep 1000", outside(&d).display());
    let killed = d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s" }));
    d.eventually("it was refused", || d.process(&id(&killed))["sandbox"]["denials"]["count"] != json!(0));
    d.ok("kill", json!({ "id": killed["id"] }));
    assert_eq!(d.ok("wait", json!({ "id": killed["id"] }))["processes"][0]["retry"], Value::Null);
    // A call with a deadline of 0, one with a wider profile, and one with a restart policy ask nothing.
    let ended = d.ok("exec", writes(&d, json!({ "approval_timeout_ms": 0 })));
    assert_eq!((&ended["exit_code"], &ended["retry"]), (&json!(3), &Value::Null), "{ended}");
    assert_eq!(pending(&d), Vec::<Value>::new());
    assert_eq!(count(&d), 4);
    assert_eq!(written(&d), "");
}

#[test]
fn the_policy_never_asks_nothing_and_on_request_neither() {
    for approval in ["never", "on-request"] {
        let d = daemon(approval, "");
        let ended = d.ok("exec", writes(&d, json!({})));
        assert_eq!((&ended["exit_code"], &ended["retry"]), (&json!(3), &Value::Null), "{approval}: {ended}");
        assert_eq!((pending(&d), count(&d)), (Vec::new(), 1), "{approval}");
    }
}

#[test]
fn a_session_that_asks_no_more_is_not_asked_about_a_job_that_began_before() {
    let d = daemon("on-failure", "");
    let gate = Gate::new(&d.base.path().join("go"));
    let script = format!("{}; echo x >> {} || exit 3", gate.wait(), outside(&d).display());
    let running = d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s" }));
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": "workspace-write", "approval": "never" }));
    gate.open();
    let ended = d.ok("wait", json!({ "id": running["id"] }));
    assert_eq!(ended["processes"][0]["retry"], Value::Null, "{ended}");
    assert_eq!(pending(&d), Vec::<Value>::new());
}

#[test]
fn a_refused_late_or_withdrawn_retry_never_runs() {
    for how in ["deny", "timeout", "kill", "kill the retry", "forget", "session.end"] {
        let d = daemon("on-failure", "");
        let more = if how == "timeout" { json!({ "approval_timeout_ms": 300 }) } else { json!({}) };
        let (failed, approval) = fail(&d, more);
        let state = match how {
            "deny" => decide(&d, &approval, "deny")["approval"]["state"].clone(),
            "kill" => d.ok("kill", json!({ "id": failed["id"] }))["status"].clone(),
            "kill the retry" => d.ok("kill", json!({ "id": approval["retry"] }))["status"].clone(),
            "forget" => d.ok("forget", json!({ "ids": [failed["id"]] }))["forgotten"].clone(),
            "session.end" => d.ok("session.end", json!({ "session_key": "s" }))["session_key"].clone(),
            _ => Value::Null,
        };
        if how == "forget" {
            assert_eq!(state, json!([failed["id"]]), "{how}");
        }
        let expected = match how {
            "deny" => "denied",
            "timeout" => "timeout",
            _ => "withdrawn",
        };
        let get = || d.ok("approvals.get", json!({ "id": approval["id"] }));
        d.eventually(&format!("{how}: it is decided"), || get()["state"] == expected);
        let retry = d.exited(approval["retry"].as_str().unwrap());
        assert_eq!((&retry["reason"], &retry["exit_code"]), (&json!("denied"), &Value::Null), "{how}: {retry}");
        let decided = d.ok("events.next", json!({ "consumer": "c", "types": ["approval_decided"] }));
        assert_eq!(decided["events"].as_array().unwrap().len(), 1, "{how}: {decided}");
        assert_eq!(decided["events"][0]["state"], expected, "{how}: {decided}");
        assert_eq!(written(&d), "", "{how}");
        d.refused(-32009, "already_decided", "approvals.decide", decision(&approval, "approve"));
        assert_eq!(written(&d), "", "{how}");
    }
}

#[test]
fn a_retry_is_never_wider_than_the_ceiling_of_the_config() {
    let d = daemon("on-failure", "[policy]\nmax = \"workspace-write\"\ndefault = \"workspace-write\"\n");
    // It has the widest profile already: there is nothing to ask for.
    let ended = d.ok("exec", writes(&d, json!({})));
    assert_eq!((&ended["exit_code"], &ended["retry"]), (&json!(3), &Value::Null), "{ended}");
    // A narrower one is run again under the ceiling, and no wider.
    let script =
        format!("echo x > {0}/in || exit 4; echo x > {1} || exit 5", work(&d).display(), outside(&d).display());
    let narrow =
        json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s", "sandbox": "read-only", "yield_ms": 20000 });
    let failed = d.ok("exec", narrow);
    assert_eq!(failed["exit_code"], 4, "{failed}");
    let approval = d.ok("approvals.get", json!({ "id": failed["retry"]["approval"] }));
    assert_eq!(approval["action"]["profile"], json!({ "from": "read-only", "to": "workspace-write" }), "{approval}");
    decide(&d, &approval, "approve");
    let again = d.closed(approval["retry"].as_str().unwrap());
    assert_eq!((&again["exit_code"], &again["sandbox"]["profile"]), (&json!(5), &json!("workspace-write")), "{again}");
    assert_eq!(again["retry"], Value::Null, "it is asked once: {again}");
    assert_eq!((written(&d), pending(&d)), (String::new(), Vec::new()));
}

#[test]
fn a_grant_of_the_session_lets_the_same_command_run_again_without_a_question() {
    let d = daemon("on-failure", "");
    let (_, approval) = fail(&d, json!({}));
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    let grant = d.ok("approvals.decide", session)["grant"]["id"].clone();
    d.closed(approval["retry"].as_str().unwrap());
    assert_eq!(written(&d), "none\n");
    let failed = d.ok("exec", writes(&d, json!({})));
    assert_eq!((&failed["exit_code"], &failed["retry"]["approval"]), (&json!(3), &Value::Null), "{failed}");
    let again = d.closed(failed["retry"]["process"].as_str().unwrap());
    assert_eq!((&again["exit_code"], &again["retry_of"]), (&json!(0), &failed["id"]), "{again}");
    assert_eq!(written(&d), "none\nnone\n");
    let grants = d.ok("grants.list", json!({}));
    assert_eq!((&grants["grants"][0]["id"], &grants["grants"][0]["uses"]), (&grant, &json!(1)), "{grants}");
    assert_eq!(pending(&d), Vec::<Value>::new());
}

#[test]
fn values_that_are_lost_with_the_shim_are_a_failed_start() {
    let d = daemon("on-failure", "");
    let (failed, approval) = fail(&d, json!({ "env": { "MARK": "value" } }));
    let inspected = d.ok("inspect", json!({ "id": failed["id"] }));
    let shim = Pidfd::open(inspected["shim_pid"].as_i64().unwrap() as i32).expect("it keeps the values");
    shim.signal(libc::SIGKILL);
    d.eventually("its shim is gone", || d.ok("inspect", json!({ "id": failed["id"] }))["shim_pid"].is_null());
    decide(&d, &approval, "approve");
    let retry = d.exited(approval["retry"].as_str().unwrap());
    assert_eq!((&retry["reason"], &retry["failure"]["error"]), (&json!("failed_start"), &json!("environment lost")));
    assert_eq!(written(&d), "");
}

#[test]
fn toolctl_run_prints_the_question_and_why_shows_the_retry() {
    let d = daemon("on-failure", "");
    let script = format!("echo x >> {} || exit 3", outside(&d).display());
    let ran = d.ctl(&["run", "--session", "s", "--cwd", work(&d).to_str().unwrap(), "--", "/bin/sh", "-c", &script]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let approval = pending(&d).remove(0);
    let asks = format!("{} asks to run it again without it", approval["id"].as_str().unwrap());
    assert!(ran.stderr.contains(&asks), "{ran:?}");
    let why = d.ctl(&["why", approval["process"].as_str().unwrap()]).stdout;
    let retry = approval["retry"].as_str().unwrap();
    assert!(why.contains(&format!("Retry         {retry}, by {}\n", approval["id"].as_str().unwrap())), "{why}");
    assert_eq!(d.ctl(&["approve", approval["id"].as_str().unwrap()]).code, 0);
    d.closed(retry);
    let why = d.ctl(&["why", retry]).stdout;
    assert!(why.contains("Approved      ") && why.contains("Retry of      "), "{why}");
}
