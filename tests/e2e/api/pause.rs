//! `pause` and `resume`: the whole tree stops and continues, and a stopped process is never shown as merely running.

use serde_json::{Value, json};
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, id};

/// A tree of three: the program, a child, and a grandchild in a session of its own. Each counts in a file.
fn tree(d: &Daemon) -> (String, Vec<i32>) {
    let count = |who: &str| format!("while :; do echo x >> {}/{who}; sleep 0.01; done", d.root().display());
    let script = format!(
        "setsid sh -c 'echo pid $$; {}' & sh -c 'echo pid $$; {}' & echo pid $$; {}",
        count("outsider"),
        count("member"),
        count("leader")
    );
    let proc = d.sh(&script);
    d.eventually("all three run", || d.text(&proc).matches("pid ").count() == 3);
    let text = d.text(&proc);
    (proc, text.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect())
}

fn lengths(d: &Daemon) -> Vec<u64> {
    let len = |who: &&str| std::fs::metadata(d.root().join(who)).map_or(0, |file| file.len());
    ["leader", "member", "outsider"].iter().map(len).collect()
}

fn stopped(d: &Daemon, proc: &str) -> (Value, Value) {
    let p = d.process(proc);
    (p["status"].clone(), p["stopped"].clone())
}

#[test]
fn a_pause_stops_every_process_of_the_tree_and_a_resume_continues_them() {
    let d = Daemon::start();
    let (proc, pids) = tree(&d);
    assert_eq!(stopped(&d, &proc), (json!("running"), json!(false)));
    let paused = d.ok("pause", json!({ "id": proc }));
    assert_eq!((&paused["id"], &paused["status"], &paused["stopped"]), (&json!(proc), &json!("running"), &json!(true)));
    for pid in &pids {
        assert_eq!(procfs::state(*pid), 'T', "{pid} of {pids:?}");
    }
    let before = lengths(&d);
    // It is shown in every way to look at it.
    for (method, params) in
        [("poll", json!({ "id": proc })), ("inspect", json!({ "id": proc })), ("pause", json!({ "id": proc }))]
    {
        let answer = d.ok(method, params);
        assert_eq!(answer["stopped"], true, "{method}: {answer}");
    }
    let waited = d.ok("wait", json!({ "id": proc, "timeout_ms": 1 }));
    assert_eq!((&waited["status"], &waited["processes"][0]["stopped"]), (&json!("timeout"), &json!(true)));
    let listed = |filter: Value| d.ok("list", filter)["processes"].as_array().unwrap().clone();
    for filter in [json!({ "status": "running" }), json!({ "stopped": true })] {
        assert!(listed(filter.clone()).iter().any(|p| p["id"] == proc && p["stopped"] == true), "{filter}");
    }
    assert!(listed(json!({ "stopped": false })).iter().all(|p| p["id"] != proc));
    assert_eq!(lengths(&d), before, "a stopped process does nothing");

    let resumed = d.ok("resume", json!({ "id": proc }));
    assert_eq!((&resumed["id"], &resumed["stopped"]), (&json!(proc), &json!(false)));
    d.eventually("all of them go on", || lengths(&d).iter().zip(&before).all(|(now, then)| now > then));
    assert_eq!(stopped(&d, &proc), (json!("running"), json!(false)));
    // Nothing to continue: nothing changes.
    assert_eq!(d.ok("resume", json!({ "id": proc }))["stopped"], false);
}

