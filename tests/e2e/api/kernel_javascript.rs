//! Kernels of JavaScript.

use super::kernel::{cell, cell_with, ended, open};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

/// Opens a JavaScript kernel. None: node is not installed.
fn javascript(d: &Daemon) -> Option<String> {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        println!("skipped: node is not installed");
        return None;
    }
    Some(open(d, json!({ "language": "javascript" })))
}

/// Starts a cell, and waits until it has printed `ready`.
fn begin(d: &Daemon, kernel: &str, code: &str) -> u64 {
    let ready = format!("ready{}", d.process(kernel)["kernel"]["cells"]);
    let started = cell_with(d, kernel, &format!("console.log({ready:?});\n{code}"), json!({ "yield_ms": 0 }));
    d.printed(kernel, &ready);
    started["cell"].as_u64().unwrap()
}

#[test]
fn cells_of_javascript_share_state_call_tools_and_print_into_their_range() {
    let d = Daemon::start();
    let Some(kernel) = javascript(&d) else { return };
    let first = cell(&d, &kernel, "const x = 20; console.log('hello'); console.error('err')");
    assert_eq!((&first["output"], &first["stderr"]), (&json!("hello\n"), &json!("err\n")), "{first}");
    let second = cell(&d, &kernel, "console.log('x'.repeat(200000)); (await terminal({command: 'echo 1'})).output + x");
    assert_eq!((&second["value"], &second["calls"]["made"]), (&json!("'1\\n20'"), &json!(1)), "{second}");
    assert_eq!(second["to"].as_u64().unwrap() - second["from"].as_u64().unwrap(), 200_001);
    let failed = cell(&d, &kernel, "\nthrow new RangeError('boom')");
    assert_eq!((&failed["error"]["type"], &failed["error"]["line"]), (&json!("RangeError"), &json!(2)), "{failed}");
    let late = cell(
        &d,
        &kernel,
        "const sleep = (ms) => new Promise((r) => setTimeout(r, ms)); globalThis.late = sleep(100).then(() => terminal({command: 'echo late > ran'})).catch((e) => [e.kind, e.data.reason]); 1",
    );
    assert_eq!(late["status"], "ok");
    assert_eq!(cell(&d, &kernel, "await globalThis.late")["value"], "[ 'denied', 'retired' ]");
    assert_eq!(d.process(&kernel)["kernel"]["language"], "javascript");
}

#[test]
fn a_cell_of_javascript_can_be_interrupted_and_the_interpreter_replaced() {
    let d = Daemon::start();
    let Some(kernel) = javascript(&d) else { return };
    cell(&d, &kernel, "globalThis.x = 1; process.env.Y = '1'; process.chdir('/')");
    let loops =
        ["for (;;) {}", "for (;;) console.log('in a write')", "for (;;) terminal({command: ''}).catch(() => {})"];
    let awaits = ["await new Promise(() => {})", "await terminal({command: 'exec sleep 1000'})"];
    for code in loops.into_iter().chain(awaits) {
        let running = begin(&d, &kernel, code);
        let interrupted = d.ok("kernel.interrupt", json!({ "id": kernel }));
        assert_eq!(interrupted, json!({ "id": kernel, "cell": running, "state_kept": true }), "{code}");
        assert_eq!(ended(&d, &kernel, running)["status"], "interrupted", "{code}");
    }
    let late = cell_with(&d, &kernel, "await new Promise(() => {})", json!({ "timeout_ms": 300 }));
    assert_eq!(late["status"], "timeout", "{late}");
    assert_eq!(cell(&d, &kernel, "x")["value"], "1");
    for _ in 0..2 {
        let reset = d.ok("kernel.reset", json!({ "id": kernel }));
        assert_eq!(reset["interrupted"], Value::Null, "{reset}");
        let after = cell(&d, &kernel, "[typeof x, process.env.Y, process.cwd()]");
        assert_eq!(after["value"], format!("[ 'undefined', undefined, '{}' ]", d.home().display()), "{after}");
        assert_eq!(
            cell(&d, &kernel, "console.log('out'); (await terminal({command: 'echo 1'})).output")["value"],
            "'1\\n'"
        );
        let running = begin(&d, &kernel, "for (;;) {}");
        assert_eq!(d.ok("kernel.interrupt", json!({ "id": kernel }))["state_kept"], true);
        assert_eq!(ended(&d, &kernel, running)["status"], "interrupted");
    }
    assert_eq!(d.ok("kernel.close", json!({ "id": kernel }))["status"], "killed");
}

#[test]
fn a_cell_of_javascript_goes_on_without_a_daemon() {
    let mut d = Daemon::start();
    let Some(kernel) = javascript(&d) else { return };
    let gate = d.root().join("go");
    let running = begin(
        &d,
        &kernel,
        &format!(
            "const fs = require('node:fs'); while (!fs.existsSync({gate:?})) await new Promise((r) => setTimeout(r, 10)); console.log('after'); 7"
        ),
    );
    d.kill9();
    std::fs::write(&gate, "").unwrap();
    d.spawn();
    let result = ended(&d, &kernel, running);
    assert_eq!((&result["status"], &result["value"]), (&json!("ok"), &json!("7")), "{result}");
    assert!(result["output"].as_str().unwrap().ends_with("after\n"), "{result}");
    assert_eq!(cell(&d, &kernel, "1 + 1")["value"], "2");
}
