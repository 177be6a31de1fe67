//! `log`: the output by line, from the start, from the end, and by pattern.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

fn lines(answer: &Value) -> Vec<&str> {
    answer["output"].as_str().unwrap().lines().collect()
}

fn numbers(from: u32, to: u32) -> Vec<String> {
    (from..=to).map(|n| n.to_string()).collect()
}

#[test]
fn without_an_offset_log_returns_the_last_lines() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 1000"));
    let log = d.ok("log", json!({ "id": proc }));
    assert_eq!(lines(&log), numbers(801, 1000));
    assert_eq!(
        (&log["total_lines"], &log["first_line"], &log["lines_shown"]),
        (&json!(1000), &json!(800), &json!(200))
    );
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "limit": 3 }))), ["998", "999", "1000"]);
}

#[test]
fn an_offset_counts_from_the_first_line_which_is_zero() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 1000"));
    let first = d.ok("log", json!({ "id": proc, "offset": 0 }));
    assert_eq!(
        (lines(&first), &first["first_line"]),
        (numbers(1, 200).iter().map(String::as_str).collect(), &json!(0))
    );
    let middle = d.ok("log", json!({ "id": proc, "offset": 500, "limit": 2 }));
    assert_eq!((lines(&middle), &middle["first_line"]), (vec!["501", "502"], &json!(500)));
    let last = d.ok("log", json!({ "id": proc, "offset": 999, "limit": 10 }));
    assert_eq!((lines(&last), &last["lines_shown"]), (vec!["1000"], &json!(1)));
    let past = d.ok("log", json!({ "id": proc, "offset": 5000 }));
    assert_eq!((&past["output"], &past["lines_shown"], &past["total_lines"]), (&json!(""), &json!(0), &json!(1000)));
}

#[test]
fn a_last_line_without_a_newline_is_a_line() {
    let d = Daemon::start();
    let proc = id(&d.run("printf 'one\\ntwo'"));
    let log = d.ok("log", json!({ "id": proc }));
    assert_eq!((lines(&log), &log["total_lines"], &log["lines_shown"]), (vec!["one", "two"], &json!(2), &json!(2)));
}

#[test]
fn no_output_has_no_line() {
    let d = Daemon::start();
    let log = d.ok("log", json!({ "id": id(&d.run("true")) }));
    assert_eq!((&log["output"], &log["total_lines"], &log["lines_shown"]), (&json!(""), &json!(0), &json!(0)));
}

#[test]
fn empty_lines_are_lines() {
    let d = Daemon::start();
    let log = d.ok("log", json!({ "id": id(&d.run("printf '\\n\\nx\\n\\n'")) }));
    assert_eq!((lines(&log), &log["total_lines"]), (vec!["", "", "x", ""], &json!(4)));
}

#[test]
fn grep_returns_only_the_matching_lines_and_counts_them() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 1000"));
    let last = d.ok("log", json!({ "id": proc, "grep": "7$", "limit": 2 }));
    assert_eq!((lines(&last), &last["matched_lines"]), (vec!["987", "997"], &json!(100)));
    assert_eq!((&last["first_line"], &last["lines_shown"]), (&json!(986), &json!(2)));
    let first = d.ok("log", json!({ "id": proc, "grep": "7$", "limit": 2, "offset": 0 }));
    assert_eq!((lines(&first), &first["first_line"]), (vec!["7", "17"], &json!(6)));
    let next = d.ok("log", json!({ "id": proc, "grep": "7$", "limit": 2, "offset": first["next_offset"] }));
    assert_eq!((&first["next_offset"], lines(&next), &next["first_line"]), (&json!(17), vec!["27", "37"], &json!(26)));
    let end = d.ok("log", json!({ "id": proc, "grep": "7$", "offset": 990 }));
    assert_eq!((lines(&end), &end["next_offset"], &end["matched_lines"]), (vec!["997"], &json!(null), &json!(100)));
    let none = d.ok("log", json!({ "id": proc, "grep": "no such line" }));
    assert_eq!((&none["output"], &none["matched_lines"], &none["total_lines"]), (&json!(""), &json!(0), &json!(1000)));
}

#[test]
fn grep_takes_a_regular_expression_and_rejects_an_invalid_one() {
    let d = Daemon::start();
    let proc = id(&d.run("echo 'error: a'; echo fine; echo 'Warning: b'"));
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "grep": "^error|(?i)warning" }))), ["error: a", "Warning: b"]);
    d.refused_param("grep", "log", json!({ "id": proc, "grep": "(" }));
}

#[test]
fn grep_matches_the_text_that_it_returns() {
    let d = Daemon::start();
    let proc = id(&d.run("printf '\\033[31mer\\033[1mror\\033[0m\\n'"));
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "grep": "^error$" }))), ["error"]);
}

#[test]
fn one_stream_can_be_selected() {
    let d = Daemon::start();
    let proc = id(&d.run("echo out1; echo err1 >&2; echo out2; echo err2 >&2"));
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "stream": "stderr" }))), ["err1", "err2"]);
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "stream": "stdout", "offset": 0 }))), ["out1", "out2"]);
    assert_eq!(d.ok("log", json!({ "id": proc }))["total_lines"], 4);
}

#[test]
fn escape_sequences_are_stripped_unless_kept() {
    let d = Daemon::start();
    let proc = id(&d.run("printf '\\033[31mred\\033[0m\\n'"));
    assert_eq!(lines(&d.ok("log", json!({ "id": proc }))), ["red"]);
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "ansi": "keep" }))), ["\u{1b}[31mred\u{1b}[0m"]);
}

#[test]
fn a_running_program_has_a_log_too() {
    let d = Daemon::start();
    let proc = d.sh("seq 1 10; exec sleep 1000");
    d.printed(&proc, "10");
    let log = d.ok("log", json!({ "id": proc, "limit": 2 }));
    assert_eq!((&log["id"], lines(&log), &log["total_lines"]), (&json!(proc), vec!["9", "10"], &json!(10)));
}

#[test]
fn an_incomplete_character_is_left_for_later() {
    let d = Daemon::start();
    let proc = d.sh("printf 'one\\ntwo\\342\\202'; exec sleep 1000");
    d.printed(&proc, "two");
    let log = d.ok("log", json!({ "id": proc }));
    assert_eq!((&log["output"], &log["total_lines"]), (&json!("one\ntwo"), &json!(2)));
    // It is not returned either after the other stream has printed more.
    let proc = d.sh("printf 'two\\342\\202'; echo err >&2; exec sleep 1000");
    d.printed(&proc, "err");
    assert_eq!(d.ok("log", json!({ "id": proc, "stream": "stdout" }))["output"], "two");
}

#[test]
fn a_line_of_a_mebibyte_does_not_hide_the_lines_around_it() {
    let d = Daemon::start();
    let proc = id(&d.run("echo before; head -c 1048576 /dev/zero | tr '\\0' x; echo; echo after"));
    let log = d.ok("log", json!({ "id": proc, "offset": 0, "limit": 1 }));
    assert_eq!((lines(&log), &log["total_lines"]), (vec!["before"], &json!(3)));
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "limit": 1 }))), ["after"]);
    assert_eq!(lines(&d.ok("log", json!({ "id": proc, "offset": 2 }))), ["after"]);
}
