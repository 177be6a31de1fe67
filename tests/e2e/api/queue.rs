//! `exec` with `queue` and `after`, `queues.list` and `queues.set`: processes that wait for their turn.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, id};

/// Starts a script in a queue.
fn queued(d: &Daemon, queue: &str, script: &str) -> Value {
    d.sh_with(script, json!({ "queue": queue }))
}

/// Starts a process in a queue that runs until its stdin is closed.
fn holder(d: &Daemon, queue: &str) -> String {
    let p = d.sh_with("read -r x; exit 0", json!({ "queue": queue, "stdin": "pipe" }));
    assert_eq!(p["status"], "running", "{p}");
    id(&p)
}

fn release(d: &Daemon, holder: &str) {
    d.ok("close", json!({ "id": holder }));
}

fn queue(d: &Daemon, name: &str) -> Value {
    let all = d.ok("queues.list", json!({}))["queues"].clone();
    all.as_array().unwrap().iter().find(|queue| queue["name"] == name).cloned().unwrap_or_default()
}

fn events_of(d: &Daemon, process: &str) -> Vec<String> {
    let all = d.ok("events.next", json!({ "consumer": "test", "id": process, "limit": 100 }));
    all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
}

#[test]
fn processes_of_a_queue_run_one_after_the_other_in_the_order_of_the_calls() {
    let d = Daemon::start();
    let ran = d.root().join("ran");
    let script = |n: u32| format!("echo {n} >> {}", ran.display());
    let first = holder(&d, "q");
    let others: Vec<Value> = (1..=5).map(|n| queued(&d, "q", &script(n))).collect();
    for p in &others {
        assert_eq!((&p["status"], &p["pid"]), (&json!("pending"), &Value::Null), "{p}");
        assert_eq!(p["pending_on"], json!({ "queue": "q" }), "{p}");
        assert_eq!((&p["uptime_ms"], &p["exit_code"], &p["closed"]), (&json!(0), &Value::Null, &json!(false)), "{p}");
    }
    assert_eq!(
        queue(&d, "q"),
        json!({ "name": "q", "slots": 1, "paused": false, "running": 1, "pending": 5 }),
        "a queue that is not configured has one slot"
    );
    assert_eq!(d.ok("daemon.info", json!({}))["counts"]["pending"], 5);
    let listed = d.ids(json!({ "status": "pending" }));
    assert_eq!(listed, others.iter().rev().map(id).collect::<Vec<_>>());
    assert_eq!(d.process(&first)["pending_on"], Value::Null);
    release(&d, &first);
    for p in &others {
        let ended = d.closed(&id(p));
        assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("exited"), &json!(0)), "{ended}");
        assert!(ended["started_at"].as_str() > p["started_at"].as_str(), "its start is not the call: {ended}");
        assert_eq!(events_of(&d, &id(p)), ["started", "exited", "closed"]);
    }
    assert_eq!(fs::read_to_string(&ran).unwrap(), "1\n2\n3\n4\n5\n");
    assert_eq!(queue(&d, "q"), json!(null), "a queue without settings and processes is gone");
    assert_eq!(queued(&d, "q", "exit 0")["pending_on"], Value::Null);
}

#[test]
fn the_slots_of_a_queue_come_from_the_config_and_from_queues_set_which_is_durable() {
    let mut d = Daemon::start_with("[queues.build]\nslots = 2\n", &[]);
    assert_eq!(queue(&d, "build"), json!({ "name": "build", "slots": 2, "paused": false, "running": 0, "pending": 0 }));
    let held: Vec<String> = (0..2).map(|_| holder(&d, "build")).collect();
    let third = id(&queued(&d, "build", "sleep 1000"));
    assert_eq!(d.process(&third)["status"], "pending");
    let set = d.ok("queues.set", json!({ "name": "build", "slots": 3 }));
    assert_eq!((&set["slots"], &set["paused"]), (&json!(3), &json!(false)), "{set}");
    d.eventually("the new slot is used", || d.process(&third)["status"] == "running");
    d.ok("queues.set", json!({ "name": "build", "paused": true }));
    held.iter().for_each(|holder| release(&d, holder));
    held.iter().for_each(|holder| drop(d.closed(holder)));
    let fourth = id(&queued(&d, "build", "exit 0"));
    d.restart();
    let durable = json!({ "name": "build", "slots": 3, "paused": true, "running": 1, "pending": 1 });
    assert_eq!(queue(&d, "build"), durable);
    assert_eq!(d.process(&fourth)["status"], "pending", "a paused queue starts nothing");
    d.ok("queues.set", json!({ "name": "build", "paused": false }));
    assert_eq!(d.closed(&fourth)["exit_code"], 0);
    d.ok("kill", json!({ "id": third, "grace_ms": 0 }));
}

