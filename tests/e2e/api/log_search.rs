//! `log` without `id`: the lines of several logs that match.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Starts a process that prints these lines, and waits for its end.
fn printed(d: &Daemon, name: Option<&str>, lines: &str) -> String {
    let process = id(&d.ok("exec", json!({ "argv": ["printf", "%s", lines], "name": name })));
    d.closed(&process);
    process
}

#[test]
fn matching_lines_of_all_logs_come_with_name_and_line_newest_process_first() {
    let mut d = Daemon::start();
    let build = printed(&d, Some("build"), "start\nerror: one\nfine\nerror: two\n");
    let plain = printed(&d, None, "error: three");
    printed(&d, Some("clean"), "nothing here\n");
    let web = id(&d.sh_with("echo error: four; exec sleep 1000", json!({ "name": "web" })));
    d.printed(&web, "four");
    let found =
        |id: &str, name: Value, line: u64, text: &str| json!({ "id": id, "name": name, "line": line, "text": text });
    let expected = json!({
        "id": null,
        "output": format!("web:0:error: four\n{plain}:0:error: three\nbuild:1:error: one\nbuild:3:error: two\n"),
        "total_lines": 7, "first_line": 0, "lines_shown": 4, "matched_lines": 4, "next_offset": null,
        "truncated": false, "gap": null,
        "matches": [
            found(&web, json!("web"), 0, "error: four"),
            found(&plain, Value::Null, 0, "error: three"),
            found(&build, json!("build"), 1, "error: one"),
            found(&build, json!("build"), 3, "error: two"),
        ],
        "searched": 4, "unsearched": 0,
    });
    assert_eq!(d.ok("log", json!({ "grep": "^error" })), expected);
    d.restart();
    assert_eq!(d.ok("log", json!({ "grep": "^error" })), expected, "the next daemon finds the same");
    let some = d.ok("log", json!({ "ids": ["build", "web"], "grep": "two|four" }));
    assert_eq!(some["output"], "build:3:error: two\nweb:0:error: four\n", "in the order of the call");
    let line = &some["matches"][0]["line"];
    assert_eq!(d.ok("log", json!({ "id": "build", "offset": line, "limit": 1 }))["output"], "error: two\n");
}

#[test]
fn the_answer_is_bounded_and_counts_what_is_missing() {
    let d = Daemon::start();
    let old = printed(&d, Some("old"), "x\n");
    let new = printed(&d, Some("new"), "x 1\nx 2\nx 3\n");
    let answer = d.ok("log", json!({ "grep": "x", "limit": 2 }));
    assert_eq!(answer["output"], "new:1:x 2\nnew:2:x 3\n", "the last ones of the newest");
    assert_eq!(
        (&answer["truncated"], &answer["searched"], &answer["unsearched"]),
        (&json!(true), &json!(1), &json!(1))
    );
    // Many long lines.
    let script = "import sys\nfor n in range(60): print(n, 'y' * 60000)";
    let long = id(&d.ok("exec", json!({ "argv": ["python3", "-c", script] })));
    d.closed(&long);
    let answer = d.ok("log", json!({ "grep": "y" }));
    assert!(answer["truncated"] == true && answer["output"].as_str().unwrap().len() < 1_200_000);
    d.ok("forget", json!({ "ids": [old, new, long] }));
    assert_eq!(d.ok("log", json!({ "grep": "x" }))["matches"], json!([]));
}

#[test]
fn escape_sequences_streams_and_redraws_are_as_in_one_log() {
    let d = Daemon::start();
    let process = id(&d.sh_with(
        "printf '\\033[31mred\\033[0m one\\n'; printf 'red two\\n' >&2; printf '10%%\\rred 100%%\\n'",
        json!({ "name": "p" }),
    ));
    d.closed(&process);
    let texts = |params: Value| -> Vec<String> {
        let answer = d.ok("log", params);
        answer["matches"].as_array().unwrap().iter().map(|found| found["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(json!({ "grep": "red (one|100)" })), ["red one", "red 100%"]);
    assert_eq!(texts(json!({ "grep": "red", "stream": "stderr" })), ["red two"]);
    assert_eq!(texts(json!({ "grep": "one", "ansi": "keep" })), ["\u{1b}[31mred\u{1b}[0m one"]);
}

#[test]
fn secrets_are_hidden_on_request() {
    let d = Daemon::start();
    let secret = "hunter2-hunter2-hunter2";
    let process = id(&d.sh_with("echo token is $MY_TOKEN; exec sleep 1000", json!({ "env": { "MY_TOKEN": secret } })));
    d.printed(&process, secret);
    assert!(d.ok("log", json!({ "grep": "token" })).to_string().contains(secret));
    let hidden = d.ok("log", json!({ "grep": "token", "redact": true }));
    assert!(hidden["lines_shown"] == 1 && !hidden.to_string().contains(secret), "{hidden}");
}

#[test]
fn a_search_needs_a_pattern_and_takes_no_place_in_one_log() {
    let d = Daemon::start();
    let process = printed(&d, Some("p"), "x\n");
    d.refused_param("grep", "log", json!({}));
    d.refused_param("grep", "log", json!({ "ids": ["p"] }));
    d.refused_param("grep", "log", json!({ "grep": "(" }));
    d.refused_param("offset", "log", json!({ "grep": "x", "offset": 1 }));
    d.refused_param("tail_lines", "log", json!({ "grep": "x", "tail_lines": 1 }));
    d.refused_param("ids", "log", json!({ "grep": "x", "ids": [] }));
    d.refused_param("id", "log", json!({ "grep": "x", "id": process, "ids": [process] }));
    d.refused(-32001, "not_found", "log", json!({ "grep": "x", "ids": ["missing"] }));
}

#[test]
fn the_command_line_searches_all_logs() {
    let d = Daemon::start();
    printed(&d, Some("build"), "ok\nerror: \x1b[2Jone\n");
    printed(&d, Some("test"), "error: two\n");
    let found = d.ctl(&["log", "--all", "--grep", "error"]);
    assert_eq!(
        (found.code, found.stdout.as_str(), found.stderr.as_str()),
        (0, "test:0:error: two\nbuild:1:error: one\n", "")
    );
    let found = d.ctl(&["log", "--all", "--grep", "error", "-n", "1"]);
    assert_eq!((found.code, found.stdout.as_str()), (0, "test:0:error: two\n"));
    assert!(found.stderr.contains("1 logs were not searched"), "{found:?}");
    let json = d.ctl(&["log", "build", "test", "--grep", "error", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["matches"].as_array().unwrap().len(), 2);
    for wrong in
        [&["log", "--all"][..], &["log", "--all", "build", "--grep", "x"], &["log", "--all", "--grep", "x", "-f"]]
    {
        assert_eq!(d.ctl(wrong).code, 2, "{wrong:?}");
    }
}
