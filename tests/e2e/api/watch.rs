//! `watch`: patterns over the output, by line, however the output is split.

use crate::api::events::{all, kinds, until};
use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// A daemon whose limiters suppress nothing.
pub fn open() -> Daemon {
    Daemon::start_with("[watch]\nmin_interval_ms = 0\nglobal_max = 1000000\nstrike_limit = 0\n", &[])
}

pub fn matches(d: &Daemon) -> Vec<Value> {
    all(d).into_iter().filter(|e| e["type"] == "watch_match").collect()
}

/// Every matched line, in order.
fn lines(d: &Daemon) -> Vec<String> {
    matches(d)
        .iter()
        .flat_map(|e| e["output"].as_str().unwrap().lines().map(String::from).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_matching_line_is_published_with_the_pattern_and_the_line() {
    let d = open();
    let more = json!({ "watch": ["ERROR", { "regex": "^warn(ing)?: \\d+$" }], "session_key": "s", "name": "n" });
    let process = id(&d.sh_with("echo fine; echo an ERROR here; sleep 0.1; echo warning: 17; echo xwarn: 1", more));
    d.closed(&process);
    let found = matches(&d);
    assert_eq!(found.len(), 2, "{found:#?}");
    let facts = |e: &Value| (e["pattern"].clone(), e["pattern_index"].clone(), e["output"].clone(), e["id"].clone());
    assert_eq!(facts(&found[0]), (json!("ERROR"), json!(0), json!("an ERROR here"), json!(process)));
    assert_eq!(facts(&found[1]), (json!("^warn(ing)?: \\d+$"), json!(1), json!("warning: 17"), json!(process)));
    assert_eq!((&found[0]["suppressed"], &found[0]["session_key"]), (&json!(0), &json!("s")));
    let watch = d.process(&process)["watch"].clone();
    assert_eq!((&watch["hits"], &watch["suppressed"], &watch["disabled"]), (&json!(2), &json!(0), &json!(false)));
    assert_eq!((&watch["state"], &watch["patterns"][0]), (&json!("ended"), &json!("ERROR")));
}

#[test]
fn a_pattern_split_over_writes_matches_once_and_never_across_lines_or_streams() {
    let d = open();
    let script = "printf NEE; sleep 0.1; printf 'DLE one\\n'; printf 'NEE\\nDLE'; printf '\\n'; \
                  printf 'NEE'; printf 'DLE' >&2; printf '\\n'; printf '\\n' >&2; \
                  printf 'NEE'; printf 'x\\n' >&2; printf 'DLE two\\n'";
    let process = id(&d.sh_with(script, json!({ "watch": ["NEEDLE"] })));
    d.closed(&process);
    assert_eq!(lines(&d), ["NEEDLE one", "NEEDLE two"]);
}

#[test]
fn the_last_line_without_a_newline_matches_at_the_exit() {
    let d = open();
    d.closed(&id(&d.sh_with("echo before; printf 'READY'", json!({ "watch": ["READY"] }))));
    assert_eq!(lines(&d), ["READY"]);
    assert_eq!(kinds(&all(&d)), ["started", "watch_match", "exited", "closed"]);
}

#[test]
fn colours_and_the_line_ends_of_a_terminal_do_not_hide_a_pattern() {
    let d = open();
    let more = json!({ "watch": ["okgo", { "regex": "^plain$" }], "pty": true });
    d.closed(&id(&d.sh_with("printf '\\033[32mok\\033[0mgo\\n'; echo plain", more)));
    assert_eq!(lines(&d), ["okgo", "plain"]);
}

#[test]
fn an_endless_line_is_searched_as_it_arrives_and_matches_once() {
    let d = open();
    let script = "head -c 300000 /dev/zero | tr '\\0' x; printf NEEDLE; head -c 300000 /dev/zero | tr '\\0' y; \
                  printf NEEDLE; head -c 200000 /dev/zero | tr '\\0' z; echo; echo NEEDLE";
    let process = id(&d.sh_with(script, json!({ "watch": ["NEEDLE"] })));
    d.closed(&process);
    assert_eq!(d.process(&process)["watch"]["hits"], 2);
}

#[test]
fn output_of_orphans_after_the_exit_never_matches() {
    let d = open();
    let gate = d.gate("later");
    let script = format!("echo NEEDLE own; ({}; echo NEEDLE orphan) & exit 0", gate.wait());
    let process = id(&d.sh_with(&script, json!({ "watch": ["NEEDLE"] })));
    d.exited(&process);
    gate.open();
    let closed = d.closed(&process);
    assert!(d.text(&process).contains("orphan"), "{closed}");
    assert_eq!(lines(&d), ["NEEDLE own"]);
}

#[test]
fn a_payload_is_the_first_twenty_lines_and_two_thousand_characters() {
    let d = Daemon::start();
    let process = id(&d.sh_with("seq -f 'NEEDLE %g' 1 100 > x; cat x; rm x", json!({ "watch": ["NEEDLE"] })));
    d.closed(&process);
    let event = until(&d, "c", json!({ "types": ["watch_match"] }));
    let first: Vec<String> = (1..=20).map(|n| format!("NEEDLE {n}")).collect();
    assert_eq!(event["output"], json!(first.join("\n")));
    assert_eq!(d.process(&process)["watch"]["hits"], 100);
    let long =
        id(&d.sh_with("printf NEEDLE; head -c 5000 /dev/zero | tr '\\0' x; echo", json!({ "watch": ["NEEDLE"] })));
    d.closed(&long);
    let event = until(&d, "d", json!({ "types": ["watch_match"], "id": long }));
    assert_eq!(event["output"].as_str().unwrap().chars().count(), 2000);
}

#[test]
fn an_invalid_pattern_is_rejected_before_anything_starts() {
    let d = open();
    let refused = |watch: Value| d.refused_param("watch", "exec", json!({ "argv": ["/bin/true"], "watch": watch }));
    refused(json!([""]));
    refused(json!(["a\nb"]));
    refused(json!([{ "regex": "(" }]));
    refused(json!([{ "regex": "(a{1000}){1000}" }]));
    refused(json!([{ "regexp": "a" }]));
    refused(json!(["ok", { "regex": "[" }]));
    refused(json!(7));
    refused(json!(vec!["x"; 1000]));
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert_eq!(all(&d), Vec::<Value>::new());
}

#[test]
fn a_watch_resumes_after_kill_9_with_nothing_lost_or_doubled() {
    let mut d = open();
    let script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo NEEDLE $i; printf 'NEE'; printf 'DLE-%s\\n' $i; \
                  [ $((i % 10)) -ne 0 ] || sleep 0.02; done";
    let process = id(&d.sh_with(script, json!({ "watch": ["NEEDLE"], "notify": true })));
    for _ in 0..6 {
        let seen = d.process(&process)["watch"]["hits"].as_u64().unwrap();
        d.eventually("it goes on", || {
            let now = d.process(&process);
            now["watch"]["hits"].as_u64().unwrap() > seen || now["status"] == "exited"
        });
        d.restart();
    }
    d.closed(&process);
    until(&d, "c", json!({ "types": ["completion"] }));
    assert_eq!(d.process(&process)["watch"]["hits"], 600);
    let published: u64 = matches(&d).iter().map(|e| e["matches"].as_u64().unwrap()).sum();
    assert_eq!(published, 600);
    let seqs: Vec<u64> = all(&d).iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

/// The broken code took the edges of a window in a long line for the edges of the line.
#[test]
fn the_edge_of_a_window_in_a_long_line_is_not_the_edge_of_the_line() {
    let d = open();
    for (pattern, before) in [("^a", 32768), ("^a", 65536), ("a$", 65516)] {
        let script = format!(
            "head -c {before} /dev/zero | tr '\\0' b; printf aaaaaaaaaaaaaaaaaaaa; head -c 200000 /dev/zero | tr '\\0' b; echo"
        );
        let more = json!({ "watch": [{ "regex": pattern }] });
        let process = id(&d.sh_with(&script, more));
        let wait = d.ok("wait", json!({ "id": process, "until": { "match": { "regex": pattern } } }));
        // A line that is still being written may end with its pattern for a moment, as a prompt does.
        assert!(wait["status"] == "exited" || pattern == "a$", "{pattern} {before}");
        d.closed(&process);
        assert_eq!(d.process(&process)["watch"]["hits"], 0, "{pattern} {before}");
    }
}

#[test]
fn output_that_was_dropped_before_it_was_scanned_is_counted_and_reported() {
    let mut d = Daemon::start_with("log_max_bytes = 1048576\n", &[]);
    let gate = d.gate("go");
    let process =
        id(&d.sh_with(&format!("{}; seq 1 1000000", gate.wait()), json!({ "watch": ["nothing"], "notify": true })));
    let program = d.program(&process);
    d.kill9();
    gate.open();
    assert!(program.dies_within(toold_test_support::rig::DEADLINE));
    d.spawn();
    let done = until(&d, "c", json!({ "types": ["completion"] }));
    let unseen = done["unseen_bytes"].as_u64().unwrap();
    assert!(unseen > 1_000_000, "{done}");
    let watch = d.process(&process)["watch"].clone();
    assert_eq!(watch["unseen_bytes"], unseen);
    assert!(watch["note"].as_str().unwrap().contains("dropped"), "{watch}");
}