#[test]
fn a_process_starts_after_others_and_ends_with_reason_dependency_if_one_failed() {
    let d = Daemon::start();
    let ran = d.root().join("ran");
    let gate = id(&d.sh_with("read -r x; exit $x", json!({ "stdin": "pipe", "name": "gate" })));
    let good = d.sh("exit 0");
    d.closed(&good);
    let touch = format!("echo ran >> {}", ran.display());
    let waits = d.sh_with(&touch, json!({ "after": ["gate", good] }));
    assert_eq!((&waits["status"], &waits["pending_on"]), (&json!("pending"), &json!({ "after": [gate] })), "{waits}");
    let chained = d.sh_with(&touch, json!({ "after": [id(&waits)], "queue": "q", "notify": true }));
    assert_eq!(chained["pending_on"], json!({ "after": [id(&waits)], "queue": "q" }));
    let anyway = d.sh_with("exit 4", json!({ "after": [gate, id(&waits)], "after_ok": false }));
    d.ok("submit", json!({ "id": gate, "data": "3" }));
    for p in [&waits, &chained] {
        let ended = d.exited(&id(p));
        assert_eq!((&ended["status"], &ended["reason"]), (&json!("exited"), &json!("dependency")), "{ended}");
        assert_eq!((&ended["exit_code"], &ended["signal"], &ended["pid"]), (&Value::Null, &Value::Null, &Value::Null));
        assert_eq!((&ended["closed"], &ended["uptime_ms"]), (&json!(true), &json!(0)), "{ended}");
    }
    assert_eq!(events_of(&d, &id(&waits)), ["exited", "closed"]);
    d.eventually("its completion is there", || events_of(&d, &id(&chained)).contains(&"completion".to_string()));
    assert_eq!(d.closed(&id(&anyway))["exit_code"], 4, "it waits only for the ends");
    assert!(!ran.exists());
    let late = d.sh_with(&touch, json!({ "after": [id(&waits)], "yield_ms": 30_000 }));
    assert_eq!((&late["status"], &late["reason"]), (&json!("exited"), &json!("dependency")), "it had failed before");
    let ok = d.sh_with(&touch, json!({ "after": [good], "yield_ms": 30_000 }));
    assert_eq!(ok["exit_code"], 0, "{ok}");
}

