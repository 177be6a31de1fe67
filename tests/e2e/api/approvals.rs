//! `approvals.*` and `exec` that asks: questions that wait for a person.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// The parameters of a script that a person must approve.
pub fn asking(script: &str, more: Value) -> Value {
    let mut params = json!({
        "argv": ["/bin/sh", "-c", script], "escalate": { "to": "full", "reason": "the test needs it" }
    });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// Starts a script that asks. Returns the process and its approval.
#[track_caller]
pub fn ask(d: &Daemon, script: &str, more: Value) -> (Value, Value) {
    let process = d.ok("exec", asking(script, more));
    assert_eq!(process["status"], "pending", "{process}");
    let approval = d.ok("approvals.get", json!({ "id": process["approval"] }));
    (process, approval)
}

pub fn decision(approval: &Value, decision: &str) -> Value {
    json!({ "id": approval["id"], "digest": approval["digest"], "decision": decision })
}

#[track_caller]
pub fn decide(d: &Daemon, approval: &Value, with: &str) -> Value {
    d.ok("approvals.decide", decision(approval, with))
}

/// The types of the events of a process.
pub fn events_of(d: &Daemon, process: &Value) -> Vec<String> {
    let all = d.ok("events.next", json!({ "consumer": "test", "id": process["id"], "limit": 100 }));
    all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
}

fn pending(d: &Daemon) -> Vec<Value> {
    d.ok("approvals.list", json!({}))["approvals"].as_array().unwrap().clone()
}

/// Checks that a process never ran because it was not approved.
#[track_caller]
fn check_denied(d: &Daemon, process: &Value) {
    let ended = d.exited(&id(process));
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("exited"), &json!("denied")), "{ended}");
    assert_eq!((&ended["exit_code"], &ended["pid"], &ended["signal"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(ended["pending_on"], Value::Null, "{ended}");
}

#[test]
fn a_process_waits_for_its_approval_and_runs_once_it_is_given() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "echo ran", json!({ "session_key": "s", "task_id": "t", "env": { "A": "1" } }));
    assert_eq!(process["pending_on"], json!({ "approval": approval["id"] }), "{process}");
    assert_eq!(
        (&process["pid"], &process["exit_code"], &process["closed"]),
        (&Value::Null, &Value::Null, &json!(false))
    );
    assert!(approval["id"].as_str().unwrap().starts_with("appr_"), "{approval}");
    assert_eq!(approval["id"].as_str().unwrap().len(), "appr_".len() + 12);
    for (key, value) in [
        ("state", json!("pending")),
        ("kind", json!("escalate")),
        ("process", process["id"].clone()),
        ("session_key", json!("s")),
        ("task_id", json!("t")),
        ("why", json!([{ "label": "caller", "text": "the test needs it" }])),
        ("decided_by", Value::Null),
        ("decision", Value::Null),
    ] {
        assert_eq!(approval[key], value, "{key}: {approval}");
    }
    let action = &approval["action"];
    assert_eq!(action["argv"], json!(["/bin/sh", "-c", "echo ran"]), "{action}");
    assert_eq!((&action["env_names"], &action["profile"]["to"]), (&json!(["A"]), &json!("full")), "{action}");
    assert_eq!(action["cwd"], process["cwd"], "{action}");
    let me = std::process::id();
    let program = procfs_exe(me);
    assert_eq!(approval["requested_by"]["pid"], me, "{approval}");
    assert_eq!(approval["requested_by"]["program"], program, "{approval}");
    assert_eq!(pending(&d), std::slice::from_ref(&approval));
    assert_eq!(d.ids(json!({ "status": "pending" })), [id(&process)]);
    let decided = decide(&d, &approval, "approve")["approval"].clone();
    assert_eq!((&decided["state"], &decided["decision"]), (&json!("approved"), &json!("approve")), "{decided}");
    assert_eq!(decided["scope"], "once", "{decided}");
    assert_eq!(decided["decided_by"]["program"], program, "{decided}");
    let ended = d.closed(&id(&process));
    assert_eq!((&ended["exit_code"], &ended["output"]), (&json!(0), &json!("ran\n")), "{ended}");
    assert_eq!(ended["approval"], approval["id"], "{ended}");
    assert_eq!(
        events_of(&d, &process),
        ["approval_requested", "approval_decided", "started", "exited", "closed"],
        "each once, in order"
    );
    let all = d.ok("events.next", json!({ "consumer": "more", "types": ["approval_decided"], "session_key": "s" }));
    let event = &all["events"][0];
    assert_eq!((&event["approval"], &event["state"]), (&approval["id"], &json!("approved")), "{event}");
    assert_eq!((&event["decided_by"]["pid"], &event["task_id"]), (&json!(me), &json!("t")), "{event}");
    assert_eq!(pending(&d), Vec::<Value>::new());
}

