//! `kernel.interrupt`, `kernel.reset` and the timeouts of cells.

use super::kernel::{begin, cell, cell_with, ended, open};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};

#[test]
fn an_interrupt_reaches_a_cell_that_its_interpreter_has_not_fetched_yet() {
    let d = Daemon::start();
    let kernel = id(&d.ok("kernel.open", json!({ "cwd": d.home() })));
    // The interpreter still starts. The interrupt named no cell, and the cell then ran without an end.
    let run = json!({ "id": kernel, "code": "while True: pass", "yield_ms": 0 });
    assert_eq!(d.ok("kernel.run", run)["status"], "running");
    let interrupted = d.ok("kernel.interrupt", json!({ "id": kernel, "grace_ms": 30_000 }));
    assert_eq!(interrupted, json!({ "id": kernel, "cell": 1, "state_kept": true }));
    let cell = d.ok("script.result", json!({ "id": kernel, "cell": 1, "wait_ms": 60_000 }));
    assert_eq!(cell["status"], "interrupted", "{cell}");
}

#[test]
fn an_interrupt_ends_the_cell_and_keeps_the_state() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    cell(&d, &kernel, "import time\nfrom toold_tools import terminal\nx = 5");
    let nothing = d.ok("kernel.interrupt", json!({ "id": kernel }));
    assert_eq!(nothing, json!({ "id": kernel, "cell": null, "state_kept": true }));
    for code in [
        "while True: pass",
        "time.sleep(1000)",
        "terminal('exec sleep 1000')",
        "import subprocess\nsubprocess.run(['sleep', '1000'])",
        "import asyncio\nawait asyncio.sleep(1000)",
    ] {
        let running = begin(&d, &kernel, code, json!({}));
        let interrupted = d.ok("kernel.interrupt", json!({ "id": kernel }));
        assert_eq!(interrupted, json!({ "id": kernel, "cell": running, "state_kept": true }), "{code}");
        let result = ended(&d, &kernel, running);
        assert_eq!(
            (&result["status"], &result["error"]["type"]),
            (&json!("interrupted"), &json!("KeyboardInterrupt")),
            "{code}: {result}"
        );
    }
    d.eventually("the commands are ended", || d.ok("list", json!({ "status": "running" }))["total"] == 1);
    assert_eq!(cell(&d, &kernel, "x")["value"], "5");
}

#[test]
fn an_interrupt_right_after_the_start_of_a_cell_is_not_lost() {
    // A signal that came before the driver ran the code was ignored, and the kernel was killed after the grace.
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    for _ in 0..20 {
        let running = cell_with(&d, &kernel, "while True: pass", json!({ "yield_ms": 0 }))["cell"].clone();
        let mut interrupted = Value::Null;
        // It may not have started.
        d.eventually("the cell is interrupted", || {
            interrupted = d.ok("kernel.interrupt", json!({ "id": kernel }));
            interrupted["cell"] == running
        });
        assert_eq!(interrupted["state_kept"], true);
    }
    assert_eq!(d.process(&kernel)["status"], "running");
}

#[test]
fn a_queued_cell_runs_after_one_that_was_interrupted() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    let first = begin(&d, &kernel, "while True: pass", json!({}));
    let second = cell_with(&d, &kernel, "2", json!({ "yield_ms": 0 }))["cell"].as_u64().unwrap();
    assert_eq!(d.ok("kernel.interrupt", json!({ "id": kernel }))["state_kept"], true);
    assert_eq!(ended(&d, &kernel, first)["status"], "interrupted");
    assert_eq!(ended(&d, &kernel, second)["value"], "2");
}

#[test]
fn a_cell_that_does_not_stop_costs_the_kernel() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    let stubborn = "import time\nwhile True:\n    try: time.sleep(1000)\n    except KeyboardInterrupt: pass";
    let running = begin(&d, &kernel, stubborn, json!({}));
    let waits = cell_with(&d, &kernel, "1", json!({ "yield_ms": 0 }))["cell"].as_u64().unwrap();
    let interrupted = d.ok("kernel.interrupt", json!({ "id": kernel, "grace_ms": 200 }));
    assert_eq!(interrupted, json!({ "id": kernel, "cell": running, "state_kept": false }));
    assert_eq!(ended(&d, &kernel, running)["status"], "interrupted");
    assert_eq!(ended(&d, &kernel, waits)["error"]["type"], "KernelEnded");
    assert_eq!(d.process(&kernel)["reason"], "killed");
    d.refused(-32002, "already_exited", "kernel.interrupt", json!({ "id": kernel }));
}

#[test]
fn a_cell_whose_time_is_over_is_interrupted_and_the_state_is_kept() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    cell(&d, &kernel, "import time\nx = 5");
    for code in [
        "while True: pass",
        "time.sleep(1000)",
        "try: time.sleep(1000)\nexcept KeyboardInterrupt: raise ValueError('x')",
    ] {
        let began = Instant::now();
        let result = cell_with(&d, &kernel, code, json!({ "timeout_ms": 300 }));
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("timeout"), &Value::Null), "{code}: {result}");
        assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    }
    assert_eq!(cell_with(&d, &kernel, "time.sleep(0.2)\nx", json!({ "timeout_ms": 0 }))["value"], "5");
    // Its time begins with it, not with its place in the queue.
    let first = cell_with(&d, &kernel, "time.sleep(1.5)", json!({ "yield_ms": 0 }));
    let second = cell_with(&d, &kernel, "x + 1", json!({ "timeout_ms": 1000 }));
    assert_eq!((&second["status"], &second["value"]), (&json!("ok"), &json!("6")), "{first}");
    let stubborn = "while True:\n    try: time.sleep(1000)\n    except BaseException: pass";
    let result = cell_with(&d, &kernel, stubborn, json!({ "timeout_ms": 300 }));
    assert_eq!((&result["status"], &result["error"]["type"]), (&json!("timeout"), &json!("KernelDied")), "{result}");
    let process = d.process(&kernel);
    assert_eq!((&process["status"], &process["reason"]), (&json!("exited"), &json!("timeout")), "{process}");
}

