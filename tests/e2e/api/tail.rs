//! `tail_lines` and `collapse`: the last lines, and lines as they stood last, in every method that returns output.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Prints a progress line of 500 states, then two lines.
const PROGRESS: &str =
    "echo start; i=0; while [ $i -lt 500 ]; do i=$((i+1)); printf '\\r%d of 500' $i; done; echo; echo one; echo two";

fn ended(d: &Daemon, script: &str) -> String {
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "yield_ms": 60_000 })));
    d.closed(&proc);
    proc
}

/// Returns the output of every method that shows it, with these parameters.
fn outputs(d: &Daemon, script: &str, more: Value) -> [(&'static str, String); 4] {
    let proc = ended(d, script);
    let with = |params: Value| {
        let mut params = params;
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let text = |value: &Value| value["output"].as_str().unwrap().to_owned();
    let exec = json!({ "argv": ["/bin/sh", "-c", script], "yield_ms": 60_000 });
    [
        ("exec", text(&d.ok("exec", with(exec)))),
        ("poll", text(&d.ok("poll", with(json!({ "id": proc }))))),
        ("wait", text(&d.ok("wait", with(json!({ "id": proc, "until": "closed" })))["processes"][0])),
        ("log", text(&d.ok("log", with(json!({ "id": proc }))))),
    ]
}

/// Before, all 500 states were shown: 5.5 kB for what is 29 bytes on a screen.
#[test]
fn a_redrawn_line_is_shown_as_it_stood_last() {
    let d = Daemon::start();
    for (method, output) in outputs(&d, PROGRESS, json!({})) {
        assert_eq!(output, "start\n500 of 500\none\ntwo\n", "{method}");
    }
    for (method, output) in outputs(&d, "printf 'downloading\\rdone\\n'", json!({})) {
        assert_eq!(output, "doneloading\n", "{method}: a shorter redraw overwrites only what it covers");
    }
    for (method, output) in outputs(&d, "printf 'downloading\\r\\033[Kdone\\n'", json!({})) {
        assert_eq!(output, "done\n", "{method}: a sequence erased the rest");
    }
    for (method, output) in outputs(&d, "printf 'a\\r\\nb\\r\\n'", json!({})) {
        assert_eq!(output, "a\r\nb\r\n", "{method}: the end of a line redraws nothing");
    }
}

#[test]
fn all_states_are_shown_without_collapse() {
    let d = Daemon::start();
    for (method, output) in outputs(&d, "printf '10%%\\r20%%\\n'", json!({ "collapse": false })) {
        assert_eq!(output, "10%\r20%\n", "{method}");
    }
    let proc = ended(&d, "printf '10%%\\r20%%\\n'");
    for more in [json!({ "ansi": "keep" }), json!({ "ansi": "keep", "cursor": 0 })] {
        let mut params = json!({ "id": proc });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(d.ok("poll", params)["output"], "10%\r20%\n", "{more}: that is for a terminal");
    }
    assert_eq!(d.ok("poll", json!({ "id": proc, "encoding": "base64" }))["output"], "MTAlDTIwJQo=");
}

#[test]
fn the_last_lines_count_after_the_collapse() {
    let d = Daemon::start();
    for (method, output) in outputs(&d, PROGRESS, json!({ "tail_lines": 3 })) {
        assert_eq!(output, "500 of 500\none\ntwo\n", "{method}");
    }
    for (method, output) in outputs(&d, "seq 1 5000", json!({ "tail_lines": 2 })) {
        assert_eq!(output, "4999\n5000\n", "{method}");
    }
    for (method, output) in outputs(&d, "seq 1 5000; printf open", json!({ "tail_lines": 2 })) {
        assert_eq!(output, "5000\nopen", "{method}: a line without a newline is one");
    }
    for (method, output) in outputs(&d, "echo only", json!({ "tail_lines": 100_000 })) {
        assert_eq!(output, "only\n", "{method}");
    }
}

/// The bounds in characters and bytes count what is shown: the line before the progress is within them.
#[test]
fn a_long_progress_does_not_push_out_what_was_printed_before() {
    let d = Daemon::start();
    let script = "echo first; seq -f '%.0f of 60000' -s \"$(printf '\\r')\" 1 60000; echo last";
    let expected = "first\n60000 of 60000\nlast\n";
    for (method, output) in outputs(&d, script, json!({})) {
        assert_eq!(output, expected, "{method}");
    }
    let proc = ended(&d, script);
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "max_bytes": 1000 }));
    assert_eq!((&page["output"], &page["next_cursor"]), (&json!(expected), &page["cursor"]));
    let fitted =
        d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "yield_ms": 60_000, "max_output_tokens": 20 }));
    assert_eq!((&fitted["output"], &fitted["truncated"]), (&json!(expected), &Value::Null));
}

