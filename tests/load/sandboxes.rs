//! A thousand confined processes, of which nothing is left.

use crate::footprint::nothing_runs;
use serde_json::json;
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::Daemon;
use toold_test_support::traces::traces;

const AT_ONCE: usize = 1000;
/// Each has namespaces of its own.
const SESSIONS: usize = 10;
/// Namespaces of a session: two of users, one each of shared memory, the network and mounts.
const OF_A_SESSION: usize = 5;

#[test]
fn no_mount_namespace_or_process_is_left_of_a_thousand_confined_processes() {
    let daemon = Daemon::start();
    // The daemon checks its sandbox some time after its start, and keeps the namespaces for a moment.
    daemon.eventually("the sandbox was checked", || daemon.ok("daemon.info", json!({}))["sandbox"].is_object());
    daemon.eventually("no namespace is kept", || procfs::kept_namespaces(daemon.pid()).is_empty());
    let (before, work) = (traces(&daemon), daemon.root().join("work"));
    fs::create_dir(&work).unwrap();
    let mut conn = daemon.conn();
    for n in 0..AT_ONCE / SESSIONS {
        let exec = |session| {
            json!({ "argv": ["sleep", "1000"], "cwd": work, "sandbox": "workspace-write",
                "session_key": format!("session {session}") })
        };
        let calls: Vec<u64> = (0..SESSIONS).map(|session| conn.request("exec", exec(session))).collect();
        for call in calls {
            let started = conn.answer(call).unwrap();
            assert_eq!(started["sandbox"]["not_enforced"], json!([]), "{n}: {started}");
        }
    }
    let during = traces(&daemon);
    let count = |kinds: &[&str]| {
        during.difference(&before).filter(|trace| kinds.iter().any(|kind| trace.starts_with(kind))).count()
    };
    // A program and its shim.
    assert_eq!(count(&["process "]), 2 * AT_ONCE);
    assert_eq!(count(&["user:", "ipc:", "net:", "mnt:"]), OF_A_SESSION * SESSIONS);
    assert_eq!(conn.call("kill", json!({ "all": true })).unwrap()["status"], "killed");
    drop(conn);
    nothing_runs(&daemon);
    let left = || traces(&daemon).difference(&before).cloned().collect::<Vec<String>>();
    daemon.eventually("nothing is left", || left().is_empty());
}
