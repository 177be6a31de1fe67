//! Limits of a process: time, idle time, memory, CPU, pids; and the limit on running processes.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

#[test]
fn a_timeout_kills_the_whole_tree_and_is_the_reason() {
    let d = Daemon::start();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1000; done' & \
                  while [ ! -s pid ]; do sleep 0.01; done; echo ready; exec sleep 1000";
    let started = Instant::now();
    let proc = id(&d.sh_with(script, json!({ "timeout_ms": 3000 })));
    d.printed(&proc, "ready");
    let hidden = std::fs::read_to_string(d.home().join("pid")).unwrap().trim().parse().unwrap();
    let hidden = Pidfd::open(hidden).unwrap();
    let p = d.exited(&proc);
    assert!(started.elapsed() >= Duration::from_secs(3));
    assert_eq!((&p["reason"], &p["status"]), (&json!("timeout"), &json!("exited")));
    assert!(p["exit_code"] == 143 || p["exit_code"] == 137, "{p}");
    assert!(p["killed_by"].as_str().unwrap().contains("timeout_ms"), "{p}");
    assert!(hidden.dies_within(DEADLINE), "a descendant outlived the timeout");
}

#[test]
fn a_program_that_ends_before_its_timeout_has_reason_exited() {
    let d = Daemon::start();
    let p = d.sh_with("exit 3", json!({ "timeout_ms": 50000, "yield_ms": 30000 }));
    assert_eq!((&p["exit_code"], &p["reason"], &p["killed_by"]), (&json!(3), &json!("exited"), &Value::Null));
}

#[test]
fn a_timeout_is_enforced_without_a_daemon() {
    let mut d = Daemon::start();
    let proc = id(&d.sh_with("exec sleep 1000", json!({ "timeout_ms": 1500 })));
    let program = d.program(&proc);
    d.kill9();
    assert!(program.dies_within(DEADLINE), "the timeout is not enforced");
    d.spawn();
    let p = d.exited(&proc);
    assert_eq!(p["reason"], "timeout");
    assert!(p["exit_code"] == 143 || p["exit_code"] == 137, "{p}");
}

#[test]
fn a_timeout_continues_across_a_restart() {
    let mut d = Daemon::start();
    let proc = id(&d.sh_with("exec sleep 1000", json!({ "timeout_ms": 2500 })));
    d.restart();
    assert_eq!(d.ok("inspect", json!({ "id": proc }))["timeout_ms"], 2500);
    assert_eq!(d.exited(&proc)["reason"], "timeout");
}

#[test]
fn an_idle_program_is_killed_and_one_that_prints_is_not() {
    let d = Daemon::start();
    let quiet = id(&d.sh_with("echo once; exec sleep 1000", json!({ "limits": { "idle_ms": 700 } })));
    let p = d.exited(&quiet);
    assert_eq!(p["reason"], "timeout");
    assert!(p["killed_by"].as_str().unwrap().contains("idle_ms"), "{p}");
    let script = "i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.1; i=$((i+1)); done; exit 5";
    let p = d.sh_with(script, json!({ "limits": { "idle_ms": 1900 }, "yield_ms": 30000 }));
    assert_eq!((&p["exit_code"], &p["reason"]), (&json!(5), &json!("exited")));
}

/// Checks the report on one limit: it names what enforces it, or has a note why nothing does.
fn report(p: &Value, key: &str, requested: u64) -> bool {
    let limit = &p["limits"][key];
    assert_eq!(limit["requested"], requested, "{p}");
    let enforced = !limit["enforced_by"].is_null();
    assert!(enforced || !limit["note"].as_str().unwrap().is_empty(), "neither enforced nor explained: {limit}");
    enforced
}

#[test]
fn a_memory_limit_is_enforced_or_reported_as_not_enforced() {
    let d = Daemon::start();
    // tail buffers the output that it may have to print: 200 MiB.
    let more = json!({ "limits": { "memory_bytes": 50_000_000 }, "yield_ms": 1 });
    let p = d.sh_with("head -c 200000000 /dev/zero | tail -c 199999999 | wc -c", more);
    let enforced = report(&p, "memory_bytes", 50_000_000);
    let p = d.closed(&id(&p));
    if enforced {
        assert_ne!(p["output"], "199999999\n", "the limit was not enforced");
    } else {
        assert_eq!((&p["output"], &p["exit_code"]), (&json!("199999999\n"), &json!(0)));
    }
}

