//! kill -9 of the daemon at every step of a call, and around the end of a script: each effect happens once, each answer arrives.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

/// Steps of every call.
pub const CALL_POINTS: [&str; 3] = ["call.accepted", "call.done", "call.ended"];
/// Steps of a call that changes a file.
const CHANGE_POINTS: [&str; 2] = ["call.facts", "call.before_change"];
/// Steps around the end of a script.
const END_POINTS: [&str; 2] = ["script.ended", "script.retired"];
const START_POINT: &str = "script.channel";

pub const POINTS: [&str; 8] = [
    CALL_POINTS[0],
    CALL_POINTS[1],
    CALL_POINTS[2],
    CHANGE_POINTS[0],
    CHANGE_POINTS[1],
    END_POINTS[0],
    END_POINTS[1],
    START_POINT,
];

/// A tool whose effect shows whether it happened once, in both forms of its call.
struct Effect {
    tool: &'static str,
    args: Value,
    is_change: bool,
}

fn effects() -> Vec<Effect> {
    let patch = "*** Begin Patch\n*** Update File: patched\n@@\n-old\n+old new\n*** End Patch";
    vec![
        Effect { tool: "terminal", args: json!({ "command": "echo x >> ran; echo ran" }), is_change: false },
        Effect {
            tool: "write_file",
            args: json!({ "path": "w", "content": "x\n", "expect": "absent" }),
            is_change: true,
        },
        Effect {
            tool: "patch",
            args: json!({ "path": "edited", "old_string": "old", "new_string": "old new" }),
            is_change: true,
        },
        Effect { tool: "patch", args: json!({ "mode": "patch", "patch": patch }), is_change: false },
        Effect { tool: "read_file", args: json!({ "path": "edited" }), is_change: false },
    ]
}

pub struct CallCase {
    pub daemon: Daemon,
    hooks: PathBuf,
}

impl CallCase {
    pub fn start() -> CallCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        for name in ["edited", "patched"] {
            fs::write(daemon.home().join(name), "old\n").unwrap();
        }
        CallCase { daemon, hooks }
    }

    pub fn arm(&self, point: &str) {
        fs::write(self.hooks.join(point), "").unwrap();
    }

    /// Kills the daemon at the point, and starts the next one.
    pub fn strike(&mut self, point: &str) {
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || file.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
        self.daemon.spawn();
    }

    /// Checks that the effect of a call happened once.
    fn check(&self, effect: &Effect, what: &str) {
        let read = |name: &str| fs::read_to_string(self.daemon.home().join(name)).ok();
        let is_patch = effect.args["mode"] == "patch";
        let (name, expected) = match effect.tool {
            "terminal" => ("ran", "x\n"),
            "write_file" => ("w", "x\n"),
            "patch" if is_patch => ("patched", "old new\n"),
            "patch" => ("edited", "old new\n"),
            _ => ("edited", "old\n"),
        };
        assert_eq!(read(name).as_deref(), Some(expected), "{what}");
    }
}

impl Drop for CallCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

fn points(effect: &Effect) -> impl Iterator<Item = &'static str> {
    CALL_POINTS.into_iter().chain(CHANGE_POINTS).filter(move |point| effect.is_change || CALL_POINTS.contains(point))
}

#[test]
fn a_call_of_a_script_happens_once_whichever_step_the_daemon_dies_in() {
    for effect in effects() {
        for point in points(&effect) {
            let what = format!("{} {} at {point}", effect.tool, effect.args);
            let mut case = CallCase::start();
            case.arm(point);
            let code = format!(
                "import json\nfrom toold_tools import {tool}, result\nresult({tool}(**json.loads({args:?})))",
                tool = effect.tool,
                args = effect.args.to_string()
            );
            let call = json!({ "code": code, "cwd": case.daemon.home(), "yield_ms": 0 });
            let script = id(&case.daemon.ok("script.run", call));
            case.strike(point);
            let result = case.daemon.ok("script.result", json!({ "id": script, "wait_ms": 60000 }));
            assert_eq!((&result["status"], &result["stderr"]), (&json!("ok"), &json!("")), "{what}");
            assert_eq!((&result["calls"]["made"], &result["calls"]["unknown"]), (&json!(1), &json!(0)), "{what}");
            assert!(result["value"].is_object(), "{what}: {}", result["value"]);
            case.check(&effect, &what);
        }
    }
}