fn procfs_exe(pid: u32) -> String {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap().display().to_string()
}

#[test]
fn a_denied_process_never_runs_and_the_call_that_waited_gets_the_error() {
    let d = Daemon::start();
    let ran = d.root().join("ran");
    let mut conn = d.conn();
    let call = conn.request("exec", asking(&format!("touch {}", ran.display()), json!({ "yield_ms": 20000 })));
    d.eventually("it asks", || !pending(&d).is_empty());
    let approval = pending(&d).remove(0);
    let mut deny = decision(&approval, "deny");
    deny["message"] = json!("not today");
    d.ok("approvals.decide", deny);
    let error = conn.answer(call).expect_err("denied");
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32005), &json!("denied")), "{error}");
    assert_eq!((&error["data"]["reason"], &error["data"]["approval"]), (&json!("denied"), &approval["id"]), "{error}");
    assert!(error["message"].as_str().unwrap().contains("not today"), "{error}");
    let process = error["data"]["process"].clone();
    check_denied(&d, &process);
    assert_eq!(events_of(&d, &process), ["approval_requested", "approval_decided", "exited", "closed"]);
    assert!(!ran.exists());
    d.refused(-32005, "denied", "restart", json!({ "id": process["id"] }));
    assert!(!ran.exists());
}

#[test]
fn the_first_decision_wins_and_a_stale_digest_decides_nothing() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "true", json!({}));
    let mut stale = decision(&approval, "approve");
    stale["digest"] = json!("0".repeat(64));
    let error = d.refused(-32009, "conflict", "approvals.decide", stale);
    assert_eq!(error["data"]["digest"], approval["digest"], "{error}");
    for (bad, name) in [
        (json!({ "id": "appr_xyz", "digest": "", "decision": "approve" }), "id"),
        (json!({ "id": approval["id"], "digest": approval["digest"], "decision": "maybe" }), "decision"),
        (json!({ "id": approval["id"], "decision": "approve" }), "digest"),
    ] {
        d.refused_param(name, "approvals.decide", bad);
    }
    let mut session = decision(&approval, "approve");
    session["scope"] = json!("session");
    d.refused_param("scope", "approvals.decide", session);
    let mut terms = decision(&approval, "approve");
    terms["grant"] = json!({ "expires_ms": 5 });
    d.refused_param("grant", "approvals.decide", terms);
    let missing = json!({ "id": "appr_000000000000", "digest": "", "decision": "deny" });
    d.refused(-32001, "not_found", "approvals.decide", missing);
    assert_eq!(d.process(&id(&process))["status"], "pending");
    assert_eq!(pending(&d), std::slice::from_ref(&approval));
    // Many at once: one decides, and the others get who it was.
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = ["approve", "deny", "approve", "deny"]
            .iter()
            .map(|with| scope.spawn(|| d.call("approvals.decide", decision(&approval, with))))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    let state = outcomes.iter().flatten().next().unwrap()["approval"]["state"].clone();
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32009), &json!("already_decided")), "{error}");
        assert_eq!(
            (&error["data"]["state"], &error["data"]["decided_by"]["pid"]),
            (&state, &json!(std::process::id()))
        );
    }
    let ended = d.exited(&id(&process));
    assert_eq!(ended["reason"], if state == "approved" { "exited" } else { "denied" }, "{ended}");
}