#[test]
fn a_program_that_the_kernel_kills_for_memory_has_reason_oom() {
    let d = Daemon::start();
    let argv = json!(["python3", "-c", "x = b'x' * 300000000; input()"]);
    let p = d.ok("exec", json!({ "argv": argv, "limits": { "memory_bytes": 40_000_000 }, "timeout_ms": 20000 }));
    let enforced = p["limits"]["memory_bytes"]["enforced_by"].as_str().unwrap_or("nothing").to_string();
    if toold_test_support::rig::skip_unless(enforced.starts_with("cgroup"), "no cgroup limits memory here") {
        d.ok("kill", json!({ "id": p["id"] }));
        return;
    }
    let p = d.exited(&id(&p));
    assert_eq!((&p["reason"], &p["signal"], &p["exit_code"]), (&json!("oom"), &json!("SIGKILL"), &json!(137)));
}

#[test]
fn a_child_that_the_kernel_kills_for_memory_is_counted() {
    // Only the shell reported it, in its output: the pipeline exited with 0.
    let d = Daemon::start();
    let script = "python3 -c 'x = b\"x\" * 300000000; input()'; exit 0";
    let p = d.sh_with(script, json!({ "limits": { "memory_bytes": 40_000_000 }, "timeout_ms": 20000 }));
    let enforced = p["limits"]["memory_bytes"]["enforced_by"].as_str().unwrap_or("nothing").to_string();
    if toold_test_support::rig::skip_unless(enforced.starts_with("cgroup"), "no cgroup limits memory here") {
        d.ok("kill", json!({ "id": p["id"] }));
        return;
    }
    let mut d = d;
    let expect = |p: Value| {
        assert_eq!((&p["exit_code"], &p["reason"]), (&json!(0), &json!("exited")));
        assert_eq!(p["limits"]["memory_bytes"]["oom_kills"], 1, "{p}");
    };
    expect(d.exited(&id(&p)));
    d.restart();
    expect(d.process(&id(&p)));
    let quiet = d.sh_with("exit 0", json!({ "limits": { "memory_bytes": 40_000_000 }, "yield_ms": 20000 }));
    assert!(quiet["limits"]["memory_bytes"].get("oom_kills").is_none(), "{quiet}");
}

#[test]
fn a_pids_limit_is_enforced_or_reported_as_not_enforced() {
    let d = Daemon::start();
    let script = "i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; echo all; wait";
    let p = d.sh_with(script, json!({ "limits": { "pids": 16 } }));
    let (proc, enforced) = (id(&p), report(&p, "pids", 16));
    if enforced {
        // The shell exits at the first fork that fails, with a message.
        d.printed(&proc, "ork");
        let inspect = d.ok("inspect", json!({ "id": proc }));
        assert!(inspect["usage"]["processes"].as_u64().unwrap() <= 16, "{inspect}");
        assert!(!d.text(&proc).contains("all"));
    } else {
        d.printed(&proc, "all");
    }
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
}

#[test]
fn a_cpu_limit_is_reported_like_every_requested_limit() {
    let d = Daemon::start();
    let limits = json!({ "memory_bytes": 500_000_000, "cpu_percent": 50, "pids": 100, "output_bytes": 1_000_000, "idle_ms": 900_000 });
    let p = d.sh_with("exec sleep 1000", json!({ "limits": limits }));
    for (key, requested) in limits.as_object().unwrap() {
        report(&p, key, requested.as_u64().unwrap());
    }
    assert!(report(&p, "output_bytes", 1_000_000) && report(&p, "idle_ms", 900_000), "toold enforces these two itself");
    let mut d = d;
    d.restart();
    assert_eq!(d.process(&id(&p))["limits"], p["limits"], "the report is kept");
    let plain = d.sh_with("exec sleep 1000", json!({}));
    assert_eq!(plain["limits"], json!({}));
}

#[test]
fn max_running_limits_the_running_processes() {
    let mut d = Daemon::start_with("max_running = 2\n", &[]);
    let first = d.sh("exec sleep 1000");
    d.sh("exec sleep 1000");
    let full = |d: &Daemon| {
        let error = d.refused(-32004, "limit", "exec", json!({ "argv": ["/bin/true"] }));
        assert_eq!(error["data"]["limit"], "max_running");
        assert!(error["message"].as_str().unwrap().contains("max_running"), "{error}");
        assert_eq!(d.ok("list", json!({}))["total"], 2);
    };
    full(&d);
    d.restart();
    full(&d);
    d.ok("kill", json!({ "id": first }));
    d.ok("exec", json!({ "argv": ["/bin/true"] }));
}
