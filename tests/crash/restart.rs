//! A restart, and a daemon that is killed around it: never two runs at once, and the same call again completes it.

use crate::case_run::tempfile_name;
use serde_json::json;
use std::fs;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 2] = ["restart.checked", "restart.killed"];

#[test]
fn a_crash_at_any_step_of_a_restart_leaves_one_run_or_none_and_the_call_can_be_repeated() {
    std::thread::scope(|scope| POINTS.iter().for_each(|point| drop(scope.spawn(move || crash_at(point)))));
}

fn crash_at(point: &str) {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; exec sleep 1000", marker.display());
    let old = id(&daemon.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "name": "web" })));
    daemon.eventually("it runs", || marker.exists());

    fs::write(hooks.join(point), "").unwrap();
    let mut conn = daemon.conn();
    conn.request("restart", json!({ "id": "web" }));
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{point} is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    let runs = || fs::read_to_string(&marker).unwrap().lines().count();
    assert_eq!(runs(), 1, "{point}: nothing was started");
    let status = daemon.process(&old)["status"].clone();
    assert_eq!(status, if point == "restart.checked" { "running" } else { "exited" }, "{point}");
    let new = daemon.ok("restart", json!({ "id": "web" }));
    assert_eq!(new["restart_of"], json!(old), "{point}");
    daemon.eventually("the new one runs", || runs() == 2);
    assert_eq!(daemon.ids(json!({ "status": "running" })), [id(&new)], "{point}");
    fs::remove_dir_all(&hooks).unwrap();
}
