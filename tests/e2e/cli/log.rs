//! `log` for people: by time, by pattern, followed, through a pager.

use crate::TOOLCTL;
use serde_json::json;
use std::io::{BufRead, BufReader};
use toold_proto::time::rfc3339;
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon, id};

#[test]
fn a_reader_that_leaves_after_the_first_line_causes_no_error() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 200000"));
    for args in [
        vec!["log", &proc],
        vec!["log", &proc, "-n", "100000"],
        vec!["log", &proc, "--since", "1h"],
        vec!["log", &proc, "--raw", "-n", "150000"],
    ] {
        let mut child = d.ctl_command(&args).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let output = output_of(child);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_follower_whose_reader_is_gone_exits_without_waiting_for_output() {
    let d = Daemon::start();
    let proc = d.sh("echo first; exec sleep 1000");
    d.printed(&proc, "first");
    let mut child = d.ctl_command(&["log", &proc, "-f"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = output_of(child);
    assert_eq!((line.as_str(), output.code, output.stderr.as_str()), ("first\n", 0, ""));
}

#[test]
fn follow_survives_a_killed_daemon_with_nothing_lost_and_nothing_doubled() {
    let mut d = Daemon::start();
    let (gate, report, end) = (d.gate("go"), d.gate("report"), d.gate("end"));
    let script =
        format!("echo first; {}; seq 1 3000; {}; {}; echo last", gate.wait(), report.send("printed"), end.wait());
    let proc = d.sh(&script);
    d.printed(&proc, "first");
    // The test restarts the daemon; toolctl would do that too, after a second.
    let mut child = d.ctl_command(&["--no-autostart", "log", &proc, "-f"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();
    d.kill9();
    gate.open();
    assert_eq!(report.recv(DEADLINE), "printed", "the program writes while no daemon runs");
    d.spawn();
    end.open();
    while stdout.read_line(&mut text).unwrap() > 0 {}
    let output = output_of(child);
    let expected: String = (1..=3000).map(|n| format!("{n}\n")).collect();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(text == format!("first\n{expected}last\n"), "{} bytes", text.len());
}

#[test]
fn since_and_until_select_output_by_time() {
    let d = Daemon::start();
    let proc = id(&d.run("echo old; sleep 0.5; printf 'ne'; sleep 0.5; echo w; sleep 0.5; echo last >&2"));
    let spans = d.ok("poll", json!({ "id": proc, "cursor": 0, "spans": true }))["spans"].clone();
    let at = |n: usize| rfc3339(spans[n]["at_ms"].as_u64().unwrap());
    assert_eq!(spans.as_array().unwrap().len(), 4, "{spans}");
    let log = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    assert_eq!(log(&["--since", &at(2)]), "new\nlast\n", "a line is printed whole");
    assert_eq!(log(&["--until", &at(0)]), "old\n");
    assert_eq!(log(&["--since", &at(1), "--until", &at(2)]), "new\n");
    assert_eq!(log(&["--since", "1h", "-n", "1"]), "last\n");
    assert_eq!(log(&["--since", "1h", "--stream", "stderr"]), "last\n");
    assert_eq!(log(&["--since", "2000-01-01", "--grep", "l"]), "old\nlast\n");
    assert_eq!(log(&["--until", "1h"]), "");
}

#[test]
fn matches_are_printed_with_the_lines_around_them() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 100"));
    let log = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    assert_eq!(log(&["--grep", "^[57]0$", "-C", "1"]), "49\n50\n51\n--\n69\n70\n71\n");
    assert_eq!(log(&["--grep", "0$", "-n", "2", "-B", "1"]), "89\n90\n--\n99\n100\n");
    assert_eq!(log(&["--grep", "^99$", "-A", "9"]), "99\n100\n");
    assert_eq!(log(&["-f", "--grep", "^9[89]$"]), "98\n99\n");
}

#[test]
fn raw_is_every_byte_and_colours_are_kept_on_request() {
    let d = Daemon::start();
    let proc = id(&d.run("printf '\\033[31mred\\033[0m\\033[2J\\377\\n'"));
    let raw = d.ctl_command(&["log", &proc, "--raw"]).output().unwrap();
    assert_eq!(raw.stdout, b"\x1b[31mred\x1b[0m\x1b[2J\xff\n");
    let log = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    assert_eq!(log(&[]), "red\u{fffd}\n");
    assert_eq!(log(&["--color=always"]), "\u{1b}[31mred\u{1b}[0m\u{fffd}\n");
    assert_eq!(
        log(&["--color=always", "--grep", "^red"]),
        "\u{1b}[31mred\u{1b}[0m\u{fffd}\n",
        "a pattern sees the text"
    );
}

#[test]
fn a_file_or_a_pipe_gets_all_of_it_without_a_message() {
    // The broken code printed the last 200 lines, without a message.
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 5000"));
    let all: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
    let given = |args: &[&str]| {
        let output = d.ctl(&[&["log", &proc], args].concat());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
        output.stdout.lines().map(String::from).collect::<Vec<_>>()
    };
    for args in [&[][..], &["-f"], &["-n", "all"], &["--stream", "stdout"], &["--offset", "0"], &["--raw"]] {
        assert!(given(args) == all, "{args:?}");
    }
    assert!(given(&["--offset", "1000"]) == all[1000..]);
    assert!(given(&["--grep", "0$"]) == all.iter().filter(|line| line.ends_with('0')).cloned().collect::<Vec<_>>());
    assert!(given(&["--grep", "0$", "--offset", "4000"]).len() == 100);
    assert_eq!(given(&["-n", "2"]), ["4999", "5000"]);
    assert_eq!(d.ctl(&["log", &proc, "--json", "-n", "all"]).code, 2, "a JSON answer needs a limit");
}

#[test]
fn a_long_log_is_printed_in_constant_memory() {
    let d = Daemon::start();
    let proc = id(&d.run("head -c 64000000 /dev/zero | tr '\\0' x | fold -w 99"));
    // Enough address space for the program, and less than the size of the log.
    let script = "set -o pipefail; ulimit -v 60000; toolctl log \"$0\" | wc -l";
    let output = output_of(d.tool("bash", &["-c", script, &proc]).spawn().unwrap());
    assert_eq!((output.code, output.stdout.trim(), output.stderr.as_str()), (0, "646465", ""));
}

#[test]
fn more_than_a_screen_goes_through_the_pager_and_less_does_not() {
    let d = Daemon::start();
    let (long, short) = (id(&d.run("seq 1 100")), id(&d.run("seq 1 3")));
    let shown = |args: &str| {
        let script = format!("PAGER='sed s/^/paged:/' {TOOLCTL} log {args}; echo \"code $?\"");
        let screen = id(&d.sh_with(&script, json!({ "pty": { "rows": 24, "cols": 80 } })));
        d.closed(&screen);
        d.text(&screen)
    };
    let text = shown(&long);
    assert!(text.starts_with("paged:1\r\n") && text.ends_with("paged:100\r\ncode 0\r\n"), "{text:?}");
    assert_eq!(shown(&short), "1\r\n2\r\n3\r\ncode 0\r\n");
    assert!(!shown(&format!("{long} --no-pager")).contains("paged"));
    assert!(!shown(&format!("{long} -f")).contains("paged"), "a followed log is not paged");
    let longer = id(&d.run("seq 1 5000"));
    let text = shown(&longer);
    assert!(text.starts_with("paged:1\r\n") && text.ends_with("paged:5000\r\ncode 0\r\n"), "a pager gets all of it");
}

#[test]
fn a_terminal_without_a_pager_gets_a_part_and_the_option_that_shows_all() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 1000"));
    let shown = |args: &str| {
        let script = format!("PAGER= {TOOLCTL} log {proc} {args}; echo \"code $?\"");
        let screen = id(&d.sh_with(&script, json!({ "pty": { "rows": 24, "cols": 80 } })));
        d.closed(&screen);
        d.text(&screen)
    };
    let lines = |from: u32, to: u32| (from..=to).map(|n| format!("{n}\r\n")).collect::<String>();
    let cases = [
        ("", lines(801, 1000), "toolctl: 800 earlier lines are left out; -n all shows them\r\n"),
        ("--raw", lines(801, 1000), "toolctl: earlier output is left out; -n all shows it\r\n"),
        ("--offset 5", lines(6, 205), "toolctl: there is more: --offset 205 goes on, -n all shows all of it\r\n"),
        ("--offset 900", lines(901, 1000), ""),
        ("-n 5", lines(996, 1000), ""),
        ("-n all", lines(1, 1000), ""),
        ("--since 1h", lines(1, 1000), ""),
    ];
    for (args, expected, message) in cases {
        assert_eq!(shown(args), format!("{expected}{message}code 0\r\n"), "{args}");
    }
    let matches = "toolctl: 800 earlier lines are left out; -n all shows them\r\ncode 0\r\n";
    assert!(shown("--grep .").ends_with(matches));
    let followed = format!("toolctl: earlier output is left out; -n all shows it\r\n{}code 0\r\n", lines(991, 1000));
    assert_eq!(shown("-f"), followed, "before the new output");
}
