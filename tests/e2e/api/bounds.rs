//! Bounds on the texts of an `exec`, and answers that stay possible whatever the records hold.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

const LARGE: &str = "max_message_bytes = 67108864\n[exec]\nmax_argv_bytes = 16777216\nmax_labels_bytes = 16777216\n\
    max_key_bytes = 16777216\nmax_env_bytes = 16777216\n";

#[test]
fn a_text_over_its_bound_is_refused_by_parameter_and_config_key_and_nothing_is_recorded() {
    let d = Daemon::start();
    let long = |bytes: usize| "x".repeat(bytes);
    let cases: [(&str, &str, Value); 9] = [
        ("argv", "exec.max_argv_bytes", json!({ "argv": ["/bin/true", long(2 << 20)] })),
        ("command", "exec.max_argv_bytes", json!({ "command": long((2 << 20) + 1) })),
        ("env", "exec.max_env_bytes", json!({ "argv": ["/bin/true"], "env": { "X": long(2 << 20) } })),
        ("cwd", "exec.max_path_bytes", json!({ "argv": ["/bin/true"], "cwd": format!("/{}", long(4096)) })),
        ("name", "exec.max_name_bytes", json!({ "argv": ["/bin/true"], "name": long(65) })),
        ("request_id", "exec.max_key_bytes", json!({ "argv": ["/bin/true"], "request_id": long(4097) })),
        ("session_key", "exec.max_key_bytes", json!({ "argv": ["/bin/true"], "session_key": long(4097) })),
        ("labels", "exec.max_labels_bytes", json!({ "argv": ["/bin/true"], "labels": { "x": long(65_536) } })),
        ("watch", "exec.max_watch_bytes", json!({ "argv": ["/bin/true"], "watch": [long(65_536)] })),
    ];
    for (param, key, call) in cases {
        let error = d.refused(-32602, "invalid_params", "exec", call);
        assert_eq!((&error["data"]["param"], &error["data"]["limit"]), (&json!(param), &json!(key)), "{error}");
        assert!(error["message"].as_str().unwrap().len() < 300, "the value is not in the message");
    }
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    let fits = d.ok(
        "exec",
        json!({ "argv": ["/bin/true"], "labels": { "x": "y".repeat(60_000) }, "request_id": "r".repeat(4096) }),
    );
    assert_eq!(fits["cut"], json!(null), "{}", fits["cut"]);
}

/// The broken code had no bounds: twelve failed calls with 6 MB of arguments, or eleven labels of 8 MiB, and `list` failed
/// from then on.
#[test]
fn a_list_is_possible_whatever_the_records_hold() {
    let mut d = Daemon::start_with(LARGE, &[]);
    let long = "x".repeat(6_000_000);
    for _ in 0..12 {
        d.refused(-32006, "spawn_failed", "exec", json!({ "argv": ["no-such-program", long] }));
    }
    let labelled =
        json!({ "argv": ["/bin/true"], "labels": { "x": "y".repeat(8 << 20) }, "task_id": long, "name": "big" });
    let mut last = String::new();
    for _ in 0..4 {
        last = id(&d.ok("exec", labelled.clone()));
        d.closed(&last);
    }
    // Another daemon, with the default bounds, has to live with these records.
    d.kill9();
    fs::remove_file(d.root().join("config/toold/config.toml")).unwrap();
    d.spawn();
    let list = d.ok("list", json!({}));
    assert_eq!((&list["total"], list["processes"].as_array().unwrap().len()), (&json!(16), 16));
    assert!(list.to_string().len() < 1 << 20, "{} bytes", list.to_string().len());
    for process in list["processes"].as_array().unwrap() {
        let cut: Vec<&str> = process["cut"].as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect();
        let expected: &[&str] = if process["name"] == "big" { &["labels", "task_id"] } else { &["command", "argv"] };
        assert_eq!(cut, expected);
    }
    let shown = &list["processes"][15];
    assert!(shown["argv"][1].as_str().unwrap().ends_with('…') && shown["argv"][0] == "no-such-program");
    let output = d.ctl(&["list", "-a"]);
    assert_eq!(output.code, 0, "{output:?}");
    for verb in ["inspect", "poll"] {
        let one = d.ok(verb, json!({ "id": last }));
        assert!(one.to_string().len() < 8 << 20 && one["cut"] == json!(["labels", "task_id"]), "{}", one["cut"]);
    }
    assert_eq!(d.ok("list", json!({ "name": "big" }))["total"], 4);
}

#[test]
fn a_list_longer_than_an_answer_may_be_leaves_out_its_oldest_rows_and_counts_them() {
    let d = Daemon::start_with("max_outgoing_bytes = 65536\n", &[]);
    let ids: Vec<String> = (0..60).map(|_| d.sh("exit 0")).collect();
    let list = d.ok("list", json!({ "limit": 1000 }));
    let shown = list["processes"].as_array().unwrap().len();
    assert_eq!((&list["total"], list["omitted"].as_u64()), (&json!(60), Some(60 - shown as u64)), "{shown} rows");
    assert!(0 < shown && shown < 60);
    assert_eq!(list["processes"][0]["id"], ids[59].as_str(), "the newest are there");
}
