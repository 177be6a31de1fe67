//! A start that is canceled, or whose shim dies before it is known. A kill is answered with `starting` while the shim that has the launch cannot act: the program never runs afterwards,
//! whichever process dies meanwhile.

use crate::case_run::{end, tempfile_name};
use serde_json::json;
use std::fs;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::sys::Pidfd;

pub const POINT: &str = "kill.canceled";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dies {
    Nothing,
    Daemon,
    Shim,
    DaemonAndShim,
}

#[test]
fn a_canceled_start_never_runs() {
    std::thread::scope(|scope| {
        for at in ["spawn.locked", "spawn.launching"] {
            for dies in [Dies::Nothing, Dies::Daemon, Dies::Shim, Dies::DaemonAndShim] {
                scope.spawn(move || cancel(at, dies));
            }
        }
    });
}

/// The broken code left the kill in a queue that the shim reads once the program runs.
fn cancel(at: &str, dies: Dies) {
    let case = format!("{at} {dies:?}");
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let gate = |name: &str| hooks.join(name);
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let hit = |daemon: &Daemon, name: &str| -> i32 {
        let file = gate(&format!("{name}.hit"));
        daemon.eventually(&format!("{case}: {name} is reached"), || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    };
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; exec sleep 1000", marker.display());

    fs::write(gate(at), "").unwrap();
    let mut starts = daemon.conn();
    starts.request("exec", json!({ "argv": ["/bin/sh", "-c", script], "request_id": "the-one" }));
    let shim = Pidfd::open(hit(&daemon, at)).unwrap();
    let process = daemon.ids(json!({})).remove(0);
    fs::write(gate(POINT), "").unwrap();
    let mut kills = daemon.conn();
    let kill = kills.request("kill", json!({ "id": process, "grace_ms": 0 }));
    hit(&daemon, POINT);
    if matches!(dies, Dies::Daemon | Dies::DaemonAndShim) {
        daemon.kill9();
    }
    if matches!(dies, Dies::Shim | Dies::DaemonAndShim) {
        end(shim.pid);
    }
    fs::remove_file(gate(POINT)).unwrap();
    if matches!(dies, Dies::Daemon | Dies::DaemonAndShim) {
        daemon.spawn();
    } else {
        let killed = kills.answer(kill).unwrap();
        let expected = if dies == Dies::Shim { "killed" } else { "starting" };
        // Without its shim the start is over, and that may be known before the answer.
        let status = killed["status"].as_str().unwrap();
        assert!(status == expected || (dies == Dies::Shim && status != "survivors"), "{case}: {killed}");
    }
    fs::remove_file(gate(at)).unwrap();
    assert!(shim.dies_within(DEADLINE), "{case}: the shim runs something");
    daemon.eventually("it is over", || {
        let listed = daemon.ids(json!({}));
        listed.is_empty() || ["exited", "lost"].contains(&daemon.process(&process)["status"].as_str().unwrap())
    });
    assert!(!marker.exists(), "{case}: it ran after its kill was answered");
    if matches!(dies, Dies::Nothing) {
        let after = daemon.process(&process);
        assert_eq!(
            (&after["reason"], &after["failure"]["error"]),
            (&json!("failed_start"), &json!("ECANCELED")),
            "{after}"
        );
    }
    fs::remove_dir_all(&hooks).unwrap();
}

#[test]
fn a_start_whose_shim_dies_before_it_is_known_has_a_reason() {
    // The process was lost without a pid, an event of its start or a reason.
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let (gate, hit) = (hooks.join("spawn.launching"), hooks.join("spawn.launching.hit"));
    fs::write(&gate, "").unwrap();
    let mut starts = daemon.conn();
    let start = starts.request("exec", json!({ "argv": ["/bin/true"] }));
    daemon.eventually("the shim is about to start it", || hit.exists());
    end(fs::read_to_string(&hit).unwrap().parse().unwrap());
    fs::remove_file(&gate).unwrap();
    let p = starts.answer(start).unwrap();
    assert_eq!((&p["status"], &p["pid"]), (&json!("lost"), &json!(null)), "{p}");
    assert_eq!((&p["failure"]["step"], &p["failure"]["error"]), (&json!("launch"), &json!("EOWNERDEAD")), "{p}");
    fs::remove_dir_all(&hooks).unwrap();
}
