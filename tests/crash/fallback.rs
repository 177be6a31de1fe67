//! After the zygote is killed, shims are started by exec, and everything works with them.

use crate::case_run::end;
use serde_json::json;
use toold_test_support::rig::{Daemon, id};

#[test]
fn after_the_zygote_is_killed_every_start_uses_an_executed_shim() {
    let mut daemon = Daemon::start();
    let gate = daemon.gate("gate");
    let early = daemon.sh(&format!("{}; exit 4", gate.wait()));
    let features = daemon.ok("daemon.info", json!({}))["features"].clone();
    assert_eq!((&features["zygote"], &features["pidfd_exit"]), (&json!(true), &json!(true)));
    end(features["zygote_pid"].as_i64().unwrap() as i32);
    daemon.eventually("the missing zygote is noticed", || {
        daemon.ok("daemon.info", json!({}))["features"]["zygote"] == json!(false)
    });
    assert_eq!(daemon.ok("daemon.info", json!({}))["features"]["zygote_pid"], json!(null));
    let ids: Vec<String> = (0..10).map(|n| daemon.sh(&format!("echo {n}; exit {n}"))).collect();
    for (n, process) in ids.iter().enumerate() {
        assert_eq!(daemon.closed(process)["exit_code"], n);
        assert_eq!(daemon.text(process), format!("{n}\n"));
    }
    gate.open();
    assert_eq!(daemon.closed(&early)["exit_code"], 4);
    // The next daemon has a zygote again.
    daemon.restart();
    assert_eq!(daemon.ok("daemon.info", json!({}))["features"]["zygote"], json!(true));
}

#[test]
fn with_shim_exec_there_is_no_zygote_and_processes_survive_the_daemon() {
    let mut daemon = Daemon::start_with("shim = \"exec\"\n", &[]);
    assert_eq!(daemon.ok("daemon.info", json!({}))["features"]["zygote"], json!(false));
    let process = id(&daemon.sh_with("read -r x; echo \"got $x\"; exit 5", json!({ "stdin": "pipe" })));
    daemon.restart();
    daemon.ok("submit", json!({ "id": process, "data": "hello" }));
    assert_eq!(daemon.closed(&process)["exit_code"], 5);
    assert_eq!(daemon.text(&process), "got hello\n");
}
