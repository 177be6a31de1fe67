//! `kernel.open`, `kernel.run` and `kernel.close`: an interpreter that keeps its state and runs cells.

use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use toold_test_support::rig::{Daemon, id};

/// Opens a Python kernel in the home directory.
pub fn open(d: &Daemon, more: Value) -> String {
    let mut call = json!({ "cwd": d.home() });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    id(&d.ok("kernel.open", call))
}

/// Runs a cell to its end.
pub fn cell(d: &Daemon, kernel: &str, code: &str) -> Value {
    cell_with(d, kernel, code, json!({}))
}

pub fn cell_with(d: &Daemon, kernel: &str, code: &str, more: Value) -> Value {
    let mut call = json!({ "id": kernel, "code": code });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    d.ok("kernel.run", call)
}

/// Starts a cell, and waits until it has printed `ready`.
pub fn begin(d: &Daemon, kernel: &str, code: &str, more: Value) -> u64 {
    let mut more = more;
    more["yield_ms"] = json!(0);
    let ready = format!("ready{}", d.process(kernel)["kernel"]["cells"]);
    let started = cell_with(d, kernel, &format!("print({ready:?})\n{code}"), more);
    assert_eq!(started["status"], "running", "{started}");
    d.printed(kernel, &ready);
    started["cell"].as_u64().unwrap()
}

/// Waits for the end of a cell.
pub fn ended(d: &Daemon, kernel: &str, cell: u64) -> Value {
    d.ok("script.result", json!({ "id": kernel, "cell": cell, "wait_ms": 60_000 }))
}

/// The bytes of the log that a result names.
fn range(d: &Daemon, kernel: &str, result: &Value) -> String {
    let (from, to) = (result["from"].as_u64().unwrap() as usize, result["to"].as_u64().unwrap() as usize);
    String::from_utf8(d.bytes(kernel)[from..to].to_vec()).unwrap()
}

#[test]
fn cells_share_state_and_return_the_text_of_their_last_expression() {
    let d = Daemon::start();
    let opened = d.ok("kernel.open", json!({ "cwd": d.home(), "name": "k" }));
    assert_eq!(opened["kernel"], json!({ "cells": 0, "busy": false, "language": "python" }), "{opened}");
    assert_eq!((&opened["status"], &opened["existing"]), (&json!("running"), &json!(false)));
    let kernel = id(&opened);
    let first = cell(&d, &kernel, "x = 20\nprint('hello')");
    assert_eq!((&first["status"], &first["output"], &first["cell"]), (&json!("ok"), &json!("hello\n"), &json!(1)));
    assert_eq!((&first["exit_code"], first.get("value")), (&Value::Null, None), "{first}");
    let second = d.ok("kernel.run", json!({ "name": "k", "code": "x += 1\nx * 2" }));
    assert_eq!((&second["value"], &second["output"], &second["cell"]), (&json!("42"), &json!(""), &json!(2)));
    let failed = cell(&d, &kernel, "y = 1\n1 / 0");
    assert_eq!(
        (&failed["status"], &failed["error"]["type"], &failed["error"]["line"]),
        (&json!("error"), &json!("ZeroDivisionError"), &json!(2))
    );
    assert!(failed["stderr"].as_str().unwrap().contains("ZeroDivisionError"), "{failed}");
    assert_eq!(cell(&d, &kernel, "x, y")["value"], "(21, 1)");
    let given = cell(
        &d,
        &kernel,
        "from toold_tools import result, artifact\nresult({'n': x})\nopen('a','w').write('ab')\nartifact('a')",
    );
    assert_eq!((&given["value"], &given["artifacts"][0]["bytes"]), (&json!({ "n": 21 }), &json!(2)));
    assert_eq!(cell(&d, &kernel, "1")["artifacts"], json!([]), "an artifact belongs to its cell");
    assert_eq!(d.process(&kernel)["kernel"], json!({ "cells": 6, "busy": false, "language": "python" }));
    // The last cell, or a given one.
    assert_eq!(d.ok("script.result", json!({ "id": kernel }))["cell"], 6);
    assert_eq!(d.ok("script.result", json!({ "id": kernel, "cell": 2 }))["value"], "42");
    d.refused(-32001, "not_found", "script.result", json!({ "id": kernel, "cell": 7 }));
    let closed = d.ok("kernel.close", json!({ "name": "k" }));
    assert_eq!((&closed["id"], &closed["status"]), (&json!(kernel), &json!("killed")));
    assert_eq!(d.ok("script.result", json!({ "id": kernel, "cell": 2 }))["value"], "42", "also after the end");
    d.refused(-32002, "already_exited", "kernel.run", json!({ "id": kernel, "code": "1" }));
    assert_eq!(d.process(&kernel)["kernel"], json!({ "cells": 6, "busy": false, "language": "python" }));
}

