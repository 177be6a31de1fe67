//! Rate limits of watches: the interval, strikes, and the breaker over all processes.

use crate::api::events::{all, kinds, until};
use crate::api::watch::matches;
use serde_json::{Value, json};
use toold_test_support::rig::{DEADLINE, Daemon, id};

/// Prints a matching line whenever a line is submitted, and `done` after it.
const ECHO: &str = "while read -r x; do echo \"NEEDLE $x\"; echo \"done $x\"; done";

fn echo(d: &Daemon) -> String {
    id(&d.sh_with(ECHO, json!({ "watch": ["NEEDLE"], "stdin": "pipe" })))
}

/// Makes it match once, and waits until the match was scanned.
#[track_caller]
fn hit(d: &Daemon, process: &str, text: &str) {
    let before = d.process(process)["watch"]["hits"].as_u64().unwrap();
    d.ok("submit", json!({ "id": process, "data": text }));
    d.eventually("the match was looked at", || {
        let watch = d.process(process)["watch"].clone();
        watch["hits"].as_u64().unwrap() > before || watch["disabled"] == true
    });
}

#[test]
fn matches_inside_the_interval_are_counted_and_reported_with_the_next_one() {
    let d = Daemon::start_with("[watch]\nmin_interval_ms = 600\n", &[]);
    let process = echo(&d);
    for text in ["1", "2", "3", "4"] {
        hit(&d, &process, text);
    }
    let watch = d.process(&process)["watch"].clone();
    assert_eq!((&watch["hits"], &watch["suppressed"], &watch["strikes"]), (&json!(4), &json!(3), &json!(1)));
    assert_eq!(watch["state"], "cooldown");
    assert!(watch["note"].as_str().unwrap().contains("since: 3"), "{watch}");
    assert!(watch["quiet_ms"].as_u64().unwrap() <= 600);
    d.eventually("the interval is over", || d.process(&process)["watch"]["state"] == "watching");
    hit(&d, &process, "5");
    let published: Vec<Value> = matches(&d).iter().map(|e| json!([e["output"], e["suppressed"]])).collect();
    assert_eq!(published, [json!(["NEEDLE 1", 0]), json!(["NEEDLE 5", 3])]);
}

#[test]
fn three_intervals_in_a_row_with_drops_end_the_watch_and_turn_notify_on() {
    let d = Daemon::start_with("[watch]\nmin_interval_ms = 300\n", &[]);
    let process = echo(&d);
    for window in 0..3 {
        d.eventually("the interval is over", || d.process(&process)["watch"]["state"] == "watching");
        hit(&d, &process, &format!("{window} published"));
        hit(&d, &process, &format!("{window} dropped"));
    }
    let now = d.process(&process);
    assert_eq!((&now["watch"]["disabled"], &now["notify"]), (&json!(true), &json!(true)), "{now}");
    assert_eq!((&now["watch"]["state"], &now["watch"]["strikes"]), (&json!("disabled"), &json!(3)));
    hit(&d, &process, "ignored");
    d.ok("close", json!({ "id": process }));
    d.closed(&process);
    until(&d, "c", json!({ "types": ["completion"] }));
    let seen: Vec<String> = kinds(&all(&d)).into_iter().filter(|k| *k != "needs_input").map(String::from).collect();
    let expected =
        ["started", "watch_match", "watch_match", "watch_match", "watch_disabled", "exited", "closed", "completion"];
    assert_eq!(seen, expected);
    let disabled = until(&d, "d", json!({ "types": ["watch_disabled"] }));
    assert_eq!((&disabled["suppressed"], &disabled["id"]), (&json!(1), &json!(process)));
    assert!(disabled["message"].as_str().unwrap().contains("notify"));
}

