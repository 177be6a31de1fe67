//! The driver of a Python kernel.

use crate::driver::{Driver, cell, ended};
use crate::program::{python, signal};
use serde_json::json;
use std::io::Read;

#[test]
fn cells_share_a_namespace_and_return_the_last_expression() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    assert_eq!(cell(&run, 1, "x = 20\nprint('hello')"), json!({"number": 1, "status": "ok"}));
    assert_eq!(cell(&run, 2, "x += 1\nx * 2"), json!({"number": 2, "status": "ok", "value": "42"}));
    assert_eq!(cell(&run, 3, "_"), json!({"number": 3, "status": "ok", "value": "42"}));
    assert_eq!(cell(&run, 4, ""), json!({"number": 4, "status": "ok"}));
    let long = cell(&run, 5, "'ü' * 100000")["value"].as_str().expect("text").to_string();
    assert!(long.ends_with("… (134467 more bytes)") && long.len() < 66_000, "{} bytes", long.len());
    let end = cell(&run, 6, "import toold_tools\nawait toold_tools.aio.echo(n=1)");
    assert_eq!(end["value"], json!("{'args': {'n': 1}}"));
    assert_eq!(child.finish().0, "hello\n");
}

#[test]
fn an_error_names_the_line_of_the_cell_and_keeps_the_state() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    cell(&run, 1, "x = 1\ndef f():\n    return 1 / 0");
    let end = cell(&run, 2, "x = 2\nf()\nx = 3");
    assert_eq!(
        (&end["status"], &end["error"]["type"], &end["error"]["line"]),
        (&json!("error"), &json!("ZeroDivisionError"), &json!(2))
    );
    let trace = end["error"]["traceback"].as_str().expect("text");
    assert!(trace.contains("File \"<cell 1>\", line 3, in f\n    return 1 / 0"), "{trace}");
    assert!(!trace.contains("kernel.py"), "{trace}");
    let end = cell(&run, 3, "x = 5\nx = (");
    assert_eq!((&end["error"]["type"], &end["error"]["line"]), (&json!("SyntaxError"), &json!(2)));
    assert_eq!(cell(&run, 4, "x")["value"], json!("2"), "nothing of a cell that does not compile runs");
    let end = cell(&run, 5, "import sys\nsys.exit(3)");
    assert_eq!((&end["status"], &end["error"]["type"]), (&json!("error"), &json!("SystemExit")));
    let end = cell(&run, 6, "input()");
    assert!(end["error"]["message"].as_str().expect("text").contains("a cell has no stdin"), "{end}");
    let end = cell(&run, 7, "class Bad:\n    def __repr__(self): raise ValueError('of repr')\nBad()");
    assert_eq!(end["error"]["message"], json!("of repr"));
    let end = cell(&run, 8, "raise ValueError('\\udc80')");
    assert_eq!(end["error"]["message"], json!("?"));
    let stderr = child.finish().1;
    assert!(stderr.contains("ZeroDivisionError") && stderr.contains("of repr"), "{stderr}");
}

#[test]
fn an_interrupt_ends_the_cell_and_keeps_the_state() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    cell(&run, 1, "from toold_tools import *\nx = 1");
    signal(&child.program, "INT"); // between cells: nothing
    for (number, code) in [
        (2, "note('up')\nwhile True: pass"),
        (3, "note('up')\nimport time\ntime.sleep(1000)"),
        (4, "note('up')\nhang()"),
        (5, "note('up')\nawait aio.hang()"),
    ] {
        run.channel.push_cell(code);
        run.channel.wait("the cell", |state| {
            let notes = state.reports.iter().filter(|report| report.get("note").is_some()).count();
            let calls = state.effects.len() + 3;
            (notes == number - 1 && (number < 4 || calls >= number)).then_some(())
        });
        signal(&child.program, "INT");
        let end = ended(&run, number);
        assert_eq!(
            (&end["status"], &end["error"]["type"]),
            (&json!("interrupted"), &json!("KeyboardInterrupt")),
            "{code}"
        );
    }
    assert_eq!(cell(&run, 6, "x, echo(n=1)['args']")["value"], json!("(1, {'n': 1})"));
    child.finish();
}

#[test]
fn output_is_read_before_the_end_is_reported() {
    let Some(run) = python() else { return };
    let mut child = Driver::new(&run);
    let mut out = child.program.stdout.take().expect("a pipe");
    // More than a pipe holds, from Python, from C and from a child.
    run.channel.push_cell("import ctypes, os, sys\nsys.stdout.write('p' * 300000)\nctypes.CDLL(None).printf(b'c' * 3000)\nos.system('printf s')");
    let mut bytes = vec![0; 303_001];
    out.read_exact(&mut bytes[..303_000]).expect("output");
    assert!(run.channel.state().reports.is_empty(), "a byte is left, so the end is not reported");
    out.read_exact(&mut bytes[303_000..]).expect("output");
    assert_eq!(ended(&run, 1)["status"], json!("ok"));
    child.program.stdout = Some(out);
    child.finish();
}

#[test]
fn a_thread_belongs_to_the_cell_that_started_it() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    cell(
        &run,
        1,
        "import threading, _thread\nfrom toold_tools import echo\ngo, done = threading.Event(), threading.Semaphore(0)\n\
         def inner():\n    echo(n='inner')\n    done.release()\n\
         def outer():\n    go.wait()\n    echo(n='outer')\n    threading.Thread(target=inner).start()\n    _thread.start_new_thread(inner, ())\n\
         threading.Thread(target=outer).start()\necho(n='main')",
    );
    cell(&run, 2, "go.set()\ndone.acquire()\ndone.acquire()\necho(n='main')");
    let state = run.channel.state();
    let mut seen: Vec<_> =
        state.calls.iter().map(|call| (call["args"]["n"].to_string(), call["cell"].as_u64())).collect();
    seen.sort();
    let wanted = [("inner", 1), ("inner", 1), ("main", 1), ("main", 2), ("outer", 1)];
    assert_eq!(seen, wanted.map(|(n, cell)| (format!("\"{n}\""), Some(cell))));
    drop(state);
    child.finish();
}

#[test]
fn a_cell_goes_on_without_a_daemon_and_its_end_is_reported_once_it_is_back() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    cell(&run, 1, "x = 1");
    run.channel.push_cell("from toold_tools import note\nnote('up')\nimport time\ntime.sleep(0.2)\nx = 2");
    run.channel.wait("the cell", |state| state.reports.iter().any(|report| report.get("note").is_some()).then_some(()));
    run.channel.close();
    std::thread::sleep(std::time::Duration::from_millis(400)); // rig: time without a daemon
    run.channel.open();
    assert_eq!(ended(&run, 2)["status"], json!("ok"));
    assert_eq!(cell(&run, 3, "x")["value"], json!("2"));
    child.finish();
}

#[test]
fn a_child_that_a_cell_forked_is_not_a_second_kernel() {
    let Some(run) = python() else { return };
    let child = Driver::new(&run);
    let end = cell(&run, 1, "import os\npid = os.fork()\nNone if pid == 0 else os.waitpid(pid, 0)[1]");
    assert_eq!(end, json!({"number": 1, "status": "ok", "value": "0"}));
    assert_eq!(cell(&run, 2, "1")["value"], json!("1"));
    assert_eq!(run.channel.state().reports.len(), 2);
    child.finish();
}
