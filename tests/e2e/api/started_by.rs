//! `started_by`: the client that started a process, kept with its record.

use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use toold_test_support::rig::{Daemon, id};

fn starter(d: &Daemon, process: &str) -> Value {
    d.process(process)["started_by"].clone()
}

fn uid() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn the_client_is_named_by_its_label_else_by_its_program_also_after_a_kill_of_the_daemon() {
    let mut d = Daemon::start();
    let own = std::process::id();
    let program = std::fs::read_to_string("/proc/self/comm").unwrap().trim().to_owned();
    let plain = d.sh("exec sleep 1000");
    let labelled = id(&d.sh_with("exit 0", json!({ "labels": { "client": "nvim" } })));
    d.closed(&labelled);
    let typed = d.ctl(&["exec", "--", "sleep", "1000"]).stdout.trim().to_owned();
    let by_label = json!({ "client": "nvim", "pid": own, "uid": uid() });
    let expected = [json!({ "client": program, "pid": own, "uid": uid() }), by_label];
    assert_eq!([starter(&d, &plain), starter(&d, &labelled)], expected);
    let by_toolctl = starter(&d, &typed);
    assert_eq!((&by_toolctl["client"], &by_toolctl["uid"]), (&json!("toolctl"), &json!(uid())));
    assert!(by_toolctl["pid"].as_i64().unwrap() > 1);
    d.kill9();
    d.spawn();
    assert_eq!([starter(&d, &plain), starter(&d, &labelled)], expected);
    assert_eq!(starter(&d, &typed), by_toolctl);
    let listed = d.ok("list", json!({ "fields": ["id", "started_by"] }));
    let found = listed["processes"].as_array().unwrap().iter().find(|p| p["id"] == labelled).unwrap();
    assert_eq!(found["started_by"], expected[1]);
}

#[test]
fn a_restart_by_policy_keeps_the_starter_and_a_restart_by_a_client_names_it() {
    let d = Daemon::start();
    let first = d.ctl(&["exec", "--name", "web", "--", "sleep", "1000"]).stdout.trim().to_owned();
    assert_eq!(starter(&d, &first)["client"], "toolctl");
    let again = id(&d.ok("restart", json!({ "id": first })));
    assert_eq!(starter(&d, &again)["pid"], std::process::id(), "this program asked for it");
    let policy = ["exec", "--restart", "always", "--name", "loop", "-c", "exit 0"];
    let first = d.ctl(&policy).stdout.trim().to_owned();
    let by = starter(&d, &first);
    d.eventually("it runs again", || {
        let runs = d.ok("list", json!({ "name": "loop" }));
        runs["processes"].as_array().unwrap().iter().any(|p| p["restart_of"] == first && p["started_by"] == by)
    });
    d.ok("kill", json!({ "name": "loop" }));
}