#[test]
fn an_exec_with_the_last_lines_reports_the_part_before_them() {
    let d = Daemon::start();
    let result = d.ok("exec", json!({ "argv": ["seq", "1", "100"], "yield_ms": 60_000, "tail_lines": 1 }));
    assert_eq!(result["output"], "100\n");
    let (bytes, cut) = (result["bytes"].as_u64().unwrap(), &result["truncated"]);
    assert_eq!((&cut["from"], &cut["to"]), (&json!(0), &json!(bytes - 4)), "{result}");
}

#[test]
fn the_last_lines_after_a_cursor_are_only_those() {
    let d = Daemon::start();
    let proc = ended(&d, "seq 1 9");
    let poll = |cursor: u64| d.ok("poll", json!({ "id": proc, "cursor": cursor, "tail_lines": 2 }));
    let page = poll(0);
    assert_eq!((&page["output"], &page["from"], &page["next_cursor"]), (&json!("8\n9\n"), &json!(14), &json!(18)));
    assert_eq!(poll(16)["output"], "9\n");
    assert_eq!(poll(18)["output"], "");
}

/// A client that follows a progress bar and joins the pages sees the same line as one that asks once.
#[test]
fn pages_of_a_growing_line_continue_it() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("printf '10%%\\r20%%\\r'; {}; printf '30%%\\r'; printf 'ok\\n'", gate.wait());
    let proc = d.sh(&script);
    let first = d.ok("poll", json!({ "id": proc, "cursor": 0, "wait_ms": 60_000 }));
    let (mut text, mut cursor) = (first["output"].as_str().unwrap().to_owned(), first["next_cursor"].clone());
    gate.open();
    d.closed(&proc);
    loop {
        let page = d.ok("poll", json!({ "id": proc, "cursor": cursor }));
        if page["output"] == "" {
            break;
        }
        text += page["output"].as_str().unwrap();
        cursor = page["next_cursor"].clone();
    }
    let mut row: Vec<char> = Vec::new();
    for state in text.trim_end().split('\r') {
        let rest = row.split_off(state.chars().count().min(row.len()));
        row = state.chars().chain(rest).collect();
    }
    assert_eq!(row.into_iter().collect::<String>(), "ok%", "{text:?}");
    assert_eq!(d.ok("log", json!({ "id": proc }))["output"], "ok%\n");
}

#[test]
fn wrong_parameters_are_refused_and_start_nothing() {
    let d = Daemon::start();
    let proc = ended(&d, "echo x");
    let refused = |method: &str, params: Value, param: &str| {
        let error = d.call(method, params.clone()).expect_err("refused");
        assert_eq!((&error["code"], &error["data"]["param"]), (&json!(-32602), &json!(param)), "{method} {params}");
    };
    for lines in [0, 100_001] {
        refused("exec", json!({ "argv": ["true"], "tail_lines": lines }), "tail_lines");
        refused("poll", json!({ "id": proc, "tail_lines": lines }), "tail_lines");
        refused("wait", json!({ "id": proc, "tail_lines": lines }), "tail_lines");
        refused("log", json!({ "id": proc, "tail_lines": lines }), "tail_lines");
    }
    refused("poll", json!({ "id": proc, "tail_lines": 1, "encoding": "base64" }), "tail_lines");
    refused("log", json!({ "id": proc, "tail_lines": 1, "offset": 0 }), "tail_lines");
    refused("log", json!({ "id": proc, "tail_lines": 1, "limit": 5 }), "tail_lines");
    refused("poll", json!({ "id": proc, "collapse": true, "ansi": "keep" }), "collapse");
    refused("poll", json!({ "id": proc, "collapse": true, "encoding": "base64" }), "collapse");
    refused("log", json!({ "id": proc, "collapse": true, "ansi": "keep" }), "collapse");
    refused("exec", json!({ "argv": ["true"], "collapse": 1 }), "collapse");
    assert_eq!(d.ok("list", json!({}))["total"], 1);
}