#[test]
fn the_output_of_a_cell_is_exactly_its_range_of_the_log_also_with_threads_that_print() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    let first = cell(
        &d,
        &kernel,
        "import sys, os, ctypes\nsys.stdout.write('p' * 200000)\nctypes.CDLL(None).printf(b'c' * 3000)\nos.system('printf s; printf e >&2')",
    );
    assert_eq!((first["from"].as_u64(), first["to"].as_u64()), (Some(0), Some(203_002)), "{}", first["error"]);
    assert_eq!((&first["stderr"], first["output_truncated"]["total"].as_u64()), (&json!("e"), Some(203_001)));
    // It prints between cells and in them.
    cell(
        &d,
        &kernel,
        "import threading, time\nstop = False\ndef tick():\n    while not stop:\n        os.write(1, b't')\n        time.sleep(0.0005)\nthread = threading.Thread(target=tick)\nthread.start()",
    );
    let mut last = 0;
    for n in 0..20 {
        let result = cell(&d, &kernel, &format!("os.write(1, b'<{n}')\ntime.sleep(0.003)\nprint('{n}>')"));
        let text = range(&d, &kernel, &result);
        let own: String = text.chars().filter(|c| *c != 't').collect();
        assert_eq!(own, format!("<{n}{n}>\n"), "{text}");
        assert_eq!(result["output"], text);
        let (from, to) = (result["from"].as_u64().unwrap(), result["to"].as_u64().unwrap());
        assert!(last <= from && from < to, "{last} {from} {to}");
        last = to;
    }
    assert_eq!(cell(&d, &kernel, "stop = True\nthread.join()")["status"], "ok");
    let quiet = cell(&d, &kernel, "1 + 1");
    assert_eq!((&quiet["from"], &quiet["output"]), (&quiet["to"], &json!("")));
}