#[test]
fn bad_input_is_refused_and_changes_nothing() {
    let d = Daemon::start();
    let exec = |more: Value| {
        let mut params = json!({ "argv": ["/bin/true"] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    d.refused(-32001, "not_found", "exec", exec(json!({ "after": ["proc_0123456789ab"] })));
    d.refused(-32001, "not_found", "exec", exec(json!({ "after": ["missing"], "queue": "q" })));
    d.refused_param("after_ok", "exec", exec(json!({ "after_ok": false })));
    d.refused_param("queue", "exec", exec(json!({ "queue": "" })));
    d.refused_param("queue", "exec", exec(json!({ "queue": "a b" })));
    d.refused_param("queue", "exec", exec(json!({ "queue": "x".repeat(65) })));
    d.refused_param("name", "queues.set", json!({ "slots": 1 }));
    d.refused_param("name", "queues.set", json!({ "name": "-x", "slots": 1 }));
    d.refused_param("slots", "queues.set", json!({ "name": "q" }));
    d.refused_param("slots", "queues.set", json!({ "name": "q", "slots": 0 }));
    d.refused_param("slots", "queues.set", json!({ "name": "q", "slots": -1 }));
    d.refused_param("slot", "queues.set", json!({ "name": "q", "slot": 1 }));
    d.refused_param("paused", "queues.set", json!({ "name": "q", "paused": "yes" }));
    assert_eq!(d.ok("queues.list", json!({})), json!({ "queues": [] }));
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert!(!d.state().join("queues").exists());
}

#[test]
fn a_killed_pending_process_never_runs_and_names_its_killer() {
    let mut d = Daemon::start();
    let first = holder(&d, "q");
    let ran = d.root().join("ran");
    let touch = format!("echo ran >> {}", ran.display());
    let pending = id(&queued(&d, "q", &touch));
    let mut waits = d.conn();
    let wait = waits.request("wait", json!({ "id": pending }));
    let killed = d.ok("kill", json!({ "id": pending }));
    let expected = json!([{ "id": pending, "status": "killed", "signals_sent": [], "survivors": [],
        "exit_code": null, "signal": null, "reason": "killed" }]);
    let mut results = killed["results"].clone();
    results[0].as_object_mut().unwrap().retain(|key, _| expected[0].get(key).is_some());
    assert_eq!(results, expected, "{killed}");
    let waited = waits.answer(wait).unwrap();
    assert_eq!((&waited["status"], &waited["processes"][0]["reason"]), (&json!("exited"), &json!("killed")));
    let shown = |d: &Daemon| {
        let p = d.process(&pending);
        assert!(p["killed_by"].as_str().unwrap().starts_with("client uid "), "{p}");
        ["status", "reason", "exit_code", "signal", "closed", "exited_at", "killed_by"].map(|key| p[key].clone())
    };
    let before = shown(&d);
    assert_eq!(before[..3], [json!("exited"), json!("killed"), Value::Null]);
    assert_eq!(events_of(&d, &pending), ["exited", "closed"]);
    assert_eq!(d.ok("kill", json!({ "id": pending }))["status"], "already_exited");
    d.restart();
    assert_eq!(shown(&d), before, "another daemon reports the same");
    assert_eq!(d.ok("forget", json!({ "ids": [pending] }))["forgotten"], json!([pending]));
    release(&d, &first);
    d.closed(&first);
    assert!(!ran.exists());
}

#[test]
fn the_end_of_all_or_of_a_session_starts_nothing_that_waited() {
    let d = Daemon::start();
    let ran = d.root().join("ran");
    let touch = format!("echo ran >> {}", ran.display());
    for end in [("session.end", json!({ "session_key": "s" })), ("kill", json!({ "all": true, "grace_ms": 0 }))] {
        let running = d.sh_with("exec sleep 1000", json!({ "queue": "q", "session_key": "s" }));
        assert_eq!(running["status"], "running");
        let waits: Vec<String> =
            (0..20).map(|_| id(&d.sh_with(&touch, json!({ "queue": "q", "session_key": "s" })))).collect();
        assert_eq!(d.ok("session.active", json!({ "session_key": "s" }))["count"], 21);
        d.ok(end.0, end.1);
        for p in &waits {
            let ended = d.process(p);
            assert_eq!((&ended["status"], &ended["reason"]), (&json!("exited"), &json!("killed")), "{ended}");
        }
    }
    assert!(!ran.exists(), "a slot that the kill freed was given to one that was to be killed");
}

#[test]
fn every_verb_does_what_is_expected_with_a_pending_process() {
    let d = Daemon::start();
    let first = holder(&d, "q");
    let p = d.sh_with("echo hello; read -r x; echo $x", json!({ "queue": "q", "stdin": "pipe", "name": "later" }));
    let process = id(&p);
    let polled = d.ok("poll", json!({ "id": "later" }));
    assert_eq!((&polled["status"], &polled["output"]), (&json!("pending"), &json!("")), "{polled}");
    assert_eq!(d.ok("log", json!({ "id": process }))["total_lines"], 0);
    let inspected = d.ok("inspect", json!({ "id": process }));
    assert_eq!((&inspected["tree"], &inspected["shim_pid"]), (&json!([]), &Value::Null), "{inspected}");
    assert_eq!(d.ok("wait", json!({ "id": process, "timeout_ms": 1 }))["status"], "timeout");
    for (method, params) in [
        ("write", json!({ "id": process, "data": "x" })),
        ("close", json!({ "id": process })),
        ("signal", json!({ "id": process, "signal": "SIGHUP" })),
    ] {
        let refused = d.refused(-32008, "unavailable", method, params);
        assert!(refused["message"].as_str().unwrap().contains("has not started yet"), "{refused}");
    }
    assert_eq!(d.ok("forget", json!({ "ids": [process] }))["skipped"], json!([process]));
    let taken = d.refused(-32007, "already_exists", "exec", json!({ "argv": ["/bin/true"], "name": "later" }));
    assert_eq!(taken["data"]["process"]["id"], process, "a pending process has its name");
    let returned = d.ok("exec", json!({ "argv": ["/bin/true"], "name": "later", "if_running": "return" }));
    assert_eq!((&returned["id"], &returned["existing"]), (&json!(process), &json!(true)));
    let mut matches = d.conn();
    let wait = matches.request("wait", json!({ "id": process, "until": { "match": "hello" } }));
    let mut polls = d.conn();
    let poll = polls.request("poll", json!({ "id": process, "cursor": 0, "wait_ms": 60_000 }));
    release(&d, &first);
    assert_eq!(matches.answer(wait).unwrap()["status"], "matched");
    polls.answer(poll).unwrap();
    d.ok("submit", json!({ "id": process, "data": "world" }));
    assert_eq!(d.closed(&process)["exit_code"], 0);
    assert_eq!(d.text(&process), "hello\nworld\n");
}

#[test]
fn the_same_request_gets_the_same_pending_process_also_after_a_restart() {
    let mut d = Daemon::start();
    let first = holder(&d, "q");
    let exec = json!({ "argv": ["/bin/true"], "queue": "q", "request_id": "one" });
    let pending = id(&d.ok("exec", exec.clone()));
    assert_eq!(id(&d.ok("exec", exec.clone())), pending);
    d.restart();
    let again = d.ok("exec", exec);
    assert_eq!((id(&again), &again["status"]), (pending.clone(), &json!("pending")));
    release(&d, &first);
    assert_eq!(d.closed(&pending)["exit_code"], 0);
}

#[test]
fn environment_values_of_a_pending_process_are_lost_with_the_daemon_and_it_does_not_run() {
    let mut d = Daemon::start();
    let first = holder(&d, "q");
    let ran = d.root().join("ran");
    let script = format!("echo $0 $MARKER >> {}", ran.display());
    let exec = |name: &str, env: Value| {
        id(&d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script, name], "env": env, "queue": "q" })))
    };
    let with = exec("with", json!({ "MARKER": "marker-on-no-disk-7391" }));
    let after = id(&d.sh_with("exit 0", json!({ "after": [with] })));
    let without = exec("without", json!({}));
    d.kill9();
    for file in walk(&d.state()) {
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(22).any(|part| part == b"marker-on-no-disk-7391"), "{} has it", file.display());
    }
    d.spawn();
    let lost = d.process(&with);
    assert_eq!((&lost["status"], &lost["reason"]), (&json!("exited"), &json!("failed_start")), "{lost}");
    assert_eq!(
        (&lost["failure"]["error"], &lost["failure"]["step"]),
        (&json!("environment lost"), &json!("environment"))
    );
    assert_eq!(events_of(&d, &with), ["exited"]);
    assert_eq!(d.exited(&after)["reason"], "dependency");
    assert_eq!(d.process(&without)["status"], "pending");
    release(&d, &first);
    assert_eq!(d.closed(&without)["exit_code"], 0);
    assert_eq!(fs::read_to_string(&ran).unwrap(), "without\n");
    d.restart();
    assert_eq!(d.process(&with)["failure"], lost["failure"]);
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_process_is_kept_while_another_waits_for_it() {
    let mut d = Daemon::start_with("[retention]\nmax_count = 0\n", &[]);
    let gate = id(&d.sh_with("read -r x", json!({ "stdin": "pipe" })));
    let done = id(&d.sh_with("read -r x", json!({ "stdin": "pipe" })));
    let pending = id(&d.sh_with("read -r x; exit 0", json!({ "after": [done, gate], "stdin": "pipe" })));
    d.ok("submit", json!({ "id": done, "data": "" }));
    d.closed(&done);
    d.eventually("it has ended for the other", || d.process(&pending)["pending_on"] == json!({ "after": [gate] }));
    assert_eq!(d.ok("forget", json!({ "ids": [done] }))["skipped"], json!([done]));
    d.restart();
    assert_eq!(d.process(&pending)["pending_on"], json!({ "after": [gate] }), "its good end is still known");
    d.ok("submit", json!({ "id": gate, "data": "" }));
    d.eventually("it runs", || d.process(&pending)["status"] == "running");
    d.eventually("retention forgets the others now", || d.ids(json!({})) == [pending.clone()]);
    d.ok("close", json!({ "id": pending }));
}