#[test]
fn the_last_lines_of_a_wait_are_bounded_more_tightly_for_many_processes() {
    let d = Daemon::start();
    let procs: Vec<String> = (0..5).map(|_| ended(&d, "seq 100000 120000")).collect();
    let longest = |ids: &[String]| {
        let waited = d.ok("wait", json!({ "ids": ids, "mode": "all", "tail_lines": 100_000 }));
        let outputs = waited["processes"].as_array().unwrap().iter().map(|one| one["output"].as_str().unwrap());
        assert!(outputs.clone().all(|output| output.ends_with("\n120000\n")));
        outputs.map(str::len).max().unwrap()
    };
    assert_eq!((longest(&procs[..4]), longest(&procs)), (64 * 1024, 8000));
}

#[test]
fn the_command_line_shows_the_last_lines() {
    let d = Daemon::start();
    let proc = ended(&d, "seq 1 50");
    let out = |args: &[&str]| {
        let output = d.ctl(args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        output.stdout
    };
    assert!(
        out(&["wait", &proc, "--tail", "2"]).ends_with(" exited 0\n49\n50\n"),
        "{}",
        out(&["wait", &proc, "--tail", "2"])
    );
    assert!(out(&["poll", &proc, "--tail", "1"]).ends_with("\n50\n"));
    assert_eq!(out(&["log", &proc, "--tail", "2"]), "49\n50\n");
    let short: Value = serde_json::from_str(&out(&["wait", &proc, "--tail", "1", "--fields", "output"])).unwrap();
    assert_eq!(short["processes"], json!([{ "output": "50\n" }]));
}

/// A suite of 3,000 tests of which two fail, as pytest prints it. Trial: 2.9 kB for `wait` alone.
#[test]
fn a_failing_suite_of_3000_lines_is_understood_for_less_than_1500_bytes() {
    let d = Daemon::start();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); r=PASSED; case $i in 1234|2345) r=FAILED;; esac; \
                  echo \"tests/test_mod_$((i / 50)).py::test_case_$i $r\"; done; \
                  echo; echo '=== short test summary info ==='; \
                  echo 'FAILED tests/test_mod_24.py::test_case_1234 - AssertionError: assert 3 == 4'; \
                  echo 'FAILED tests/test_mod_46.py::test_case_2345 - KeyError: name'; \
                  echo '=== 2 failed, 2998 passed in 12.3s ==='; exit 1";
    let mut conn = d.conn();
    let mut bytes = 0;
    // Requests count too: an agent writes them.
    let mut call = |method: &str, params: Value| -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string() + "\n";
        conn.send_raw(request.as_bytes());
        let answer = conn.line().unwrap();
        bytes += request.len() + answer.len();
        serde_json::from_slice::<Value>(&answer).unwrap()["result"].take()
    };
    std::fs::write(d.root().join("suite.sh"), script).unwrap();
    let argv = ["/bin/sh", d.root().join("suite.sh").to_str().unwrap()].map(String::from);
    let proc = call("exec", json!({ "argv": argv, "fields": ["id"] }))["id"].clone();
    let waited = call("wait", json!({ "id": proc, "tail_lines": 4, "until": "closed", "view": "short" }));
    let process = &waited["processes"][0];
    assert_eq!((&process["status"], &process["exit_code"]), (&json!("exited"), &json!(1)));
    assert!(process["output"].as_str().unwrap().ends_with("=== 2 failed, 2998 passed in 12.3s ===\n"), "{process}");
    let failed = call("log", json!({ "id": proc, "grep": "FAILED", "tail_lines": 4 }));
    let output = failed["output"].as_str().unwrap();
    assert_eq!((failed["matched_lines"].as_u64(), output.lines().count()), (Some(4), 4), "{failed}");
    assert!(output.contains("AssertionError: assert 3 == 4") && output.contains("KeyError: name"), "{output}");
    assert!(bytes <= 1500, "{bytes} bytes of JSON");
}