#[test]
fn the_time_of_an_approval_is_counted_by_no_wait_and_no_timeout() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "echo ran; exec sleep 1000", json!({ "timeout_ms": 600_000 }));
    let mut conn = d.conn();
    let wait = conn.request("wait", json!({ "id": process["id"], "timeout_ms": 1 }));
    let mut yields = d.conn();
    let exec = yields.request("exec", asking("sleep 0.2", json!({ "yield_ms": 1, "ready": { "match": "x" } })));
    d.eventually("it asks", || pending(&d).len() == 2);
    // Far more than the times of both calls passes.
    d.run("sleep 0.3");
    conn.call("daemon.info", json!({})).unwrap();
    yields.call("daemon.info", json!({})).unwrap();
    assert!(!conn.has_early(wait) && !yields.has_early(exec), "the time of the approval was counted");
    // The time of another process is counted.
    let running = d.sh("exec sleep 1000");
    let both = d.ok("wait", json!({ "ids": [running, process["id"]], "timeout_ms": 1 }));
    assert_eq!(both["status"], "timeout", "{both}");
    for approval in pending(&d) {
        decide(&d, &approval, "approve");
    }
    let waited = conn.answer(wait).unwrap();
    assert_eq!(waited["status"], "timeout", "{waited}");
    assert_ne!(waited["processes"][0]["status"], "pending", "{waited}");
    let started = yields.answer(exec).unwrap();
    assert_ne!(started["status"], "pending", "{started}");
    d.printed(&id(&process), "ran");
    assert_eq!(approval["state"], "pending");
}

#[test]
fn the_same_request_gets_the_same_process_and_the_same_approval() {
    let mut d = Daemon::start();
    let call = || asking("echo ran", json!({ "request_id": "r" }));
    let first = d.ok("exec", call());
    for restarted in [false, true] {
        if restarted {
            d.restart();
        }
        let again = d.ok("exec", call());
        assert_eq!((&again["id"], &again["approval"]), (&first["id"], &first["approval"]), "{again}");
        assert_eq!((&again["existing"], &again["status"]), (&json!(true), &json!("pending")), "{again}");
        assert_eq!(pending(&d).len(), 1);
    }
    d.refused(-32009, "conflict", "exec", asking("echo other", json!({ "request_id": "r" })));
    assert_eq!(pending(&d).len(), 1, "a conflict asks nothing");
    decide(&d, &pending(&d).remove(0), "deny");
    let error = d.refused(-32005, "denied", "exec", call());
    assert_eq!(error["data"]["process"]["id"], first["id"], "{error}");
}

#[test]
fn a_kill_of_a_pending_process_withdraws_its_approval() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "true", json!({}));
    let killed = d.ok("kill", json!({ "id": process["id"] }));
    assert_eq!((&killed["status"], &killed["results"][0]["reason"]), (&json!("killed"), &json!("denied")), "{killed}");
    check_denied(&d, &process);
    let get = || d.ok("approvals.get", json!({ "id": approval["id"] }));
    // The broken code answered the kill first.
    assert_eq!(get()["state"], "withdrawn", "{}", get());
    assert_eq!(get()["decided_by"]["pid"], std::process::id(), "{}", get());
    let error = d.refused(-32009, "already_decided", "approvals.decide", decision(&approval, "approve"));
    assert_eq!(error["data"]["state"], "withdrawn", "{error}");
    let mut events = events_of(&d, &process);
    events.sort();
    assert_eq!(events, ["approval_decided", "approval_requested", "closed", "exited"]);
}

#[test]
fn the_end_of_a_session_withdraws_its_approvals_and_ends_its_grants() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "true", json!({ "session_key": "s" }));
    let (other, _) = ask(&d, "true", json!({ "session_key": "other" }));
    let (_, granted) = ask(&d, "echo granted", json!({ "session_key": "s" }));
    let mut session = decision(&granted, "approve");
    session["scope"] = json!("session");
    d.ok("approvals.decide", session);
    assert_eq!(d.ok("grants.list", json!({ "session_key": "s" }))["grants"].as_array().unwrap().len(), 1);
    d.ok("session.end", json!({ "session_key": "s" }));
    check_denied(&d, &process);
    assert_eq!(d.ok("approvals.get", json!({ "id": approval["id"] }))["state"], "withdrawn");
    assert_eq!(d.ok("grants.list", json!({}))["grants"], json!([]));
    assert_eq!(d.process(&id(&other))["status"], "pending", "another session's question waits on");
    let asks = d.ok("exec", asking("echo granted", json!({ "session_key": "s" })));
    assert_eq!(asks["status"], "pending", "its grant has ended: {asks}");
}

