//! kill -9 of the daemon: processes keep running, and their output, exit and state are complete afterwards.

use serde_json::{Value, json};
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

#[test]
fn a_process_keeps_running_as_the_same_process() {
    let mut d = Daemon::start();
    for more in [json!({}), json!({ "pty": true })] {
        let proc = id(&d.sh_with("echo ready; exec sleep 1000", more));
        let before = d.printed(&proc, "ready");
        let program = d.program(&proc);
        d.restart();
        assert!(!program.is_dead());
        let after = d.process(&proc);
        for field in ["id", "pid", "status", "started_at", "pty", "pty_size", "stdin", "argv", "cwd", "bytes", "closed"]
        {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(d.ok("kill", json!({ "id": proc }))["results"][0]["exit_code"], 143);
        assert!(program.is_dead());
    }
}

#[test]
fn stdin_of_a_pipe_works_afterwards() {
    let mut d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    d.ok("submit", json!({ "id": proc, "data": "before" }));
    d.printed(&proc, "before");
    for n in 0..3 {
        d.restart();
        d.ok("submit", json!({ "id": proc, "data": format!("after {n}") }));
        d.printed(&proc, &format!("after {n}"));
    }
    d.restart();
    d.ok("close", json!({ "id": proc }));
    assert_eq!(d.closed(&proc)["exit_code"], 0);
    assert_eq!(d.text(&proc), "before\nafter 0\nafter 1\nafter 2\n");
}

#[test]
fn a_closed_stdin_stays_closed() {
    let mut d = Daemon::start();
    let proc = id(&d.sh_with("cat; echo end; exec sleep 1000", json!({ "stdin": "pipe" })));
    d.ok("close", json!({ "id": proc }));
    d.printed(&proc, "end");
    d.restart();
    assert_eq!(d.process(&proc)["stdin"], "closed");
    d.refused(-32003, "stdin_unavailable", "write", json!({ "id": proc, "data": "x" }));
}

#[test]
fn a_terminal_works_afterwards_with_its_size_its_keys_and_its_end_of_file() {
    let mut d = Daemon::start();
    let script = "stty -echo; echo ready; while read -r l; do echo \"$l at $(stty size)\"; done; exit 3";
    let proc = id(&d.sh_with(script, json!({ "pty": { "rows": 24, "cols": 80 } })));
    d.printed(&proc, "ready");
    d.restart();
    d.ok("submit", json!({ "id": proc, "data": "hello" }));
    d.printed(&proc, "hello at 24 80");
    d.ok("resize", json!({ "id": proc, "rows": 30, "cols": 90 }));
    d.restart();
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 30, "cols": 90 }));
    d.ok("submit", json!({ "id": proc, "data": "again" }));
    d.printed(&proc, "again at 30 90");
    d.ok("close", json!({ "id": proc }));
    assert_eq!(d.exited(&proc)["exit_code"], 3);
}

#[test]
fn output_printed_while_no_daemon_runs_is_complete() {
    let mut d = Daemon::start();
    for (kind, more) in [("pipe", json!({})), ("pty", json!({ "pty": true }))] {
        let (go, report) = (d.gate(&format!("go-{kind}")), d.gate(&format!("report-{kind}")));
        let (wait, send) = (go.wait(), report.send("written"));
        let script = format!("stty -opost 2>/dev/null; seq 1 1000; {wait}; seq 1001 200000; {send}; exec sleep 1000");
        let proc = id(&d.sh_with(&script, more));
        d.printed(&proc, "1000");
        d.kill9();
        go.open();
        report.recv(DEADLINE);
        d.spawn();
        let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
        d.printed(&proc, "200000");
        assert!(d.text(&proc) == expected, "{} bytes of {}", d.process(&proc)["bytes"], expected.len());
        assert_eq!(d.process(&proc)["lines"], 200_000);
    }
}

#[test]
fn stdout_and_stderr_are_separate_also_in_output_from_without_a_daemon() {
    let mut d = Daemon::start();
    let (go, report) = (d.gate("go"), d.gate("report"));
    let proc = d.sh(&format!("echo out1; {}; echo err1 >&2; {}; exec sleep 1000", go.wait(), report.send("x")));
    d.printed(&proc, "out1");
    d.kill9();
    go.open();
    report.recv(DEADLINE);
    d.spawn();
    d.printed(&proc, "err1");
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": "stderr" }))["output"], "err1\n");
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": "stdout" }))["output"], "out1\n");
}

