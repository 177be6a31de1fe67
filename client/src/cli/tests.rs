//! Whole command lines, against a fake daemon.

use super::*;
use crate::testing::{FakeDaemon, Reply, process};
use serde_json::{Value, json};

#[test]
fn the_command_line_is_well_formed() {
    help::command().debug_assert();
}

/// Parses all examples, and lines that could be parsed differently, in both ways.
#[test]
fn a_verb_parsed_alone_gives_the_same_as_parsed_among_all() {
    let more = [
        "toolctl poll a --json",
        "toolctl poll --socket /s a",
        "toolctl poll -- -a",
        "toolctl exec --json -- ls --json",
        "toolctl exec ls -l --color=never",
        "toolctl run poll a",
        "toolctl list --color always",
        "toolctl log a -n 5 -f",
    ];
    let examples = help::all_examples();
    let lines: Vec<&str> = examples.iter().map(String::as_str).chain(more).collect();
    let mut alike = 0;
    for line in lines {
        for argv in help::command_lines(line) {
            let Some(alone) = parse_single_verb(&argv) else { continue };
            assert_eq!(format!("{alone:?}"), format!("{:?}", parse_all_verbs(&argv).expect("understood")), "{line}");
            alike += 1;
        }
    }
    assert!(alike > 30, "only {alike} were read alone");
    for wrong in [&["toolctl", "poll"][..], &["toolctl", "list", "--nonsense"], &["toolctl", "log", "--help"]] {
        assert!(parse_single_verb(&wrong.iter().map(Into::into).collect::<Vec<_>>()).is_none(), "{wrong:?}");
    }
}

#[test]
fn json_prints_the_result_s_very_bytes_wherever_the_flag_stands() {
    let odd = r#"{ "processes" :[ ],"total":0,  "new": 1.50e1 }"#;
    for args in [&["--json", "list"][..], &["list", "--json"]] {
        let fake = FakeDaemon::start(vec![vec![Reply::result(odd)]]);
        assert_eq!(test_run(&fake, args), (0, format!("{odd}\n"), String::new()));
    }
}

#[test]
fn errors_are_a_sentence_or_with_json_a_document_and_give_their_exit_code() {
    let kinds =
        [("invalid_params", -32602, 2), ("not_found", -32001, 3), ("ambiguous_id", -32001, 3), ("limit", -32004, 1)];
    for (kind, code, exit) in kinds {
        let error = json!({"code": code, "message": "do this", "data": {"kind": kind}});
        // After an id that is not found it lists the processes for a suggestion.
        let none = json!({"processes": [], "total": 0});
        let fake = FakeDaemon::start(vec![vec![Reply::error(&error), Reply::result(none)], vec![Reply::error(&error)]]);
        assert_eq!(test_run(&fake, &["inspect", "x"]), (exit, String::new(), "toolctl: do this\n".into()));
        let (again, out, err) = test_run(&fake, &["inspect", "x", "--json"]);
        assert_eq!((again, out.as_str()), (exit, ""));
        assert_eq!(serde_json::from_str::<Value>(&err).expect("one document"), error);
    }
}

#[test]
fn without_a_daemon_the_code_is_4_and_a_wrong_flag_is_2() {
    let fake = FakeDaemon::start(vec![vec![]]);
    let gone = fake.dir().join("none").display().to_string();
    let (code, _, err) = test_run(&fake, &["list", "--socket", &gone]);
    assert_eq!((code, err.starts_with("toolctl: no daemon at")), (4, true), "{err}");
    let (code, _, err) = test_run(&fake, &["shutdown", "--socket", &gone]);
    assert_eq!((code, err.contains("no daemon")), (4, true), "{err}");
    for args in [&["list", "--nonsense"][..], &["exec"], &["exec", "-c", "x", "--", "y"], &["kill"], &["forget"], &[]] {
        assert_eq!(test_run(&fake, args).0, 2, "{args:?}");
    }
}

