//! `list`: newest first, filtered, limited, each with a preview.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

#[test]
fn the_newest_comes_first_also_after_a_restart() {
    let mut d = Daemon::start();
    let mut started: Vec<String> = (0..12).map(|_| d.sh("exit 0")).collect();
    started.reverse();
    assert_eq!(d.ids(json!({})), started);
    started.iter().for_each(|proc| drop(d.exited(proc)));
    d.restart();
    assert_eq!(d.ids(json!({})), started);
}

#[test]
fn each_process_has_a_preview_of_its_last_two_hundred_characters() {
    let d = Daemon::start();
    d.run("i=0; while [ $i -lt 300 ]; do printf é; i=$((i+1)); done");
    let list = d.ok("list", json!({}));
    let p = &list["processes"][0];
    assert_eq!((&p["preview"], &p["status"], &p["exit_code"]), (&json!("é".repeat(200)), &json!("exited"), &json!(0)));
    assert!(p.get("output").is_none(), "a preview is enough for a list");
}

#[test]
fn the_preview_of_a_full_screen_program_separates_its_rows() {
    // The broken code returned "row 1row 2-- INSERT --".
    let d = Daemon::start();
    let draw =
        "printf '\\033[?1049h\\033[2J\\033[1;5Hrow 1\\033[2;5H\\033[31mrow 2\\033[m\\033[24;1H-- INSERT --\\033[2;3H'";
    d.sh_with(&format!("{draw}; echo; exit 0"), json!({ "pty": true, "yield_ms": 60000 }));
    assert_eq!(d.ok("list", json!({}))["processes"][0]["preview"], "row 1\nrow 2\n-- INSERT --\n\r\n");
    assert!(d.ctl(&["list"]).stdout.ends_with("  -- INSERT --\n"), "{}", d.ctl(&["list"]).stdout);
    d.sh_with("i=0; while [ $i -lt 300 ]; do printf é; i=$((i+1)); done", json!({ "pty": true, "yield_ms": 60000 }));
    assert_eq!(d.ok("list", json!({}))["processes"][0]["preview"], "é".repeat(200));
}