#[test]
fn an_exit_without_a_daemon_has_its_real_code_and_time() {
    let mut d = Daemon::start();
    let go = d.gate("go");
    let proc = d.sh(&format!("{}; echo last output; exit 42", go.wait()));
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    let shim = Pidfd::open(shim).unwrap();
    d.kill9();
    go.open();
    assert!(shim.dies_within(DEADLINE), "a shim exits when all is recorded");
    d.spawn();
    let back = d.ok("daemon.info", json!({}))["started_at"].as_str().unwrap().to_string();
    let p = d.closed(&proc);
    assert_eq!((&p["status"], &p["exit_code"], &p["signal"]), (&json!("exited"), &json!(42), &Value::Null));
    assert_eq!((&p["reason"], &p["output"]), (&json!("exited"), &json!("last output\n")));
    assert!(
        p["exited_at"].as_str().unwrap() <= back.as_str(),
        "{} is when it was found, not when it was",
        p["exited_at"]
    );
    assert!(p["exited_at"].as_str().unwrap() >= p["started_at"].as_str().unwrap());
}

#[test]
fn death_by_a_signal_without_a_daemon_is_reported_as_that_signal() {
    let mut d = Daemon::start();
    let procs = [d.sh("exec sleep 1000"), id(&d.sh_with("exec sleep 1000", json!({ "pty": true })))];
    let programs = procs.clone().map(|p| d.program(&p));
    d.kill9();
    for program in &programs {
        program.signal(libc::SIGQUIT);
        assert!(program.dies_within(DEADLINE));
    }
    d.spawn();
    for proc in &procs {
        let p = d.exited(proc);
        assert_eq!((&p["exit_code"], &p["signal"], &p["reason"]), (&json!(131), &json!("SIGQUIT"), &json!("signaled")));
    }
}

#[test]
fn a_request_id_starts_nothing_twice_across_restarts() {
    let mut d = Daemon::start();
    let running = json!({ "argv": ["/bin/sh", "-c", "echo r >> count; exec sleep 1000"], "request_id": "running" });
    let ended =
        json!({ "argv": ["/bin/sh", "-c", "echo e >> count; exit 6"], "request_id": "ended", "yield_ms": 30000 });
    let (a, b) = (d.ok("exec", running.clone()), d.ok("exec", ended.clone()));
    d.eventually("both wrote", || std::fs::read_to_string(d.home().join("count")).unwrap_or_default().len() == 4);
    for _ in 0..2 {
        d.restart();
        let (again_a, again_b) = (d.ok("exec", running.clone()), d.ok("exec", ended.clone()));
        assert_eq!((&again_a["id"], &again_a["pid"], &again_a["status"]), (&a["id"], &a["pid"], &json!("running")));
        assert_eq!((&again_b["id"], &again_b["exit_code"]), (&b["id"], &json!(6)));
    }
    assert_eq!(d.ok("list", json!({}))["total"], 2);
    assert_eq!(std::fs::read_to_string(d.home().join("count")).unwrap().len(), 4);
}

#[test]
fn a_write_id_is_written_once_across_restarts() {
    let mut d = Daemon::start();
    for more in [json!({ "stdin": "pipe" }), json!({ "pty": true })] {
        let proc = id(&d.sh_with("stty -echo 2>/dev/null; echo ready; exec cat", more));
        d.printed(&proc, "ready");
        d.ok("submit", json!({ "id": proc, "data": "once", "write_id": "w" }));
        d.printed(&proc, "once");
        d.restart();
        let again = d.ok("submit", json!({ "id": proc, "data": "once", "write_id": "w" }));
        assert_eq!((&again["duplicate"], &again["bytes_written"]), (&json!(true), &json!(5)));
        d.ok("submit", json!({ "id": proc, "data": "end", "write_id": "w2" }));
        d.printed(&proc, "end");
        assert_eq!(d.text(&proc).matches("once").count(), 1);
    }
}

#[test]
fn closed_and_orphans_are_known_afterwards() {
    let mut d = Daemon::start();
    let proc = d.sh("sleep 1000 & exit 9");
    d.exited(&proc);
    d.restart();
    let p = d.process(&proc);
    assert_eq!((&p["status"], &p["exit_code"], &p["closed"]), (&json!("exited"), &json!(9), &json!(false)));
    assert_eq!(d.ok("inspect", json!({ "id": proc }))["tree"].as_array().unwrap().len(), 1);
    let answer = d.ok("kill", json!({ "id": proc }));
    assert_eq!((&answer["status"], &answer["results"][0]["exit_code"]), (&json!("killed"), &json!(9)));
    assert_eq!(d.closed(&proc)["closed"], true);
}
