//! A shim that served one process serves the next, and keeps nothing of the first.

use serde_json::json;
use std::collections::BTreeMap;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

/// Kinds of processes in turn: input, a terminal, large output, an environment and a timeout.
const KINDS: [(&str, &str); 4] = [
    ("read line; echo got $line; exit 3", r#"{ "stdin": "pipe" }"#),
    ("stty size; exit 4", r#"{ "pty": { "rows": 11, "cols": 22 } }"#),
    ("head -c 300000 /dev/zero; exit 5", "{}"),
    ("echo got ${SECRET-nothing}; sleep 1000", r#"{ "timeout_ms": 300, "env": { "SECRET": "x" } }"#),
];

#[test]
fn a_reused_shim_keeps_nothing_of_its_last_process() {
    let d = Daemon::start();
    let mut served: BTreeMap<String, usize> = BTreeMap::new();
    for n in 0..12 {
        let (script, more) = KINDS[n % KINDS.len()];
        let proc = id(&d.sh_with(&format!("echo $PPID; {script}"), serde_json::from_str(more).unwrap()));
        if n % KINDS.len() == 0 {
            let wrote = d.ok("submit", json!({ "id": proc, "data": format!("line{n}"), "write_id": "the same" }));
            assert_eq!(wrote["duplicate"], false, "{wrote}");
        }
        let end = d.closed(&proc);
        let text = d.text(&proc);
        let (shim, text) = text.split_once('\n').unwrap();
        let end_of_process = (&end["reason"], &end["exit_code"], text.trim_end());
        match n % KINDS.len() {
            0 => assert_eq!(end_of_process, (&json!("exited"), &json!(3), format!("got line{n}").as_str())),
            1 => assert_eq!(end_of_process, (&json!("exited"), &json!(4), "11 22")),
            2 => assert_eq!((&end["exit_code"], &end["bytes"]), (&json!(5), &json!(300_001 + shim.len()))),
            _ => assert_eq!((end_of_process.0, end_of_process.2), (&json!("timeout"), "got x")),
        }
        *served.entry(shim.trim_end().to_string()).or_default() += 1;
    }
    assert!(served.values().any(|times| *times > 1), "no shim served twice: {served:?}");
}

/// The shim of a running process.
fn shim_of(d: &Daemon, proc: &str) -> Pidfd {
    Pidfd::open(d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32).unwrap()
}

#[test]
fn an_idle_shim_exits_with_its_daemon() {
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
fn a_shim_whose_daemon_died_serves_no_other_process() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let shim = shim_of(&d, &proc);
    d.kill9();
    d.spawn();
    d.ok("kill", json!({ "id": proc }));
    assert!(shim.dies_within(DEADLINE));
}

#[test]
fn a_shim_whose_zygote_died_serves_no_other_process() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let shim = shim_of(&d, &proc);
    let zygote = d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64().unwrap();
    Pidfd::open(zygote as i32).unwrap().signal(libc::SIGKILL);
    d.eventually("its end is noticed", || d.ok("daemon.info", json!({}))["features"]["zygote"] == json!(false));
    d.ok("kill", json!({ "id": proc }));
    assert!(shim.dies_within(DEADLINE));
}