#[test]
fn an_abort_denies_and_withdraws_the_rest_of_the_task() {
    let d = Daemon::start();
    let (first, approval) = ask(&d, "true", json!({ "task_id": "t" }));
    let (second, withdrawn) = ask(&d, "true", json!({ "task_id": "t" }));
    let (other, _) = ask(&d, "true", json!({ "task_id": "u" }));
    let (without, _) = ask(&d, "true", json!({}));
    let result = decide(&d, &approval, "abort");
    assert_eq!(result["approval"]["state"], "aborted", "{result}");
    assert_eq!(result["withdrawn"], json!([withdrawn["id"]]), "{result}");
    check_denied(&d, &first);
    check_denied(&d, &second);
    for waits in [&other, &without] {
        assert_eq!(d.process(&id(waits))["status"], "pending");
    }
    let listed = d.ok("approvals.list", json!({ "state": "withdrawn", "task_id": "t" }));
    assert_eq!((&listed["total"], &listed["approvals"][0]["id"]), (&json!(1), &withdrawn["id"]), "{listed}");
}

#[test]
fn the_deadline_denies_and_differs_from_a_refusal() {
    let d = Daemon::start();
    let error =
        d.refused(-32005, "denied", "exec", asking("true", json!({ "approval_timeout_ms": 30, "yield_ms": 1 })));
    assert_eq!(error["data"]["reason"], "timeout", "{error}");
    check_denied(&d, &error["data"]["process"]);
    let approval = d.ok("approvals.get", json!({ "id": error["data"]["approval"] }));
    assert_eq!((&approval["state"], &approval["decided_by"]), (&json!("timeout"), &json!("timeout")), "{approval}");
    assert_eq!(approval["decision"], Value::Null, "{approval}");
    // Zero denies instead of asking.
    let before = d.ok("approvals.list", json!({ "state": "all" }))["total"].clone();
    let error = d.refused(-32005, "denied", "exec", asking("true", json!({ "approval_timeout_ms": 0 })));
    assert!(error["message"].as_str().unwrap().contains("approval_timeout_ms is 0"), "{error}");
    assert_eq!(d.ok("approvals.list", json!({ "state": "all" }))["total"], before);
    assert_eq!(d.ids(json!({})).len(), 1, "nothing was recorded");
}

#[test]
fn a_clock_that_jumps_approves_nothing() {
    let mut d = Daemon::prepare("", &[("TOOLD_HOOKS", "hooks")]);
    let clock = d.root().join("hooks/wall_offset_ms");
    fs::create_dir(d.root().join("hooks")).unwrap();
    d.spawn();
    let (process, approval) = ask(&d, "true", json!({}));
    fs::write(&clock, "660000").unwrap();
    let error = d.refused(-32009, "already_decided", "approvals.decide", decision(&approval, "approve"));
    assert_eq!(error["data"]["decided_by"], "timeout", "{error}");
    check_denied(&d, &process);
    fs::write(&clock, "0").unwrap();
    let (process, approval) = ask(&d, "true", json!({}));
    // Behind: it waits on in the next daemon, with the same deadline, and is decided by a person.
    fs::write(&clock, "-86400000").unwrap();
    d.restart();
    assert_eq!(d.process(&id(&process))["status"], "pending");
    assert_eq!(d.ok("approvals.get", json!({ "id": approval["id"] })), approval);
    // Ahead while no daemon runs: the deadline has passed.
    d.kill9();
    fs::write(&clock, "660000").unwrap();
    d.spawn();
    check_denied(&d, &process);
    assert_eq!(d.ok("approvals.get", json!({ "id": approval["id"] }))["state"], "timeout");
}

#[test]
fn a_question_survives_the_daemon_with_its_id_and_deadline() {
    let mut d = Daemon::start();
    let (process, approval) = ask(&d, "echo ran", json!({ "queue": "q", "notify": true }));
    for _ in 0..2 {
        d.restart();
        assert_eq!(pending(&d), std::slice::from_ref(&approval));
        let waits = d.process(&id(&process));
        assert_eq!(waits["pending_on"], json!({ "approval": approval["id"], "queue": "q" }), "{waits}");
    }
    decide(&d, &approval, "approve");
    assert_eq!(d.closed(&id(&process))["output"], "ran\n");
    let events = events_of(&d, &process);
    let expected = ["approval_requested", "approval_decided", "started", "exited", "closed", "completion"];
    assert_eq!(events.iter().filter(|kind| *kind == "approval_requested").count(), 1, "{events:?}");
    assert_eq!(events.len(), expected.len(), "{events:?}");
    d.restart();
    let after = d.ok("approvals.get", json!({ "id": approval["id"] }));
    assert_eq!(after["state"], "approved", "{after}");
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
}