#[test]
fn cells_wait_in_order_and_a_busy_kernel_can_be_an_error() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    let gate = d.root().join("go");
    let first = begin(
        &d,
        &kernel,
        &format!("import os, time\nwhile not os.path.exists({gate:?}): time.sleep(0.01)\nseen = []"),
        json!({}),
    );
    let busy = d.refused(-32008, "unavailable", "kernel.run", json!({ "id": kernel, "code": "1", "if_busy": "error" }));
    assert_eq!((&busy["data"]["reason"], &busy["data"]["cell"]), (&json!("busy"), &json!(first)));
    let queued: Vec<u64> = (0..5)
        .map(|n| {
            let waits = cell_with(&d, &kernel, &format!("seen.append({n})\nseen"), json!({ "yield_ms": 0 }));
            assert_eq!((&waits["status"], waits.get("from"), &waits["output"]), (&json!("running"), None, &json!("")));
            waits["cell"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(d.process(&kernel)["kernel"], json!({ "cells": 1, "busy": true, "language": "python" }));
    // The queue is bounded.
    let fill: Vec<Value> = (0..59).map(|_| cell_with(&d, &kernel, "None", json!({ "yield_ms": 0 }))).collect();
    d.refused(-32004, "limit", "kernel.run", json!({ "id": kernel, "code": "1", "yield_ms": 0 }));
    fs::write(&gate, "").unwrap();
    assert_eq!(ended(&d, &kernel, queued[4])["value"], "[0, 1, 2, 3, 4]");
    assert_eq!(ended(&d, &kernel, queued[1])["value"], "[0, 1]");
    assert_eq!(ended(&d, &kernel, fill[58]["cell"].as_u64().unwrap())["status"], "ok");
    assert_eq!(d.process(&kernel)["kernel"]["busy"], false);
}

#[test]
fn the_same_request_is_the_same_cell_also_after_a_restart_and_after_the_end() {
    let mut d = Daemon::start();
    let opened = json!({ "cwd": d.home(), "request_id": "open", "session_key": "s" });
    let kernel = id(&d.ok("kernel.open", opened.clone()));
    let call = json!({ "id": kernel, "code": "import os\nos.write(1, b'x')\n7", "request_id": "a" });
    let first = d.ok("kernel.run", call.clone());
    assert_eq!((&first["value"], first.get("existing")), (&json!("7"), None), "{first}");
    let check = |d: &Daemon| {
        let again = d.ok("kernel.run", call.clone());
        for field in ["cell", "value", "output", "from", "to", "status", "exit_code", "duration_ms", "calls"] {
            assert_eq!(again[field], first[field], "{field}");
        }
        assert_eq!(again["existing"], true);
        let mut other = call.clone();
        other["code"] = json!("8");
        assert_eq!(d.refused(-32009, "conflict", "kernel.run", other)["data"]["cell"], 1);
    };
    check(&d);
    d.restart();
    check(&d);
    let again = d.ok("kernel.open", opened);
    assert_eq!((id(&again), &again["existing"]), (kernel.clone(), &json!(true)));
    d.ok("kill", json!({ "id": kernel }));
    check(&d);
    d.restart();
    check(&d);
    assert_eq!(d.text(&kernel), "x");
}

#[test]
fn calls_have_the_authority_of_their_cell_and_an_old_thread_has_none() {
    let d = Daemon::start();
    let kernel = open(&d, json!({ "tools": ["terminal", "read_file"], "max_calls": 3 }));
    let first = cell(
        &d,
        &kernel,
        "import threading\nfrom toold_tools import terminal, ToolError\ngo, done, seen = threading.Event(), threading.Event(), []\n\
         def old():\n    go.wait()\n    try: terminal('echo late >> ran')\n    except ToolError as e: seen.append((e.kind, e.data.get('reason')))\n    done.set()\n\
         threading.Thread(target=old).start()\nterminal('echo 1')['output']",
    );
    assert_eq!((&first["value"], &first["calls"]["made"]), (&json!("'1\\n'"), &json!(1)), "{first}");
    let second = cell(&d, &kernel, "go.set()\ndone.wait()\nseen, terminal('echo 2')['output']");
    assert_eq!(second["value"], "([('denied', 'retired')], '2\\n')", "{second}");
    assert!(!d.home().join("ran").exists());
    assert_eq!(second["calls"]["made"], 1);
    // The budget is the cell's.
    let all = "def all(n):\n    try:\n        for i in range(n): terminal('true')\n    except ToolError as e: return i, e.kind\n    return n\n";
    assert_eq!(cell(&d, &kernel, &format!("{all}all(9)"))["value"], "(3, 'limit')");
    assert_eq!(cell_with(&d, &kernel, "all(9)", json!({ "max_calls": 5 }))["value"], "(5, 'limit')");
    assert_eq!(cell(&d, &kernel, "all(2)")["value"], "2");
    // A call that still runs at the end of its cell is ended with it.
    let left = cell(
        &d,
        &kernel,
        "threading.Thread(target=lambda: terminal('echo > began; exec sleep 1000'), daemon=True).start()\nimport os, time\nwhile not os.path.exists('began'): time.sleep(0.01)",
    );
    assert_eq!((&left["status"], &left["calls"]["made"]), (&json!("ok"), &json!(1)));
    d.eventually("the command is ended", || d.ok("list", json!({ "status": "running" }))["total"] == 1);
    // A program of the cell has its authority too.
    let child = cell(
        &d,
        &kernel,
        "import subprocess, sys, os\nsubprocess.run([sys.executable, '-c', 'from toold_tools import terminal; print(terminal(\"echo child\")[\"output\"])'], env={**os.environ, 'PYTHONPATH': os.environ['TOOLD_SCRIPT_DIR']}, check=True).returncode",
    );
    assert_eq!((&child["output"], &child["calls"]["made"]), (&json!("child\n\n"), &json!(1)), "{child}");
    let calls = d.ok("script.calls", json!({ "id": kernel, "cell": 2 }));
    assert_eq!((&calls["total"], &calls["calls"][0]["cell"]), (&json!(1), &json!(2)), "{calls}");
    d.refused(-32602, "invalid_params", "kernel.open", json!({ "tools": ["nothing"] }));
}

#[test]
fn an_interpreter_that_dies_ends_its_cell_and_those_that_wait() {
    let d = Daemon::start();
    for (code, status, exit_code, signal) in [
        ("os._exit(7)", "error", json!(7), Value::Null),
        ("os._exit(0)", "error", json!(0), Value::Null),
        ("os.kill(os.getpid(), 9)", "killed", json!(137), json!("SIGKILL")),
        ("import ctypes; ctypes.string_at(0)", "killed", json!(139), json!("SIGSEGV")),
    ] {
        let kernel = open(&d, json!({}));
        let gate = d.root().join(kernel.as_str());
        let cell = begin(
            &d,
            &kernel,
            &format!("import os, time\nwhile not os.path.exists({gate:?}): time.sleep(0.01)\nprint('last')\n{code}"),
            json!({}),
        );
        let waits = cell_with(&d, &kernel, "1", json!({ "yield_ms": 0 }))["cell"].as_u64().unwrap();
        fs::write(&gate, "").unwrap();
        let died = ended(&d, &kernel, cell);
        assert_eq!(
            (&died["status"], &died["exit_code"], &died["signal"]),
            (&json!(status), &exit_code, &signal),
            "{code}"
        );
        assert_eq!(died["error"]["type"], "KernelDied", "{died}");
        assert!(died["output"].as_str().unwrap().ends_with("last\n"), "{died}");
        let dropped = ended(&d, &kernel, waits);
        assert_eq!(
            (&dropped["status"], &dropped["error"]["type"]),
            (&json!("error"), &json!("KernelEnded")),
            "{dropped}"
        );
        assert!(dropped["error"]["message"].as_str().unwrap().contains("did not run"), "{dropped}");
        d.refused(-32002, "already_exited", "kernel.run", json!({ "id": kernel, "code": "1" }));
    }
}

#[test]
fn kill_and_the_end_of_a_session_end_a_kernel_and_its_cell() {
    let d = Daemon::start();
    for end in ["kill", "session.end", "script.cancel", "kernel.close"] {
        let kernel = open(&d, json!({ "session_key": "s" }));
        let cell = begin(&d, &kernel, "import time\ntime.sleep(1000)", json!({}));
        let params = if end == "session.end" { json!({ "session_key": "s" }) } else { json!({ "id": kernel }) };
        d.ok(end, params);
        let result = ended(&d, &kernel, cell);
        assert_eq!(
            (&result["status"], &result["error"]["type"]),
            (&json!("interrupted"), &json!("KernelDied")),
            "{end}: {result}"
        );
        assert_eq!(d.process(&kernel)["status"], "exited", "{end}");
    }
}

#[test]
fn a_session_has_a_bounded_number_of_kernels_and_wrong_parameters_are_named() {
    let d = Daemon::start_with("[kernel]\nmax = 2\n", &[]);
    let mine: Vec<String> = (0..2).map(|_| open(&d, json!({ "session_key": "a" }))).collect();
    let full = d.refused(-32004, "limit", "kernel.open", json!({ "session_key": "a" }));
    assert_eq!(full["data"]["limit"], "kernel.max");
    open(&d, json!({ "session_key": "b" }));
    d.ok("kernel.close", json!({ "id": mine[0] }));
    open(&d, json!({ "session_key": "a" }));
    d.refused_param("code", "kernel.run", json!({ "id": mine[1], "code": " \n" }));
    d.refused_param("id", "kernel.run", json!({ "code": "1" }));
    d.refused_param("timeout_ms", "kernel.run", json!({ "id": mine[1], "code": "1", "timeout_ms": -1 }));
    d.refused_param("language", "kernel.open", json!({ "language": "bash" }));
    d.refused_param("code", "kernel.open", json!({ "code": "1" }));
    let plain = d.sh("exec sleep 1000");
    d.refused_param("id", "kernel.run", json!({ "id": plain, "code": "1" }));
    d.refused(-32001, "not_found", "kernel.run", json!({ "name": "none", "code": "1" }));
    d.refused_param(
        "cell",
        "script.result",
        json!({ "id": id(&d.ok("script.run", json!({ "code": "1" }))), "cell": 1 }),
    );
}

#[test]
fn a_kernel_without_cells_ends_after_its_idle_time_also_over_a_restart() {
    let mut d = Daemon::start();
    let kernel = open(&d, json!({ "idle_ms": 1500 }));
    let stays = open(&d, json!({ "idle_ms": 0 }));
    assert_eq!(cell(&d, &kernel, "1")["value"], "1");
    // A cell that runs is not idle time.
    let longer = cell(&d, &kernel, "import time\ntime.sleep(1.7)\n2");
    assert_eq!(longer["value"], "2");
    let began = std::time::Instant::now();
    d.kill9();
    std::thread::sleep(Duration::from_millis(700)); // rig: time without a daemon
    d.spawn();
    let ended = d.exited(&kernel);
    assert_eq!((&ended["reason"], &ended["killed_by"]), (&json!("timeout"), &json!("idle_ms")), "{ended}");
    assert!(began.elapsed() < Duration::from_millis(4000), "{:?}", began.elapsed());
    assert_eq!(cell(&d, &stays, "3")["value"], "3");
    let refused = d.refused(-32002, "already_exited", "kernel.run", json!({ "id": kernel, "code": "1" }));
    // Its process has ended; the rest of its end may still be recorded.
    let message = refused["message"].as_str().unwrap();
    assert!(["has ended", "is ending"].iter().any(|state| message.contains(state)), "{refused}");
}

#[test]
fn a_cell_goes_on_without_a_daemon_and_its_result_is_complete() {
    let mut d = Daemon::start();
    let kernel = open(&d, json!({}));
    assert_eq!(cell(&d, &kernel, "x = 1")["status"], "ok");
    let gate = d.root().join("go");
    let running = begin(
        &d,
        &kernel,
        &format!(
            "import os, time\nfrom toold_tools import terminal\nwhile not os.path.exists({gate:?}): time.sleep(0.01)\nprint('after')\nx = 2\nprint(terminal('echo call')['output'])\nx"
        ),
        json!({}),
    );
    let waits = cell_with(&d, &kernel, "x + 1", json!({ "yield_ms": 0 }))["cell"].as_u64().unwrap();
    d.kill9();
    fs::write(&gate, "").unwrap();
    std::thread::sleep(Duration::from_millis(300)); // rig: time without a daemon
    d.spawn();
    let result = ended(&d, &kernel, running);
    assert_eq!(
        (&result["status"], &result["value"], &result["calls"]["made"]),
        (&json!("ok"), &json!("2"), &json!(1)),
        "{result}"
    );
    assert!(result["output"].as_str().unwrap().ends_with("after\ncall\n\n"), "{result}");
    assert_eq!(ended(&d, &kernel, waits)["value"], "3");
    assert_eq!(cell(&d, &kernel, "x + 2")["value"], "4");
    assert_eq!(d.process(&kernel)["kernel"]["cells"], 4);
}

#[test]
fn a_script_may_not_use_kernels() {
    let d = Daemon::start();
    let kernel = open(&d, json!({}));
    let code = format!(
        "import json, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({:?})\ns.sendall(json.dumps({{'jsonrpc':'2.0','id':1,'method':'kernel.run','params':{{'id':{kernel:?},'code':'1'}}}}).encode() + b'\\n')\njson.loads(s.makefile().readline())['error']['data']['reason']",
        d.socket()
    );
    assert_eq!(cell(&d, &kernel, &code)["value"], "'inside_script'");
}
