//! A start without an answer is discarded by the next daemon while its shim is still starting.

use crate::case_run::{end, tempfile_name};
use serde_json::json;
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

pub const POINT: &str = "recovery.discard";

/// The broken code released the record's lock before it removed the directory: a shim that started in between
/// ran the program unknown to the daemon, and the same request_id ran it again.
#[test]
fn a_late_shim_never_runs_a_discarded_start() {
    for daemon_dies_again in [false, true] {
        late_shim(daemon_dies_again);
    }
}

fn late_shim(daemon_dies_again: bool) {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let gate = |name: &str| hooks.join(name);
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; read -r x; exit 7", marker.display());
    let exec = json!({ "argv": ["/bin/sh", "-c", script], "stdin": "pipe", "request_id": "the-one" });

    fs::write(gate("shim.before_launch"), "").unwrap();
    let mut conn = daemon.conn();
    conn.request("exec", exec.clone());
    let hit = |name: &str| -> i32 {
        let file = gate(&format!("{name}.hit"));
        daemon.eventually(&format!("{name} is reached"), || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    };
    let shim = Pidfd::open(hit("shim.before_launch")).unwrap();
    daemon.kill9();

    fs::write(gate(POINT), "").unwrap();
    let mut second = daemon.command().spawn().unwrap();
    let hit = |name: &str| daemon.eventually(name, || gate(&format!("{name}.hit")).exists());
    hit(POINT);
    // The shim continues while the daemon is about to discard its record.
    fs::remove_file(gate("shim.before_launch")).unwrap();
    assert!(shim.dies_within(DEADLINE), "the late shim {} runs something: {}", shim.pid, procfs::name(shim.pid));
    second.kill().unwrap();
    second.wait().unwrap();
    if !daemon_dies_again {
        fs::remove_file(gate(POINT)).unwrap();
        daemon.spawn();
    } else {
        // Killed once more before it could discard: the third daemon does it.
        let mut third = daemon.command().spawn().unwrap();
        hit(POINT);
        end(third.id() as i32);
        third.wait().unwrap();
        fs::remove_file(gate(POINT)).unwrap();
        daemon.spawn();
    }
    assert_eq!(
        daemon.ids(json!({})),
        Vec::<String>::new(),
        "an unanswered start that never began is as if it never was"
    );
    let process = id(&daemon.ok("exec", exec));
    daemon.ok("close", json!({ "id": process }));
    assert_eq!(daemon.closed(&process)["exit_code"], 7);
    assert_eq!(fs::read_to_string(&marker).unwrap(), "ran\n", "it ran more than once");
    fs::remove_dir_all(&hooks).unwrap();
}