/// The broken code called a stopped process `running` and nothing else (D14).
#[test]
fn a_program_that_stops_itself_or_is_stopped_by_anybody_is_stopped() {
    let d = Daemon::start();
    let itself = d.sh("kill -STOP $$; echo continues; exec sleep 1000");
    d.eventually("it is stopped", || d.process(&itself)["stopped"] == true);
    d.ok("resume", json!({ "id": itself }));
    d.printed(&itself, "continues");
    assert_eq!(stopped(&d, &itself), (json!("running"), json!(false)));

    let other = d.sh("exec sleep 1000");
    let pid = d.process(&other)["pid"].to_string();
    let signal = |signal: &str| assert!(d.tool("kill", &[signal, &pid]).status().unwrap().success());
    signal("-STOP");
    d.eventually("it is stopped from outside", || d.process(&other)["stopped"] == true);
    signal("-CONT");
    d.eventually("it continues", || d.process(&other)["stopped"] == false);
    d.ok("signal", json!({ "id": other, "signal": "SIGSTOP" }));
    d.eventually("it is stopped by the method", || d.process(&other)["stopped"] == true);
}

#[test]
fn a_stop_is_known_after_kill_9_of_the_daemon_also_one_that_no_daemon_saw() {
    let mut d = Daemon::start();
    let (paused, alone) = (d.sh("exec sleep 1000"), d.sh("exec sleep 1000"));
    d.ok("pause", json!({ "id": paused }));
    let program = d.program(&alone);
    d.kill9();
    program.signal(libc::SIGSTOP);
    d.spawn();
    assert_eq!(d.process(&paused)["stopped"], true);
    d.eventually("the stop without a daemon is known", || d.process(&alone)["stopped"] == true);
    for proc in [&paused, &alone] {
        assert_eq!(d.ok("resume", json!({ "id": proc }))["stopped"], false);
    }
}

#[test]
fn a_stopped_tree_can_be_killed_and_is_not_stopped_afterwards() {
    let d = Daemon::start();
    let (proc, _) = tree(&d);
    d.ok("pause", json!({ "id": proc }));
    let killed = d.ok("kill", json!({ "id": proc }));
    assert_eq!((&killed["status"], &killed["results"][0]["signal"]), (&json!("killed"), &json!("SIGTERM")), "{killed}");
    let p = d.process(&proc);
    assert_eq!((&p["status"], &p["stopped"], &p["reason"]), (&json!("exited"), &json!(false), &json!("killed")));
}

#[test]
fn a_stopped_process_is_not_idle() {
    let d = Daemon::start();
    let script = "echo up; while :; do sleep 0.01; echo x; done";
    let proc = id(&d.sh_with(script, json!({ "limits": { "idle_ms": 400 } })));
    d.printed(&proc, "up");
    d.ok("pause", json!({ "id": proc }));
    // Another process with the same limit that prints nothing ends meanwhile.
    let silent = id(&d.sh_with("exec sleep 1000", json!({ "limits": { "idle_ms": 1200 } })));
    assert_eq!(d.exited(&silent)["reason"], "timeout");
    assert_eq!(stopped(&d, &proc), (json!("running"), json!(true)));
    assert_eq!(d.ok("resume", json!({ "id": proc }))["status"], "running");
}

#[test]
fn many_pauses_of_shells_that_start_programs_all_end_in_a_stop() {
    // A shell between vfork and the exec of its child cannot stop before that child has gone on.
    let d = Daemon::start();
    let proc = d.sh("echo up; while :; do /bin/true; done");
    d.printed(&proc, "up");
    for round in 0..30 {
        assert_eq!(d.ok("pause", json!({ "id": proc }))["stopped"], true, "{round}");
        assert_eq!(d.ok("resume", json!({ "id": proc }))["stopped"], false, "{round}");
    }
}

#[test]
fn wrong_processes_are_refused() {
    let d = Daemon::start();
    let ended = id(&d.run("exit 4"));
    for verb in ["pause", "resume"] {
        let error = d.refused(-32002, "already_exited", verb, json!({ "id": ended }));
        assert_eq!(error["data"]["exit_code"], 4, "{error}");
        d.refused(-32001, "not_found", verb, json!({ "id": "no-such" }));
        d.refused_param("id", verb, json!({}));
        d.refused_param("ids", verb, json!({ "ids": [ended] }));
    }
}