#[test]
fn an_approved_process_whose_environment_is_lost_does_not_start() {
    let mut d = Daemon::start();
    let (with, first) = ask(&d, "echo $SECRET", json!({ "env": { "SECRET": "s" } }));
    let (without, second) = ask(&d, "echo ran", json!({}));
    d.restart();
    assert_eq!(d.process(&id(&with))["status"], "pending", "a person may still deny it");
    decide(&d, &first, "approve");
    decide(&d, &second, "approve");
    let ended = d.exited(&id(&with));
    assert_eq!((&ended["reason"], &ended["failure"]["error"]), (&json!("failed_start"), &json!("environment lost")));
    assert_eq!(d.closed(&id(&without))["output"], "ran\n");
}

#[test]
fn an_approved_process_of_a_queue_has_the_place_of_its_call() {
    let d = Daemon::start();
    let holder = d.sh_with("read -r x", json!({ "queue": "q", "stdin": "pipe" }));
    let ran = d.root().join("ran");
    let script = |n: u32| format!("echo {n} >> {}", ran.display());
    let (asks, approval) = ask(&d, &script(1), json!({ "queue": "q" }));
    let later = d.sh_with(&script(2), json!({ "queue": "q" }));
    decide(&d, &approval, "approve");
    assert_eq!(d.process(&id(&asks))["pending_on"], json!({ "queue": "q" }));
    d.ok("close", json!({ "id": holder["id"] }));
    d.closed(&id(&asks));
    d.closed(&id(&later));
    assert_eq!(fs::read_to_string(&ran).unwrap(), "1\n2\n");
}

#[test]
fn a_session_has_a_bounded_number_of_questions() {
    let d = Daemon::start_with("[policy]\nmax_pending = 2\n", &[]);
    for _ in 0..2 {
        ask(&d, "true", json!({ "session_key": "s" }));
    }
    let error = d.refused(-32004, "limit", "exec", asking("true", json!({ "session_key": "s" })));
    assert_eq!(error["data"]["limit"], "policy.max_pending", "{error}");
    assert_eq!(d.ids(json!({})).len(), 2, "nothing was recorded");
    ask(&d, "true", json!({ "session_key": "other" }));
    let listed = d.ok("approvals.list", json!({ "session_key": "s", "limit": 1 }));
    assert_eq!((&listed["total"], listed["approvals"].as_array().unwrap().len()), (&json!(2), 1), "{listed}");
    decide(&d, &listed["approvals"][0], "deny");
    ask(&d, "true", json!({ "session_key": "s" }));
}

#[test]
fn a_damaged_approval_is_set_aside_and_starts_nothing() {
    let mut d = Daemon::start();
    let (process, approval) = ask(&d, "echo ran", json!({}));
    let file = d.state().join("approvals").join(id(&approval));
    d.kill9();
    let mut bytes = fs::read(&file).unwrap();
    bytes[40] ^= 1;
    fs::write(&file, bytes).unwrap();
    d.spawn();
    let damaged = d.ok("daemon.info", json!({}))["damaged"].clone();
    assert!(damaged[0].as_str().unwrap().contains(&id(&approval)), "{damaged}");
    check_denied(&d, &process);
    d.refused(-32001, "not_found", "approvals.decide", decision(&approval, "approve"));
}

#[test]
fn bad_wishes_are_refused_by_name_and_record_nothing() {
    let d = Daemon::start_with("[policy]\nmax = \"workspace-write\"\ndefault = \"workspace-write\"\n", &[]);
    for (escalate, name) in [
        (json!({ "to": "unknown", "reason": "x" }), "escalate.to"),
        (json!({ "to": "full", "reason": "x" }), "escalate.to"),
        (json!({ "to": "read-only", "reason": " " }), "escalate.reason"),
        (json!({ "to": "full" }), "escalate.reason"),
    ] {
        d.refused_param(name, "exec", json!({ "argv": ["/bin/true"], "escalate": escalate }));
    }
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert_eq!(d.ok("approvals.list", json!({ "state": "all" }))["total"], 0);
}

#[test]
fn a_question_never_kills_the_running_process_of_its_name() {
    let d = Daemon::start();
    let running = d.sh_with("exec sleep 1000", json!({ "name": "n" }));
    let call = asking("true", json!({ "name": "n", "if_running": "restart" }));
    d.refused_param("if_running", "exec", call);
    assert_eq!(d.process(&id(&running))["status"], "running");
    assert_eq!(pending(&d), Vec::<Value>::new());
}
