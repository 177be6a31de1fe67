//! What people see of `log`: by time, by pattern, as it comes, through a pager.

use crate::ctl::ran;
use crate::rig::{DEADLINE, Daemon, id};
use serde_json::json;
use std::io::{BufRead, BufReader};
use toold_proto::time::rfc3339;

const CTL: &str = env!("CARGO_BIN_EXE_toolctl");

#[test]
fn whoever_reads_only_the_first_line_is_not_told_of_an_error() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 200000"));
    for args in [
        vec!["log", &proc, "-n", "100000"],
        vec!["log", &proc, "--since", "1h"],
        vec!["log", &proc, "--raw", "-n", "150000"],
    ] {
        let mut child = d.ctl_command(&args).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let told = ran(child);
        assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_follower_whose_reader_is_gone_ends_without_waiting_for_output() {
    let d = Daemon::start();
    let proc = d.sh("echo first; exec sleep 1000");
    d.printed(&proc, "first");
    let mut child = d.ctl_command(&["log", &proc, "-f"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told = ran(child);
    assert_eq!((line.as_str(), told.code, told.stderr.as_str()), ("first\n", 0, ""));
}

#[test]
fn a_followed_log_survives_a_killed_daemon_with_nothing_lost_and_nothing_doubled() {
    let mut d = Daemon::start();
    let (gate, told, end) = (d.gate("go"), d.gate("told"), d.gate("end"));
    let script =
        format!("echo first; {}; seq 1 3000; {}; {}; echo last", gate.pass(), told.tell("printed"), end.pass());
    let proc = d.sh(&script);
    d.printed(&proc, "first");
    // The test brings the daemon back; toolctl would do it too, after a second.
    let mut child = d.ctl_command(&["--no-autostart", "log", &proc, "-f"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();
    d.kill9();
    gate.open();
    assert_eq!(told.heard(DEADLINE), "printed", "it writes while no daemon runs");
    d.spawn();
    end.open();
    while stdout.read_line(&mut text).unwrap() > 0 {}
    let told = ran(child);
    let expected: String = (1..=3000).map(|n| format!("{n}\n")).collect();
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    assert!(text == format!("first\n{expected}last\n"), "{} bytes", text.len());
}

#[test]
fn output_is_picked_by_when_it_came() {
    let d = Daemon::start();
    let proc = id(&d.run("echo old; sleep 0.5; printf 'ne'; sleep 0.5; echo w; sleep 0.5; echo last >&2"));
    let spans = d.ok("poll", json!({ "id": proc, "cursor": 0, "spans": true }))["spans"].clone();
    let at = |n: usize| rfc3339(spans[n]["at_ms"].as_u64().unwrap());
    assert_eq!(spans.as_array().unwrap().len(), 4, "{spans}");
    let log = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    assert_eq!(log(&["--since", &at(2)]), "new\nlast\n", "a line is shown whole");
    assert_eq!(log(&["--until", &at(0)]), "old\n");
    assert_eq!(log(&["--since", &at(1), "--until", &at(2)]), "new\n");
    assert_eq!(log(&["--since", "1h", "-n", "1"]), "last\n");
    assert_eq!(log(&["--since", "1h", "--stream", "stderr"]), "last\n");
    assert_eq!(log(&["--since", "2000-01-01", "--grep", "l"]), "old\nlast\n");
    assert_eq!(log(&["--until", "1h"]), "");
}

#[test]
fn matches_come_with_the_lines_around_them() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 100"));
    let log = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    assert_eq!(log(&["--grep", "^[57]0$", "-C", "1"]), "49\n50\n51\n--\n69\n70\n71\n");
    assert_eq!(log(&["--grep", "0$", "-n", "2", "-B", "1"]), "89\n90\n--\n99\n100\n");
    assert_eq!(log(&["--grep", "^99$", "-A", "9"]), "99\n100\n");
    assert_eq!(log(&["-f", "--grep", "^9[89]$"]), "98\n99\n");
}

#[test]
fn raw_is_every_byte_and_colours_are_kept_alone_when_asked_for() {
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
fn more_than_a_screen_goes_through_the_pager_and_less_does_not() {
    let d = Daemon::start();
    let (long, short) = (id(&d.run("seq 1 100")), id(&d.run("seq 1 3")));
    let shown = |args: &str| {
        let script = format!("PAGER='sed s/^/paged:/' {CTL} log {args}; echo \"code $?\"");
        let screen = id(&d.sh_with(&script, json!({ "pty": { "rows": 24, "cols": 80 } })));
        d.closed(&screen);
        d.text(&screen)
    };
    let text = shown(&long);
    assert!(text.starts_with("paged:1\r\n") && text.ends_with("paged:100\r\ncode 0\r\n"), "{text:?}");
    assert_eq!(shown(&short), "1\r\n2\r\n3\r\ncode 0\r\n");
    assert!(!shown(&format!("{long} --no-pager")).contains("paged"));
    assert!(!shown(&format!("{long} -f")).contains("paged"), "what has no end is not paged");
}