#[test]
fn max_running_counts_what_runs_and_max_pending_what_waits() {
    let d = Daemon::start_with("max_running = 2\nmax_pending = 3\n[queues.q]\nslots = 5\n", &[]);
    let held: Vec<String> = (0..2).map(|_| holder(&d, "q")).collect();
    let waits: Vec<String> = (0..3).map(|_| id(&queued(&d, "q", "exit 0"))).collect();
    assert!(waits.iter().all(|p| d.process(p)["status"] == "pending"), "they wait for a place under max_running");
    let refused = d.refused(-32004, "limit", "exec", json!({ "argv": ["/bin/true"], "queue": "q" }));
    assert_eq!(refused["data"]["limit"], "max_pending", "{refused}");
    d.refused(-32004, "limit", "exec", json!({ "argv": ["/bin/true"] }));
    release(&d, &held[0]);
    waits.iter().for_each(|p| assert_eq!(d.closed(p)["exit_code"], 0));
    release(&d, &held[1]);
}

#[test]
fn a_program_is_looked_for_when_its_turn_comes_and_one_that_is_missing_fails_then() {
    let d = Daemon::start();
    let gate = holder(&d, "q");
    let bin = d.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let env = json!({ "PATH": format!("{}:/bin:/usr/bin", bin.display()) });
    let start = |program: &str| id(&d.ok("exec", json!({ "argv": [program], "env": env, "queue": "q" })));
    let (later, never) = (start("made-later"), start("made-never"));
    fs::copy("/bin/true", bin.join("made-later")).unwrap();
    release(&d, &gate);
    assert_eq!(d.closed(&later)["exit_code"], 0);
    let failed = d.exited(&never);
    assert_eq!(
        (&failed["reason"], &failed["failure"]["error"]),
        (&json!("failed_start"), &json!("ENOENT")),
        "{failed}"
    );
    assert_eq!(queued(&d, "q", "exit 0")["pending_on"], Value::Null, "a failed start frees its slot");
}

