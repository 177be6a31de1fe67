//! `log` against a fake daemon.

use crate::cli::test_run;
use crate::testing::{FakeDaemon, Reply, page, process};
use serde_json::{Value, json};

fn text_page(from: u64, output: &str, changes: Value) -> Value {
    let end = from + output.len() as u64;
    let mut document = process(json!({"output": output, "from": from, "next_cursor": end, "gap": null, "cursor": end}));
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

fn lines(output: &str, changes: Value) -> Value {
    let mut document = json!({"id": "proc_0123456789ab", "output": output, "total_lines": 9, "first_line": 0, "lines_shown": 1,
        "matched_lines": null, "next_offset": null, "truncated": false, "gap": null});
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

#[test]
fn following_shows_the_last_lines_then_new_ones_across_a_lost_connection() {
    let closed = json!({"status": "exited", "reason": "exited", "exit_code": 0, "closed": true});
    let fake = FakeDaemon::start(vec![
        vec![
            Reply::result(text_page(0, "a\nb\nc\n", json!({}))),
            Reply::result(text_page(0, "a\nb\nc\n", json!({}))),
            Reply::result(text_page(6, "d\n", json!({}))),
            Reply::HangUp,
        ],
        vec![Reply::result(text_page(8, "e", closed))],
    ]);
    assert_eq!(test_run(&fake, &["log", "x", "-f", "-n", "2"]), (0, "b\nc\nd\ne\n".into(), String::new()));
    let cursors: Vec<Value> = fake.requests().into_iter().map(|(_, params)| params["cursor"].clone()).collect();
    assert_eq!(cursors, [json!(null), json!(0), json!(6), json!(8), json!(8)]);
}

#[test]
fn options_that_contradict_each_other_are_a_usage_error() {
    let fake = FakeDaemon::start(vec![]);
    for wrong in [
        "-f --json",
        "--since 1m --json",
        "--raw --json",
        "--grep x -C 1 --json",
        "--grep (",
        "-f --grep (",
        "-C 1",
        "--since soon",
        "-f --until 1m",
        "--offset 1 --since 1m",
    ] {
        let args: Vec<&str> = ["log", "x"].into_iter().chain(wrong.split(' ')).collect();
        assert_eq!(test_run(&fake, &args).0, 2, "{wrong}");
    }
}

#[test]
fn context_is_picked_here_and_the_pattern_is_not_sent() {
    let text = "1\n2 x\n3\n4\n5 x\n";
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(text_page(0, text, json!({}))),
        Reply::result(text_page(0, text, json!({}))),
    ]]);
    let (code, out, err) = test_run(&fake, &["log", "x", "--grep", "x", "-B", "1"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "1\n2 x\n--\n4\n5 x\n", ""));
    assert!(fake.requests().iter().all(|(method, params)| method == "poll" && params.get("grep").is_none()));
}

#[test]
fn raw_is_the_very_bytes_and_not_one_more() {
    let bytes = b"\x1b[31m\xff\x07no end";
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(page(0, bytes, json!({}))),
        Reply::result(page(0, bytes, json!({}))),
    ]]);
    let mut out = Vec::new();
    let (code, _) = crate::cli::test_run_into(&mut out, crate::cli::Screen::None, &fake, &["log", "x", "--raw"]);
    assert_eq!((code, out.as_slice()), (0, &bytes[..]));
}

#[test]
fn colours_are_kept_when_asked_for_and_nothing_else_is() {
    let text = "\x1b[31mred\x1b[0m\x1b[2J\x07\u{202e}\n";
    let fake = FakeDaemon::start(vec![vec![Reply::result(lines(text, json!({})))]]);
    let (code, out, _) = test_run(&fake, &["log", "x", "-n", "9", "--color=always"]);
    assert_eq!((code, out.as_str()), (0, "\x1b[31mred\x1b[0m\\x07\\u{202e}\n"));
    assert_eq!(fake.next_request(), ("log".into(), json!({"id": "x", "limit": 9, "ansi": "keep"})));
}