#[test]
fn an_interval_without_a_drop_resets_the_strikes() {
    let d = Daemon::start_with("[watch]\nmin_interval_ms = 300\n", &[]);
    let process = echo(&d);
    for drops in [true, true, false, true, true] {
        d.eventually("the interval is over", || d.process(&process)["watch"]["state"] == "watching");
        hit(&d, &process, "published");
        if drops {
            hit(&d, &process, "dropped");
        }
    }
    let watch = d.process(&process)["watch"].clone();
    assert_eq!((&watch["disabled"], &watch["strikes"]), (&json!(false), &json!(2)), "{watch}");
}

const BREAKER: &str = "[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 3\nglobal_window_ms = 60000\n";

#[test]
fn too_many_matches_over_all_processes_trip_the_breaker_which_resets_after_its_window() {
    let d = Daemon::start_with(&format!("{BREAKER}global_cooldown_ms = 700\n"), &[]);
    let (a, b) = (echo(&d), echo(&d));
    for text in ["1", "2"] {
        hit(&d, &a, text);
        hit(&d, &b, text);
    }
    hit(&d, &a, "dropped");
    let info = d.ok("daemon.info", json!({}))["watch"].clone();
    assert_eq!((&info["state"], &info["dropped"]), (&json!("silent"), &json!(2)), "{info}");
    assert_eq!(d.process(&a)["watch"]["state"], "silent");
    // Nothing matches any more, and the reset of the breaker is still published.
    let released = until(&d, "c", json!({ "types": ["watch_overflow_released"] }));
    assert_eq!(
        (&released["suppressed"], &released["id"], &released["session_key"]),
        (&json!(2), &Value::Null, &Value::Null)
    );
    assert_eq!(d.ok("daemon.info", json!({}))["watch"]["state"], "passing");
    hit(&d, &b, "again");
    let seen: Vec<String> = kinds(&all(&d)).into_iter().filter(|k| k.starts_with("watch_")).map(String::from).collect();
    let expected = ["match", "match", "match", "overflow_tripped", "overflow_released", "match"];
    assert_eq!(seen, expected.map(|k| format!("watch_{k}")));
    let last = matches(&d).pop().unwrap();
    assert_eq!(
        (&last["output"], &last["suppressed"]),
        (&json!("NEEDLE again"), &json!(1)),
        "its own drop is reported with it"
    );
}

#[test]
fn a_crash_resets_neither_the_window_nor_the_breaker() {
    let mut d = Daemon::start_with(&format!("{BREAKER}global_cooldown_ms = 3000\n"), &[]);
    let process = echo(&d);
    for text in ["1", "2"] {
        hit(&d, &process, text);
    }
    d.restart();
    assert_eq!(d.ok("daemon.info", json!({}))["watch"]["recent"], 2, "the window survives");
    hit(&d, &process, "3");
    hit(&d, &process, "dropped");
    d.restart();
    hit(&d, &process, "dropped too");
    let info = d.ok("daemon.info", json!({}))["watch"].clone();
    assert_eq!((&info["state"], &info["dropped"]), (&json!("silent"), &json!(2)), "{info}");
    let released = until(&d, "c", json!({ "types": ["watch_overflow_released"] }));
    assert_eq!(released["suppressed"], 2);
    assert_eq!(matches(&d).len(), 3);
    assert_eq!(all(&d).iter().filter(|e| e["type"] == "watch_overflow_tripped").count(), 1);
}

#[test]
fn a_crash_does_not_shorten_the_interval_of_a_process() {
    let mut d = Daemon::start_with(&format!("[watch]\nmin_interval_ms = {}\n", DEADLINE.as_millis()), &[]);
    let process = echo(&d);
    hit(&d, &process, "published");
    d.restart();
    hit(&d, &process, "dropped");
    let watch = d.process(&process)["watch"].clone();
    assert_eq!((&watch["hits"], &watch["suppressed"], &watch["strikes"]), (&json!(2), &json!(1), &json!(1)), "{watch}");
    d.restart();
    hit(&d, &process, "dropped too");
    let watch = d.process(&process)["watch"].clone();
    assert_eq!(
        (&watch["suppressed"], &watch["strikes"]),
        (&json!(2), &json!(1)),
        "one interval is one strike: {watch}"
    );
    assert_eq!(matches(&d).len(), 1);
}
