//! A request that is answered with a running process, and a daemon that is killed around it.

use crate::case_run::tempfile_name;
use serde_json::json;
use std::fs;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 2] = ["request.found", "request.recorded"];

/// The broken code remembered such a request in memory only: after `kill -9` and the end of the process, the same
/// request_id started a second one.
#[test]
fn a_request_that_got_a_running_process_gets_it_again_after_a_crash_at_any_step() {
    for point in POINTS {
        for killed_again in [false, true] {
            crash_at(point, killed_again);
        }
    }
}

fn crash_at(point: &str, killed_again: bool) {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; exec sleep 1000", marker.display());
    let exec = |request: &str| json!({ "argv": ["/bin/sh", "-c", script], "name": "web", "if_running": "return", "request_id": request });
    let web = id(&daemon.ok("exec", exec("first")));

    fs::write(hooks.join(point), "").unwrap();
    let mut conn = daemon.conn();
    conn.request("exec", exec("second"));
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{point} is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    // Before it was recorded, the process must still run to be the answer. From then on it is the answer for ever.
    let asked_again = || {
        let again = daemon.ok("exec", exec("second"));
        assert_eq!((&again["id"], &again["existing"]), (&json!(web), &json!(true)), "{point}: {again}");
        again
    };
    if point == "request.found" {
        assert_eq!(asked_again()["status"], "running");
    }
    daemon.ok("kill", json!({ "id": web }));
    assert_eq!(asked_again()["status"], "exited");
    if killed_again {
        daemon.restart();
        let again = daemon.ok("exec", exec("second"));
        assert_eq!((&again["id"], &again["status"]), (&json!(web), &json!("exited")), "{point}: {again}");
    }
    assert_eq!(fs::read_to_string(&marker).unwrap(), "ran\n", "{point}: it ran more than once");
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]));
    fs::remove_dir_all(&hooks).unwrap();
}