#[test]
fn a_thousand_pending_processes_cost_no_process_no_thread_and_no_open_file() {
    let d = Daemon::start();
    let first = holder(&d, "q");
    let used = || {
        let threads = fs::read_dir(format!("/proc/{}/task", d.pid())).unwrap().count();
        let files = fs::read_dir(format!("/proc/{}/fd", d.pid())).unwrap().count();
        (d.marked().iter().filter(|p| procfs::name(p.pid) != "toold-spare").count(), threads, files)
    };
    let mut conn = d.conn();
    let mut fill = |count: u32| {
        for _ in 0..count / 20 {
            let exec = || json!({ "argv": ["/bin/true"], "queue": "q" });
            let calls: Vec<u64> = (0..20).map(|_| conn.request("exec", exec())).collect();
            calls.into_iter().for_each(|call| drop(conn.answer(call).unwrap()));
        }
    };
    // Those that the daemon starts for any call, or for the check of its sandbox, are there already.
    d.eventually("the sandbox was checked", || d.ok("daemon.info", json!({}))["sandbox"].is_object());
    fill(20);
    let before = used();
    fill(980);
    assert_eq!(queue(&d, "q")["pending"], 1000);
    let after = used();
    assert_eq!(after.0, before.0, "processes");
    assert!(after.1 <= before.1 + 16, "threads: {before:?}, then {after:?}");
    assert!(after.2 <= before.2 + 20, "open files: {before:?}, then {after:?}");
    d.ok("kill", json!({ "all": true, "grace_ms": 0 }));
    assert_eq!(d.process(&first)["status"], "exited");
    assert_eq!(d.ids(json!({ "status": "pending" })), Vec::<String>::new());
}

#[test]
fn a_damaged_file_of_queues_is_reported_and_the_config_counts() {
    for harm in ["", "0123456789abcdef\n{\"build\":{\"slots\":9}}\n", "no checksum"] {
        let mut d = Daemon::start_with("[queues.build]\nslots = 3\n", &[]);
        d.ok("queues.set", json!({ "name": "build", "slots": 7, "paused": true }));
        let waits = id(&queued(&d, "build", "echo ran"));
        d.kill9();
        fs::write(d.state().join("queues"), harm).unwrap();
        d.spawn();
        assert_eq!(
            (&queue(&d, "build")["slots"], &queue(&d, "build")["paused"]),
            (&json!(3), &json!(false)),
            "{harm:?}"
        );
        let damaged = d.ok("daemon.info", json!({}))["damaged"].to_string();
        assert!(damaged.contains("queues") && damaged.contains("as the config has them"), "{harm:?}: {damaged}");
        assert_eq!(d.closed(&waits)["exit_code"], 0, "{harm:?}: what waited has its turn");
        // The damaged file stays aside, and a new one can be written.
        let aside = |file: &std::path::PathBuf| file.to_string_lossy().contains("queues.damaged-");
        let aside = walk(&d.state()).into_iter().find(aside).unwrap();
        assert_eq!(fs::read_to_string(aside).unwrap(), harm);
        d.ok("queues.set", json!({ "name": "build", "slots": 2 }));
        d.restart();
        assert_eq!(queue(&d, "build")["slots"], 2, "{harm:?}");
    }
}
