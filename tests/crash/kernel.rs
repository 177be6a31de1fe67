//! kill -9 of the daemon at every step of a cell: no cell is lost, none runs twice, and the result is the same afterwards.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// Steps of every cell, in order.
const CELL_POINTS: [&str; 4] = ["cell.queued", "cell.started", "cell.reported", "cell.ended"];
const STOP_POINT: &str = "cell.stopped";
const RESET_POINT: &str = "cell.reset";

pub const POINTS: [&str; 6] = [CELL_POINTS[0], CELL_POINTS[1], CELL_POINTS[2], CELL_POINTS[3], STOP_POINT, RESET_POINT];

/// A daemon with hooks, and a kernel that has run one cell.
struct CellCase {
    daemon: Daemon,
    hooks: PathBuf,
    kernel: String,
}

impl CellCase {
    fn start() -> CellCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        let kernel = id(&daemon.ok("kernel.open", json!({ "cwd": daemon.home() })));
        let case = CellCase { daemon, hooks, kernel };
        assert_eq!(case.run("import time\nx = 1", "first")["status"], "ok");
        case
    }

    fn call(&self, code: &str, request_id: &str) -> Value {
        json!({ "id": self.kernel, "code": code, "request_id": request_id })
    }

    fn run(&self, code: &str, request_id: &str) -> Value {
        self.daemon.ok("kernel.run", self.call(code, request_id))
    }

    /// Makes a call, kills the daemon when it reaches the point, and starts the next one.
    fn crash_in(&mut self, point: &str, method: &str, params: Value) {
        fs::write(self.hooks.join(point), "").unwrap();
        let mut unanswered = self.daemon.conn();
        unanswered.request(method, params);
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || file.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
        self.daemon.spawn();
    }

    /// Checks that the state of the interpreter is kept, and that results stay as they are over another restart.
    fn check_goes_on(&mut self, value: &str, results: &[(&Value, Value)], what: &str) {
        let last = self.run("x, y", "last");
        assert_eq!((&last["status"], &last["value"]), (&json!("ok"), &json!(value)), "{what}: {last}");
        self.daemon.restart();
        for (call, result) in results {
            let again = self.daemon.ok("kernel.run", (*call).clone());
            for field in ["cell", "status", "value", "output", "stderr", "from", "to", "calls", "error", "duration_ms"]
            {
                assert_eq!(again[field], result[field], "{what}: {field}");
            }
        }
        assert_eq!(self.daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{what}");
    }
}

impl Drop for CellCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

#[test]
fn a_cell_runs_once_whichever_step_the_daemon_dies_in() {
    for point in CELL_POINTS {
        let mut case = CellCase::start();
        let code = "from toold_tools import terminal\nopen('ran', 'a').write('x')\nprint('out')\ny = terminal('echo y >> called; echo c')['output']\nx += 1\nx";
        let call = case.call(code, "cell");
        case.crash_in(point, "kernel.run", call.clone());
        // A client repeats a call that was not answered.
        let result = case.daemon.ok("kernel.run", call.clone());
        assert_eq!(
            (&result["status"], &result["value"], &result["cell"]),
            (&json!("ok"), &json!("2"), &json!(2)),
            "{point}: {result}"
        );
        assert_eq!((&result["output"], &result["existing"]), (&json!("out\n"), &json!(true)), "{point}: {result}");
        assert_eq!(
            (&result["from"], &result["to"], &result["calls"]["made"]),
            (&json!(0), &json!(4), &json!(1)),
            "{point}"
        );
        let read = |name: &str| fs::read_to_string(case.daemon.home().join(name)).unwrap();
        assert_eq!((read("ran"), read("called")), ("x".into(), "y\n".into()), "{point}");
        case.check_goes_on("(2, 'c\\n')", &[(&call, result)], point);
        assert_eq!(case.daemon.process(&case.kernel)["kernel"]["cells"], 3, "{point}");
    }
}

#[test]
fn cells_that_wait_run_in_order_whichever_step_the_daemon_dies_in() {
    for point in CELL_POINTS {
        let mut case = CellCase::start();
        let calls: Vec<Value> =
            (0..4).map(|n| case.call(&format!("x = x * 10 + {n}\nprint({n})\ny = {n}\nx"), &n.to_string())).collect();
        // The first holds the others back until all are queued.
        let gate = case.daemon.root().join("go");
        let hold = case.call(&format!("import os\nwhile not os.path.exists({gate:?}): time.sleep(0.01)"), "hold");
        let mut waiting = case.daemon.conn();
        waiting.request("kernel.run", hold);
        for call in &calls[..3] {
            let mut now = call.clone();
            now["yield_ms"] = json!(0);
            case.daemon.ok("kernel.run", now);
        }
        fs::write(&gate, "").unwrap();
        case.crash_in(point, "kernel.run", calls[3].clone());
        let results: Vec<Value> = calls.iter().map(|call| case.daemon.ok("kernel.run", call.clone())).collect();
        let values: Vec<&str> = results.iter().map(|result| result["value"].as_str().unwrap()).collect();
        assert_eq!(values, ["10", "101", "1012", "10123"], "{point}");
        let outputs: Vec<&str> = results.iter().map(|result| result["output"].as_str().unwrap()).collect();
        assert_eq!(outputs, ["0\n", "1\n", "2\n", "3\n"], "{point}");
        let kept: Vec<(&Value, Value)> = calls.iter().zip(results).collect();
        case.check_goes_on("(10123, 3)", &kept, point);
    }
}