#[test]
fn failed_selects_what_ended_badly_and_not_what_a_client_killed() {
    let d = Daemon::start();
    let (killed, runs) = (d.sh("exec sleep 1000"), d.sh("exec sleep 1000"));
    d.ok("kill", json!({ "id": killed }));
    let (code, signaled) = (id(&d.run("exit 3")), id(&d.run("kill -SEGV $$")));
    let well = id(&d.run("exit 0"));
    let error = d.refused(-32006, "spawn_failed", "exec", json!({ "argv": ["/no/such/program"] }));
    let unstarted = error["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(d.ids(json!({ "failed": true })), [&unstarted, &signaled, &code].map(String::as_str));
    assert_eq!(d.ids(json!({ "failed": true, "status": "running" })), Vec::<String>::new());
    let shown = |args: &[&str]| {
        let output = d.ctl(&[&["list"], args].concat());
        assert_eq!(output.code, 0, "{output:?}");
        [&killed, &runs, &code, &signaled, &well, &unstarted].map(|proc| output.stdout.contains(proc.as_str()))
    };
    for failed in [&["--failed"][..], &["--status", "failed"], &["--state", "failed"]] {
        assert_eq!(shown(failed), [false, false, true, true, false, true], "{failed:?}");
    }
    assert_eq!(d.ctl(&["list", "-q", "--failed"]).stdout, format!("{unstarted}\n{signaled}\n{code}\n"));
    assert_eq!(shown(&["--status", "killed"]), [true, false, false, false, false, false]);
    // The broken code took what the user had killed for the failure.
    d.ok("kill", json!({ "id": runs }));
    assert!(d.ctl(&["poll", "@failed"]).stdout.contains(&unstarted));
}

#[test]
fn filters_by_task_session_status_and_label_must_all_match() {
    let d = Daemon::start();
    let start = |script: &str, more: Value| id(&d.sh_with(script, more));
    let a = start(
        "exec sleep 1000",
        json!({ "task_id": "t", "session_key": "s", "labels": { "kind": "server", "env": "dev" } }),
    );
    let b = start("exec sleep 1000", json!({ "task_id": "t", "labels": { "kind": "client" } }));
    let c = start("exit 0", json!({ "session_key": "s", "labels": { "kinds": "server" } }));
    d.closed(&c);
    for (filter, expected) in [
        (json!({ "task_id": "t" }), vec![&b, &a]),
        (json!({ "session_key": "s" }), vec![&c, &a]),
        (json!({ "status": "running" }), vec![&b, &a]),
        (json!({ "status": "exited" }), vec![&c]),
        (json!({ "status": "lost" }), vec![]),
        (json!({ "label": "kind" }), vec![&b, &a]),
        (json!({ "label": "kind=server" }), vec![&a]),
        (json!({ "label": "kind=serve" }), vec![]),
        (json!({ "task_id": "t", "session_key": "s" }), vec![&a]),
        (json!({ "task_id": "T" }), vec![]),
    ] {
        assert_eq!(d.ids(filter.clone()).iter().collect::<Vec<_>>(), expected, "{filter}");
    }
    d.refused(-32602, "invalid_params", "list", json!({ "status": "dead" }));
}

#[test]
fn a_limit_keeps_the_newest_and_total_counts_all() {
    let d = Daemon::start();
    let mut started: Vec<String> = (0..5).map(|_| d.sh("exit 0")).collect();
    started.reverse();
    let list = d.ok("list", json!({ "limit": 2 }));
    let ids: Vec<String> = list["processes"].as_array().unwrap().iter().map(id).collect();
    assert_eq!((ids.as_slice(), &list["total"]), (&started[..2], &json!(5)));
}

#[test]
fn an_empty_daemon_lists_nothing() {
    let d = Daemon::start();
    assert_eq!(d.ok("list", json!({})), json!({ "processes": [], "total": 0 }));
}

#[test]
fn usage_is_listed_for_running_trees_and_only_on_request() {
    let d = Daemon::start();
    let busy = d.sh("sleep 1000 & while :; do :; done");
    let ended = id(&d.run("exit 0"));
    assert!(d.ok("list", json!({}))["processes"][0].get("usage").is_none());
    d.eventually("the loop used CPU time", || {
        let list = d.ok("list", json!({ "usage": true }));
        let of = |proc: &str| list["processes"].as_array().unwrap().iter().find(|p| p["id"] == proc).unwrap().clone();
        assert_eq!(of(&ended).get("usage"), None, "no member of it is running");
        let usage = &of(&busy)["usage"];
        usage["processes"] == 2 && usage["cpu_ms"].as_u64() > Some(0) && usage["rss_bytes"].as_u64() > Some(0)
    });
}

#[test]
fn names_are_filtered_by_pattern_and_processes_that_ended_long_ago_are_counted() {
    let d = Daemon::start();
    let named = |name: &str, script: &str| id(&d.sh_with(script, json!({ "name": name })));
    let (a, b) = (named("test-a", "exec sleep 1000"), named("test-b", "exit 0"));
    named("web", "exec sleep 1000");
    d.closed(&b);
    assert_eq!(d.ids(json!({ "name": "test-*" })), [b.clone(), a.clone()]);
    assert_eq!(d.ids(json!({ "name": "test-?", "status": "running" })), std::slice::from_ref(&a));
    assert!(d.ids(json!({ "name": "test" })).is_empty(), "a pattern matches the whole name");
    let hour = d.ok("list", json!({ "name": "test-*", "ended_within_ms": 3_600_000 }));
    assert_eq!((&hour["total"], &hour["older"]), (&json!(2), &json!(0)));
    d.eventually("its end is some milliseconds ago", || {
        let now = d.ok("list", json!({ "name": "test-*", "ended_within_ms": 1 }));
        (now["total"] == 1 && now["older"] == 1) && id(&now["processes"][0]) == a
    });
}

#[test]
fn a_long_list_is_complete_beside_other_answers_and_matches_the_schema() {
    let d = Daemon::start();
    let long = format!("exit 0 # {}", "x".repeat(4000));
    let mut started: Vec<String> = (0..80).map(|_| d.sh(&long)).collect();
    started.reverse();
    let mut conn = d.conn();
    let ask = |id: u32, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#) + "\n";
    conn.send_raw([ask(1, "daemon.info"), ask(2, "list"), ask(3, "list"), ask(4, "daemon.info")].concat().as_bytes());
    let answers: Vec<Value> = (0..4).map(|_| conn.recv()).collect();
    for (answer, n) in answers.iter().zip(1..) {
        assert_eq!(answer["id"], n, "in the order of the calls");
    }
    for list in [&answers[1]["result"], &answers[2]["result"]] {
        assert!(
            list.to_string().len() > 512 * 1024,
            "more than is collected before a write: {}",
            list.to_string().len()
        );
        assert_eq!(list["processes"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), started);
        let typed: toold_proto::results::ListResult = serde_json::from_value(list.clone()).expect("a list");
        assert_eq!(&serde_json::to_value(typed).expect("prints"), list);
    }
}
