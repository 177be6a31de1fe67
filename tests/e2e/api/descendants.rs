//! `descendants`: the processes that a program left behind, for as long as they live.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Starts three processes in sessions of their own, and exits.
const LEAVES_THREE: &str =
    "for n in 1 2 3; do setsid sleep 1000 < /dev/null > /dev/null 2>&1 & done; echo started; exit 0";

fn listed(d: &Daemon, process: &str) -> Value {
    let all = d.ok("list", json!({}))["processes"].clone();
    all.as_array().unwrap().iter().find(|p| p["id"] == process).expect("it is listed").clone()
}

#[test]
fn descendants_are_counted_while_they_live_on_after_the_exit() {
    let mut d = Daemon::start();
    let running = d.sh("sleep 1000 & wait");
    assert_eq!(d.process(&running)["descendants"], 0, "of a program that runs they are its tree");
    let process = d.sh(LEAVES_THREE);
    assert_eq!(d.exited(&process)["exit_code"], 0);
    let three = |d: &Daemon| {
        let inspected = d.ok("inspect", json!({ "id": process }));
        [d.process(&process), listed(d, &process), inspected].iter().all(|p| p["descendants"] == 3)
    };
    d.eventually("all three have started", || three(&d));
    let shown = d.ctl(&["list"]).stdout;
    assert!(shown.contains("exited, 3 live on"), "{shown}");
    let polled = d.ctl(&["poll", &process]).stdout;
    assert!(polled.contains("\ndescendants: 3\n"), "{polled}");
    let inspected = d.ctl(&["inspect", &process]).stdout;
    assert!(inspected.contains(", 3 descendants live on"), "{inspected}");
    d.restart();
    assert!(three(&d), "the next daemon counts them too");
    d.ok("kill", json!({ "id": process }));
    assert_eq!((&d.process(&process)["descendants"], &listed(&d, &process)["descendants"]), (&json!(0), &json!(0)));
}

#[test]
fn a_list_shows_what_waits_for_input() {
    let d = Daemon::start();
    let process = id(&d.sh_with("printf 'Go? '; read -r x", json!({ "pty": true })));
    d.eventually("it waits", || d.process(&process)["needs_input"].is_object());
    let shown = d.ctl(&["list"]).stdout;
    assert!(shown.contains("waiting for input"), "{shown}");
    assert!(d.ctl(&["poll", &process]).stdout.contains("\nneeds_input: true\nprompt: Go?"));
    assert!(d.ctl(&["inspect", &process]).stdout.contains(", waiting for input"));
}