#[test]
fn a_time_is_found_by_halving_and_its_line_is_shown_whole() {
    // Ten bytes a second from 1000 s on, a line every ten bytes, and a record that begins inside a line.
    let log: Vec<u8> = (0..40u8).map(|n| if n % 10 == 9 { b'\n' } else { b'a' + n / 10 }).collect();
    let answer = move |request: &Value| {
        let end = log.len() as u64;
        let cursor = request["cursor"].as_u64().unwrap_or(end);
        let most = request["max_bytes"].as_u64().unwrap_or(end);
        let bytes = &log[cursor as usize..(cursor + most).min(end) as usize];
        let record = cursor / 5 * 5;
        let spans = json!([{"stream": "stdout", "from": cursor, "to": cursor + 1, "at_ms": 1_000_000 + record * 100}]);
        if request["encoding"] == "base64" {
            page(cursor, bytes, json!({"cursor": end, "spans": spans}))
        } else {
            text_page(cursor, &String::from_utf8_lossy(bytes), json!({"cursor": end}))
        }
    };
    for (since, until, shown) in [
        (Some("1970-01-01T00:16:41.600Z"), None, "bbbbbbbbb\nccccccccc\nddddddddd\n"),
        (Some("1970-01-01T00:16:42.050Z"), None, "ccccccccc\nddddddddd\n"),
        (None, Some("1970-01-01T00:16:41.000Z"), "aaaaaaaaa\nbbbbb\n"),
        (Some("1970-01-01T00:16:42.100Z"), Some("1970-01-01T00:16:42.900Z"), "ccccccccc\n"),
        (Some("1970-01-01T01:00:00.000Z"), None, ""),
        (None, Some("1970-01-01T00:00:00.000Z"), ""),
    ] {
        let fake = FakeDaemon::answering(answer.clone());
        let mut args = vec!["log", "x"];
        args.extend(since.iter().flat_map(|since| ["--since", *since]));
        args.extend(until.iter().flat_map(|until| ["--until", *until]));
        assert_eq!(test_run(&fake, &args), (0, shown.into(), String::new()), "{args:?}");
    }
}

#[test]
fn an_answer_that_was_cut_to_fit_is_read_by_cursor_instead() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(lines("half", json!({"truncated": true}))),
        Reply::result(text_page(0, "a\nb\n", json!({}))),
        Reply::result(text_page(0, "a\nb\n", json!({}))),
    ]]);
    assert_eq!(test_run(&fake, &["log", "x", "-n", "5"]), (0, "a\nb\n".into(), String::new()));
    assert_eq!(fake.requests().len(), 3);
}

#[test]
fn lines_from_an_offset_come_page_by_page_to_the_end() {
    let pages = || {
        let more = json!({"truncated": true, "next_offset": 7, "lines_shown": 2});
        vec![vec![Reply::result(lines("5\n6\n", more)), Reply::result(lines("7\n", json!({})))]]
    };
    for (args, limits) in [(&["--offset", "5"][..], [100_000, 100_000]), (&["--offset", "5", "-n", "3"], [3, 1])] {
        let fake = FakeDaemon::start(pages());
        assert_eq!(test_run(&fake, &[&["log", "x"], args].concat()), (0, "5\n6\n7\n".into(), String::new()));
        let asked: Vec<Value> = fake.requests().into_iter().map(|(_, params)| params).collect();
        let expected = [(5, limits[0]), (7, limits[1])];
        assert_eq!(asked, expected.map(|(offset, limit)| json!({"id": "x", "offset": offset, "limit": limit})));
    }
    let fake = FakeDaemon::start(pages());
    assert_eq!(test_run(&fake, &["log", "x", "--offset", "5", "-n", "2"]), (0, "5\n6\n".into(), String::new()));
}

#[test]
fn a_program_is_given_all_page_by_page_and_no_more_than_there_was_at_first() {
    // Ten bytes a page, and the process continues to print.
    let fake = FakeDaemon::answering(|request: &Value| {
        let from = request["cursor"].as_u64().expect("no page without a cursor");
        text_page(from, "123456789\n", json!({"cursor": 30 + from}))
    });
    assert_eq!(test_run(&fake, &["log", "x"]), (0, "123456789\n".repeat(3), String::new()));
    let asked: Vec<Value> = fake.requests().into_iter().map(|(_, params)| params["max_bytes"].clone()).collect();
    assert_eq!(asked, [json!(1 << 20), json!(20), json!(10)]);
}