#[test]
fn a_request_of_a_client_happens_once_whichever_step_the_daemon_dies_in() {
    for effect in effects() {
        for point in points(&effect) {
            let what = format!("{} {} at {point}", effect.tool, effect.args);
            let mut case = CallCase::start();
            case.arm(point);
            let call =
                json!({ "name": effect.tool, "args": effect.args, "cwd": case.daemon.home(), "request_id": "r" });
            case.daemon.conn().request("tools.call", call.clone());
            case.strike(point);
            let result = case.daemon.ok("tools.call", call.clone());
            assert_eq!(case.daemon.ok("tools.call", call), result, "{what}");
            case.check(&effect, &what);
        }
    }
}

#[test]
fn the_end_of_a_script_is_published_once_and_its_commands_are_ended() {
    for point in END_POINTS {
        let mut case = CallCase::start();
        case.arm(point);
        let code = "import threading, os, time\nfrom toold_tools import terminal\n\
            threading.Thread(target=lambda: terminal('echo > began; exec sleep 1000'), daemon=True).start()\n\
            while not os.path.exists('began'): time.sleep(0.01)\nprint('last')\nos._exit(3)";
        let call = json!({ "code": code, "cwd": case.daemon.home(), "yield_ms": 0 });
        let script = id(&case.daemon.ok("script.run", call));
        case.strike(point);
        let result = case.daemon.ok("script.result", json!({ "id": script, "wait_ms": 60000 }));
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("error"), &json!(3)), "{point}");
        let d = &case.daemon;
        d.eventually("the command is ended", || d.ok("list", json!({ "status": "running" }))["total"] == 0);
        let all = d.ok(
            "events.next",
            json!({ "consumer": "c", "types": ["script_started", "script_finished"], "limit": 100 }),
        );
        let types: Vec<&str> = all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["script_started", "script_finished"], "{point}");
        let runs = d.socket().parent().unwrap().join("s");
        d.eventually("the run directory is gone", || fs::read_dir(&runs).map_or(0, |dir| dir.count()) == 0);
    }
}

#[test]
fn a_script_that_was_not_recorded_leaves_nothing() {
    let mut case = CallCase::start();
    case.arm(START_POINT);
    let call = json!({ "code": "print(1)", "cwd": case.daemon.home(), "request_id": "r" });
    case.daemon.conn().request("script.run", call.clone());
    case.strike(START_POINT);
    let runs = case.daemon.socket().parent().unwrap().join("s");
    assert_eq!(fs::read_dir(&runs).map_or(0, |dir| dir.count()), 0, "the next daemon removes the run directory");
    let result = case.daemon.ok("script.run", call);
    assert_eq!((&result["status"], &result["output"]), (&json!("ok"), &json!("1\n")));
}

#[test]
fn no_effect_of_sixteen_threads_is_lost_or_doubled_under_repeated_kills() {
    // `TOOLD_CALL_ROUNDS=1000` for the long run.
    let rounds: usize = std::env::var("TOOLD_CALL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut d = Daemon::start();
    let code = format!(
        "import threading\nfrom toold_tools import write_file, terminal\nerrors = []\n\
        def work(t):\n    try:\n        for i in range({rounds}):\n\
        \x20           write_file('out/%d-%d' % (t, i), 'x', expect='absent')\n\
        \x20           if i % 20 == 0: terminal('echo %d-%d >> ran' % (t, i), check=True)\n\
        \x20   except Exception as e: errors.append(repr(e))\n\
        threads = [threading.Thread(target=work, args=(t,)) for t in range(16)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\nprint(errors[:3])"
    );
    let call = json!({ "code": code, "cwd": d.home(), "yield_ms": 0, "max_calls": 100_000, "timeout_ms": 0 });
    let script = id(&d.ok("script.run", call));
    let made = |d: &Daemon| d.process(&script)["script"]["calls"].as_u64().unwrap();
    let expected = 16 * (rounds + rounds.div_ceil(20)) as u64;
    for kill in 1..=6 {
        d.eventually("some calls are made", || {
            made(&d) >= expected * kill / 8 || d.process(&script)["status"] == "exited"
        });
        d.kill9();
        d.spawn();
    }
    let result = d.ok("script.result", json!({ "id": script, "wait_ms": 600_000 }));
    assert_eq!((&result["status"], &result["output"], &result["stderr"]), (&json!("ok"), &json!("[]\n"), &json!("")));
    assert_eq!((&result["calls"]["made"], &result["calls"]["unknown"]), (&json!(expected), &json!(0)));
    assert_eq!(fs::read_dir(d.home().join("out")).unwrap().count(), 16 * rounds);
    let ran = fs::read_to_string(d.home().join("ran")).unwrap();
    let distinct: std::collections::BTreeSet<&str> = ran.lines().collect();
    assert_eq!((ran.lines().count(), distinct.len()), (16 * rounds.div_ceil(20), 16 * rounds.div_ceil(20)));
}
