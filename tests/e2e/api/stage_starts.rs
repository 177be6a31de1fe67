//! `stage` of processes that start later or again: from a queue, by a restart, by a policy.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

fn project(d: &Daemon) -> PathBuf {
    let dir = d.root().join("project");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a"), "one\n").unwrap();
    dir
}

fn ready(d: &Daemon, proc: &str) {
    d.eventually("the stage is ready", || d.process(proc)["stage"]["state"] == "ready");
}

/// Commits all that a process changed.
fn commit(d: &Daemon, proc: &str) -> Value {
    ready(d, proc);
    let digest = d.ok("stage.diff", json!({ "id": proc }))["digest"].clone();
    d.ok("stage.commit", json!({ "id": proc, "digest": digest }))
}

#[test]
fn a_staged_process_that_waits_in_a_queue_gets_its_stage_when_it_starts() {
    let mut d = Daemon::start();
    let project = project(&d);
    let holder = id(&d.sh_with("read -r x", json!({ "queue": "q", "stdin": "pipe" })));
    let call = json!({ "argv": ["sh", "-c", "cat a; echo two >> a"], "cwd": project, "stage": true, "queue": "q" });
    let waits = d.ok("exec", call);
    assert_eq!(waits["status"], "pending", "{waits}");
    let proc = id(&waits);
    d.refused(-32009, "conflict", "stage.discard", json!({ "id": proc }));
    // It is staged also if another daemon starts it.
    d.kill9();
    d.spawn();
    // The files below are those of its start, not of the call.
    fs::write(project.join("a"), "changed\n").unwrap();
    d.ok("close", json!({ "id": holder }));
    d.closed(&proc);
    assert_eq!(d.text(&proc), "changed\n");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "changed\n");
    let done = commit(&d, &proc);
    assert_eq!((&done["state"], &done["total"]), (&json!("committed"), &json!(1)), "{done}");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "changed\ntwo\n");
}

#[test]
fn a_restarted_process_has_a_stage_of_its_own() {
    let d = Daemon::start();
    let project = project(&d);
    for sandbox in [Value::Null, json!("workspace-write")] {
        let argv = json!(["sh", "-c", "echo $$ >> a; wc -l < a"]);
        let first =
            id(&d.ok("exec", json!({ "argv": argv, "cwd": project, "stage": true, "sandbox": sandbox, "name": "n" })));
        ready(&d, &first);
        let second = id(&d.ok("restart", json!({ "id": first })));
        assert_ne!(first, second);
        d.closed(&second);
        ready(&d, &second);
        assert_eq!((d.text(&first).trim(), d.text(&second).trim()), ("2", "2"), "each began with the files below");
        assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "one\n");
        assert_eq!(d.ok("stage.diff", json!({ "id": first }))["total"], 1, "the first one's changes stay");
        commit(&d, &second);
        assert_eq!(fs::read_to_string(project.join("a")).unwrap().lines().count(), 2);
        let digest = d.ok("stage.diff", json!({ "id": first }))["digest"].clone();
        let below = d.refused(-32009, "conflict", "stage.commit", json!({ "id": first, "digest": digest }));
        assert_eq!(below["data"]["reason"], "changed_below", "{below}");
        d.ok("stage.discard", json!({ "id": first }));
        fs::write(project.join("a"), "one\n").unwrap();
    }
}

#[test]
fn a_staged_process_that_a_policy_starts_again_begins_with_the_files_below() {
    let d = Daemon::start();
    let project = project(&d);
    let call = json!({ "argv": ["sh", "-c", "echo run >> a; wc -l < a; exit 3"], "cwd": project, "stage": true,
        "restart": { "policy": "on-failure", "max": 2, "backoff_ms": 1 }, "name": "again" });
    d.ok("exec", call);
    d.eventually("it was started again twice", || {
        let all = d.ids(json!({ "name": "again" }));
        all.len() == 3 && all.iter().all(|proc| d.process(proc)["stage"]["state"] == "ready")
    });
    for proc in d.ids(json!({ "name": "again" })) {
        assert_eq!(d.text(&proc).trim(), "2");
        assert_eq!(d.ok("stage.diff", json!({ "id": proc }))["total"], 1);
    }
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "one\n");
}
