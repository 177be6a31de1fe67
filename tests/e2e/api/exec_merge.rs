//! `exec` with `merge`: one pipe for both streams, in which their order is exact.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Alternates between the streams, in a burst.
const BURST: &str = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";

fn expected() -> String {
    (0..500).map(|n| format!("o{n}\ne{n}\n")).collect()
}

#[test]
fn merged_streams_are_one_stdout_in_the_exact_order() {
    // With two pipes the order of a burst is lost: `1 3 5 2 4` in most runs of five lines.
    let d = Daemon::start();
    let proc = id(&d.sh_with(BURST, json!({ "merge": true })));
    assert_eq!(d.closed(&proc)["exit_code"], 0);
    assert_eq!(d.text(&proc), expected());
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "spans": true }));
    let streams = page["spans"].as_array().unwrap();
    assert!(!streams.is_empty() && streams.iter().all(|span| span["stream"] == "stdout"), "{streams:?}");
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": "stderr" }))["output"], "");
}

#[test]
fn a_merged_process_survives_the_daemon_and_a_terminal_is_merged_already() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo first; {}; {BURST}", gate.wait());
    let proc = id(&d.sh_with(&script, json!({ "merge": true })));
    d.printed(&proc, "first");
    d.kill9();
    d.spawn();
    gate.open();
    d.closed(&proc);
    assert_eq!(d.text(&proc), format!("first\n{}", expected()));
    let proc = id(&d.sh_with("stty -opost; echo out; echo err >&2", json!({ "merge": true, "pty": true })));
    d.closed(&proc);
    assert_eq!(d.text(&proc), "out\nerr\n");
    d.refused_param("merge", "exec", json!({ "argv": ["true"], "merge": "yes" }));
    assert_eq!(d.ids(json!({})).len(), 2, "nothing was started");
}

#[test]
fn run_and_exec_have_the_option_merge() {
    let d = Daemon::start();
    let output = d.ctl(&["run", "--merge", "--", "sh", "-c", BURST]);
    assert_eq!((output.code, output.stdout, output.stderr), (0, expected(), String::new()));
    let started = d.ctl(&["exec", "--merge", "--", "sh", "-c", BURST]);
    let proc = started.stdout.trim().to_owned();
    d.closed(&proc);
    assert_eq!(d.text(&proc), expected());
    let kept: Value = d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": "stderr" }));
    assert_eq!(kept["output"], "");
}