#[test]
fn a_cell_whose_time_was_over_without_a_daemon_is_interrupted_by_the_next() {
    let mut d = Daemon::start();
    let kernel = open(&d, json!({}));
    let running = begin(&d, &kernel, "import time\nx = 1\ntime.sleep(1000)", json!({ "timeout_ms": 400 }));
    d.kill9();
    std::thread::sleep(Duration::from_millis(500)); // rig: time without a daemon
    d.spawn();
    assert_eq!(ended(&d, &kernel, running)["status"], "timeout");
    assert_eq!(cell(&d, &kernel, "x")["value"], "1");
}

#[test]
fn the_time_of_the_kernel_itself_holds_without_a_daemon() {
    let mut d = Daemon::start();
    let kernel = open(&d, json!({ "timeout_ms": 1500 }));
    let running = begin(&d, &kernel, "import time\ntime.sleep(1000)", json!({}));
    let program = d.program(&kernel);
    d.kill9();
    assert!(program.dies_within(Duration::from_secs(20)), "the shim ends it");
    d.spawn();
    assert_eq!(ended(&d, &kernel, running)["status"], "timeout");
}

#[test]
fn a_reset_gives_a_new_interpreter_with_the_same_id_and_log() {
    let d = Daemon::start();
    let kernel = open(&d, json!({ "env": { "MINE": "kept" } }));
    let first = cell(
        &d,
        &kernel,
        "import os, threading, time\nx = 1\nos.environ['Y'] = '1'\nos.chdir('/')\nprint('before')\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nos.getpid()",
    );
    let reset = d.ok("kernel.reset", json!({ "id": kernel }));
    assert_eq!(reset, json!({ "id": kernel, "cell": 2, "interrupted": null, "dropped": [] }));
    let after = cell(
        &d,
        &kernel,
        "import os\n'x' in globals(), 'Y' in os.environ, os.environ['MINE'], os.getcwd(), os.getpid()",
    );
    let expected =
        format!("(False, False, 'kept', {:?}, {})", d.home(), first["value"].as_str().unwrap()).replace('"', "'");
    assert_eq!((&after["value"], &after["cell"]), (&json!(expected), &json!(3)));
    assert_eq!(
        cell(&d, &kernel, "print('after')\nfrom toold_tools import terminal\nterminal('echo 1')['output']")["value"],
        "'1\\n'"
    );
    assert_eq!(d.text(&kernel), "before\nafter\n");
    // A cell that runs is interrupted, and one that waits does not run.
    let running = begin(&d, &kernel, "while True: pass", json!({}));
    let waits = cell_with(&d, &kernel, "1", json!({ "yield_ms": 0 }))["cell"].as_u64().unwrap();
    let reset = d.ok("kernel.reset", json!({ "id": kernel }));
    assert_eq!((&reset["interrupted"], &reset["dropped"]), (&json!(running), &json!([waits])));
    assert_eq!(ended(&d, &kernel, running)["status"], "interrupted");
    let dropped = ended(&d, &kernel, waits);
    assert_eq!(
        (&dropped["status"], &dropped["error"]["type"]),
        (&json!("interrupted"), &json!("KernelEnded")),
        "{dropped}"
    );
    // A cell that does not stop is replaced with its interpreter.
    let stubborn = "import time\nwhile True:\n    try: time.sleep(1000)\n    except KeyboardInterrupt: pass";
    let running = begin(&d, &kernel, stubborn, json!({}));
    let reset = d.ok("kernel.reset", json!({ "id": kernel, "grace_ms": 100 }));
    assert_eq!(reset["interrupted"], running, "{reset}");
    let result = ended(&d, &kernel, running);
    assert_eq!(
        (&result["status"], &result["error"]["type"]),
        (&json!("interrupted"), &json!("KernelReset")),
        "{result}"
    );
    assert_eq!(cell(&d, &kernel, "1 + 1")["value"], "2");
}

#[test]
fn a_kernel_in_a_sandbox_calls_tools_is_interrupted_and_reset() {
    let d = Daemon::start();
    let kernel = open(&d, json!({ "sandbox": "read-only" }));
    let first = cell(&d, &kernel, "from toold_tools import terminal\nx = 1\nterminal('echo 1')['output']");
    assert_eq!((&first["status"], &first["value"]), (&json!("ok"), &json!("'1\\n'")), "{first}");
    begin(&d, &kernel, "while True: pass", json!({}));
    assert_eq!(d.ok("kernel.interrupt", json!({ "id": kernel }))["state_kept"], true);
    assert_eq!(cell(&d, &kernel, "x")["value"], "1");
    d.ok("kernel.reset", json!({ "id": kernel }));
    assert_eq!(cell(&d, &kernel, "'x' in globals()")["value"], "False");
}
