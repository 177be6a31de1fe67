//! A shim that served one process serves the next, and brings nothing of the first along.

use serde_json::json;
use std::collections::BTreeMap;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

/// Each way of a process to be, in turn: input, a terminal, large output, an environment and a timeout.
const WAYS: [(&str, &str); 4] = [
    ("read line; echo got $line; exit 3", r#"{ "stdin": "pipe" }"#),
    ("stty size; exit 4", r#"{ "pty": { "rows": 11, "cols": 22 } }"#),
    ("head -c 300000 /dev/zero; exit 5", "{}"),
    ("echo got ${SECRET-nothing}; sleep 1000", r#"{ "timeout_ms": 300, "env": { "SECRET": "x" } }"#),
];

#[test]
fn a_shim_that_comes_back_remembers_nothing_of_the_process_before() {
    let d = Daemon::start();
    let mut served: BTreeMap<String, usize> = BTreeMap::new();
    for n in 0..12 {
        let (script, more) = WAYS[n % WAYS.len()];
        let proc = id(&d.sh_with(&format!("echo $PPID; {script}"), serde_json::from_str(more).unwrap()));
        if n % WAYS.len() == 0 {
            let wrote = d.ok("submit", json!({ "id": proc, "data": format!("line{n}"), "write_id": "the same" }));
            assert_eq!(wrote["duplicate"], false, "{wrote}");
        }
        let end = d.closed(&proc);
        let text = d.text(&proc);
        let (shim, text) = text.split_once('\n').unwrap();
        let said = (&end["reason"], &end["exit_code"], text.trim_end());
        match n % WAYS.len() {
            0 => assert_eq!(said, (&json!("exited"), &json!(3), format!("got line{n}").as_str())),
            1 => assert_eq!(said, (&json!("exited"), &json!(4), "11 22")),
            2 => assert_eq!((&end["exit_code"], &end["bytes"]), (&json!(5), &json!(300_001 + shim.len()))),
            _ => assert_eq!((said.0, said.2), (&json!("timeout"), "got x")),
        }
        *served.entry(shim.trim_end().to_string()).or_default() += 1;
    }
    assert!(served.values().any(|times| *times > 1), "no shim served twice: {served:?}");
}

/// The shim of a process that runs.
fn shim_of(d: &Daemon, proc: &str) -> Pidfd {
    Pidfd::open(d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32).unwrap()
}

#[test]
fn a_shim_that_waits_for_work_again_leaves_with_its_daemon() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let shim = shim_of(&d, &proc);
    d.ok("kill", json!({ "id": proc }));
    d.closed(&proc);
    d.run("true");
    assert!(!shim.is_dead(), "it waits for the next process");
    d.kill9();
    assert!(shim.dies_within(DEADLINE));
}

#[test]
fn a_shim_whose_daemon_died_serves_nobody_afterwards() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let shim = shim_of(&d, &proc);
    d.kill9();
    d.spawn();
    d.ok("kill", json!({ "id": proc }));
    assert!(shim.dies_within(DEADLINE));
}

#[test]
fn a_shim_whose_zygote_died_serves_nobody_afterwards() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let shim = shim_of(&d, &proc);
    let zygote = d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64().unwrap();
    Pidfd::open(zygote as i32).unwrap().signal(libc::SIGKILL);
    d.eventually("its end is noticed", || d.ok("daemon.info", json!({}))["features"]["zygote"] == json!(false));
    d.ok("kill", json!({ "id": proc }));
    assert!(shim.dies_within(DEADLINE));
}