#[test]
fn an_interrupt_or_a_timeout_is_made_once_more_by_the_next_daemon() {
    for (timeout_ms, status) in [(0, "interrupted"), (300, "timeout")] {
        let mut case = CellCase::start();
        let mut call = case.call("y = 0\nprint('ready')\nwhile True: time.sleep(0.01)", "cell");
        call["timeout_ms"] = json!(timeout_ms);
        let interrupt = json!({ "id": case.kernel });
        if timeout_ms == 0 {
            let mut now = call.clone();
            now["yield_ms"] = json!(0);
            case.daemon.ok("kernel.run", now);
            case.daemon.printed(&case.kernel, "ready");
            case.crash_in(STOP_POINT, "kernel.interrupt", interrupt.clone());
            assert_eq!(case.daemon.ok("kernel.interrupt", interrupt)["state_kept"], true);
        } else {
            case.crash_in(STOP_POINT, "kernel.run", call.clone());
        }
        let result = case.daemon.ok("kernel.run", call.clone());
        assert_eq!((&result["status"], &result["output"]), (&json!(status), &json!("ready\n")), "{result}");
        case.check_goes_on("(1, 0)", &[(&call, result)], status);
    }
}

#[test]
fn a_reset_is_made_once_whichever_step_the_daemon_dies_in() {
    for point in [RESET_POINT, "cell.started", "cell.reported", "cell.ended"] {
        let mut case = CellCase::start();
        let reset = json!({ "id": case.kernel });
        case.crash_in(point, "kernel.reset", reset);
        let next = case.run("'x' in globals()", "next");
        assert_eq!((&next["value"], &next["cell"]), (&json!("False"), &json!(3)), "{point}: {next}");
        assert_eq!(case.run("x = y = 7\nx", "set")["value"], "7", "{point}");
        case.check_goes_on("(7, 7)", &[], point);
        assert_eq!(case.daemon.process(&case.kernel)["status"], "running", "{point}");
    }
}

#[test]
fn a_kernel_that_dies_with_its_daemon_leaves_no_cell_without_an_end() {
    for point in ["script.ended", "script.retired"] {
        let mut case = CellCase::start();
        let call = case.call("print('last', flush=True)\nimport os\nos._exit(3)", "cell");
        case.crash_in(point, "kernel.run", call.clone());
        let result = case.daemon.ok("kernel.run", call);
        assert_eq!(
            (&result["status"], &result["exit_code"], &result["output"]),
            (&json!("error"), &json!(3), &json!("last\n")),
            "{point}: {result}"
        );
        assert_eq!(result["error"]["type"], "KernelDied", "{point}");
    }
}

#[test]
fn no_cell_is_lost_or_run_twice_under_repeated_kills() {
    const CELLS: usize = 120;
    let mut d = Daemon::start();
    let kernel = id(&d.ok("kernel.open", json!({ "cwd": d.home() })));
    d.ok("kernel.run", json!({ "id": kernel, "code": "seen = []" }));
    let socket = d.socket();
    let call = |n: usize| {
        let code = format!("seen.append({n})\nopen('ran', 'a').write('{n}\\n')\nprint('<{n}>')\nlen(seen)");
        json!({ "id": kernel, "code": code, "request_id": n.to_string() })
    };
    let results: Vec<Value> = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let made = |n| loop {
                let answer = Conn::open(&socket).ok().and_then(|mut conn| {
                    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "kernel.run", "params": call(n) });
                    conn.offer(format!("{line}\n").as_bytes()).then(|| conn.line()).flatten()
                });
                let Some(answer) = answer else {
                    std::thread::yield_now();
                    continue;
                };
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                assert!(answer["error"].is_null(), "{answer}");
                return answer["result"].clone();
            };
            (0..CELLS).map(made).collect()
        });
        for kill in 1..=8 {
            let ran = || fs::read_to_string(d.home().join("ran")).unwrap_or_default().lines().count();
            d.eventually("some cells have run", || ran() >= CELLS * kill / 10);
            d.restart();
        }
        client.join().unwrap()
    });
    let ran = fs::read_to_string(d.home().join("ran")).unwrap();
    assert_eq!(ran, (0..CELLS).map(|n| format!("{n}\n")).collect::<String>());
    let (mut to, log) = (0, d.bytes(&kernel));
    for (n, result) in results.iter().enumerate() {
        assert_eq!((&result["status"], &result["value"]), (&json!("ok"), &json!((n + 1).to_string())), "{result}");
        assert_eq!(result["output"], format!("<{n}>\n"));
        assert_eq!(result["from"], to, "{n}");
        to = result["to"].as_u64().unwrap();
        assert_eq!(&log[result["from"].as_u64().unwrap() as usize..to as usize], format!("<{n}>\n").as_bytes());
    }
}