#[test]
fn small_commands_send_their_arguments_and_print_the_result() {
    let id = "proc_0123456789ab";
    let cases: Vec<(&[&str], &str, Value, Value, &str)> = vec![
        (
            &["signal", "x", "hup"],
            "signal",
            json!({"id": "x", "signal": "SIGHUP"}),
            json!({"id": id, "signal": "SIGHUP"}),
            "sent SIGHUP",
        ),
        (
            &["submit", "x", "-1"],
            "submit",
            json!({"id": "x", "data": "-1"}),
            json!({"id": id, "bytes_written": 3, "complete": true, "duplicate": false}),
            "wrote 3 bytes",
        ),
        (
            &["write", "x", "y", "--write-id", "w"],
            "write",
            json!({"id": "x", "data": "y", "write_id": "w"}),
            json!({"id": id, "bytes_written": 1, "complete": true, "duplicate": true}),
            "written before",
        ),
        (
            &["keys", "x", "Esc", ":wq", "Enter", "--", "-n"],
            "write",
            json!({"id": "x", "keys": ["Esc", {"text": ":wq"}, "Enter", {"text": "-n"}]}),
            json!({"id": id, "bytes_written": 7, "complete": true, "duplicate": false}),
            "wrote 7 bytes",
        ),
        (
            &["screen", "x"],
            "screen",
            json!({"id": "x"}),
            json!({"id": id, "rows": 24, "cols": 80, "text": "row one\nrow two", "title": null, "alternate": false,
                "cursor": {"row": 1, "col": 7, "visible": true}, "next_cursor": 16}),
            "row one\nrow two\n",
        ),
        (&["close", "x"], "close", json!({"id": "x"}), json!({"id": id, "stdin": "closed"}), "stdin"),
        (
            &["resize", "x", "24x80"],
            "resize",
            json!({"id": "x", "rows": 24, "cols": 80}),
            json!({"id": id, "rows": 24, "cols": 80}),
            "24x80",
        ),
        (
            &["forget", "--older-than", "1h"],
            "forget",
            json!({"older_than_ms": 3600000}),
            json!({"forgotten": [id], "skipped": []}),
            "removed 1 process\n",
        ),
        (
            &["list", "--status", "lost", "--label", "a=b", "-n", "3"],
            "list",
            json!({"status": "lost", "label": "a=b", "usage": true, "limit": 1000000}),
            json!({"processes": [], "total": 0}),
            "COMMAND",
        ),
        (
            &["kill", "a", "b", "-s", "9", "--grace", "0"],
            "kill",
            json!({"ids": ["a", "b"], "signal": "SIGKILL", "grace_ms": 0}),
            json!({"status": "killed", "results": []}),
            "",
        ),
        (
            &["kill", "-9", "a"],
            "kill",
            json!({"id": "a", "signal": "SIGKILL"}),
            json!({"status": "killed", "results": []}),
            "",
        ),
        (&["kill", "--task", "t"], "kill", json!({"task_id": "t"}), json!({"status": "killed", "results": []}), ""),
        (
            &["log", "x", "-n", "5", "--grep", "e+", "--stream", "stderr", "--offset", "0"],
            "log",
            json!({"id": "x", "limit": 5, "grep": "e+", "stream": "stderr", "offset": 0}),
            json!({"id": id, "output": "text only", "total_lines": 1, "first_line": 0, "lines_shown": 1, "matched_lines": 1,
                "truncated": false, "gap": null}),
            "text only",
        ),
    ];
    for (args, method, params, result, printed) in cases {
        let fake = FakeDaemon::start(vec![vec![Reply::result(&result)]]);
        let (code, out, err) = test_run(&fake, args);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        assert!(out.contains(printed), "{args:?}: {out:?}");
        assert_eq!(fake.next_request(), (method.to_owned(), params), "{args:?}");
    }
}

#[test]
fn poll_prints_the_status_then_the_output_and_sends_its_options() {
    let result = process(json!({"output": "hello\n", "from": 3, "next_cursor": 9, "gap": null}));
    let fake = FakeDaemon::start(vec![vec![Reply::result(&result)]]);
    let args = ["poll", "x", "--cursor", "3", "--wait", "2s", "--stream", "stdout"];
    let (code, out, _) = test_run(&fake, &args);
    assert_eq!(
        (code, out.as_str()),
        (0, "id: proc_0123456789ab\nstate: running\nstatus: running\nclosed: false\nnext_cursor: 9\n\nhello\n")
    );
    let asked = json!({"id": "x", "cursor": 3, "wait_ms": 2000, "stream": "stdout"});
    assert_eq!(fake.next_request(), ("poll".into(), asked));
}
