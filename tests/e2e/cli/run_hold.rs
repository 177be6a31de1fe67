//! `toolctl run` in a pipe: its output is all that the program wrote, however long and however slow the reader, or `run` reports
//! that it is not.

use serde_json::json;
use std::io::Read;
use std::process::{Child, ChildStdout};
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::sys::Pidfd;

/// A log that is full at once.
const SMALL: &str = "log_max_bytes = 65536\n";
const LINES: usize = 400_000;

fn expected() -> String {
    (1..=LINES).map(|n| format!("{n}\n")).collect()
}

/// Starts `run` of a program that writes many times the log, and does not read its output.
fn start(d: &Daemon) -> (Child, ChildStdout, String) {
    let mut child = d.ctl_command(&["run", "--", "seq", "1", &LINES.to_string()]).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    d.eventually("it is started", || !d.ids(json!({})).is_empty());
    let proc = d.ids(json!({})).remove(0);
    d.eventually("it is held back", || d.process(&proc)["held_back"] == true);
    (child, stdout, proc)
}

#[test]
fn a_pipe_gets_every_byte_of_output_that_is_longer_than_the_log() {
    // Before, what the reader had not taken when the log was full was cut out of the middle, with exit code 0.
    let d = Daemon::start_with(SMALL, &[]);
    let script = format!("toolctl run -- seq 1 {LINES} | cksum; seq 1 {LINES} | cksum");
    let output = output_of(d.tool("sh", &["-c", &script]).spawn().unwrap());
    let sums: Vec<&str> = output.stdout.lines().collect();
    assert!(sums.len() == 2 && sums[0] == sums[1] && output.stderr.is_empty(), "{output:?}");
    let both = "toolctl run -- sh -c 'seq 1 100000 >&2; seq 1 100000' 2>err | cksum; cksum <err; seq 1 100000 | cksum";
    let output = output_of(d.tool("sh", &["-c", &format!("cd {}; {both}", d.root().display())]).spawn().unwrap());
    let sums: Vec<&str> = output.stdout.lines().collect();
    assert!(sums.len() == 3 && sums[0] == sums[2] && sums[1] == sums[2], "both streams: {output:?}");
}

#[test]
fn a_reader_that_stops_reading_holds_the_program_back_and_gets_the_rest_later() {
    let d = Daemon::start_with(SMALL, &[]);
    let (child, mut stdout, proc) = start(&d);
    assert_eq!(d.process(&proc)["status"], "running");
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert!(text == expected(), "{} bytes came", text.len());
    assert_eq!(output_of(child).code, 0);
}

#[test]
fn a_killed_daemon_loses_and_doubles_nothing() {
    let mut d = Daemon::start_with(SMALL, &[]);
    let (child, mut stdout, _) = start(&d);
    let mut text = vec![0; 300_000];
    stdout.read_exact(&mut text).unwrap();
    d.kill9();
    d.spawn();
    stdout.read_to_end(&mut text).unwrap();
    assert!(text == expected().as_bytes(), "{} bytes came", text.len());
    assert_eq!(output_of(child).code, 0);
}

#[test]
fn a_reader_that_does_not_read_keeps_its_hold_when_the_daemon_is_killed() {
    // `run` waits for its reader, and not for the daemon: it has to notice that the one that knew of it is gone.
    let mut d = Daemon::start_with("log_max_bytes = 65536\nhold_timeout_ms = 2000\n", &[]);
    let (child, mut stdout, proc) = start(&d);
    d.kill9();
    d.spawn();
    // Longer than a hold lasts that no reader claims.
    let waited = d.ok("wait", json!({ "id": proc, "timeout_ms": 4000 }));
    assert_eq!((&waited["status"], &d.process(&proc)["held_back"]), (&json!("timeout"), &json!(true)), "{waited}");
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert!(text == expected(), "{} bytes came", text.len());
    assert_eq!(output_of(child).code, 0);
}

#[test]
fn ctrl_c_works_while_the_program_is_held_back() {
    let d = Daemon::start_with(SMALL, &[]);
    let (child, mut stdout, proc) = start(&d);
    Pidfd::open(child.id() as i32).unwrap().signal(libc::SIGINT);
    // Nothing was read: the signal does not wait for the output.
    assert_eq!(d.exited(&proc)["signal"], "SIGINT");
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert!(expected().starts_with(&text) && text.len() >= 65_536, "{} bytes came", text.len());
    let output = output_of(child);
    assert_eq!((output.code, output.stderr.as_str()), (130, ""));
}

#[test]
fn a_run_that_is_gone_holds_nothing_and_one_with_json_neither() {
    let d = Daemon::start_with(SMALL, &[]);
    let (mut child, stdout, proc) = start(&d);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdout);
    assert_eq!(d.closed(&proc)["exit_code"], 0);
    let output = d.ctl(&["run", "--json", "--", "seq", "1", &LINES.to_string()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let (mut child, stdout, proc) = {
        let mut child = d.ctl_command(&["run", "--", "yes"]).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        d.eventually("it runs", || d.ids(json!({ "status": "running" })).len() == 1);
        (child, stdout, d.ids(json!({ "status": "running" })).remove(0))
    };
    drop(stdout);
    assert_eq!(d.exited(&proc)["signal"], "SIGPIPE", "as in a pipe");
    let ended = Pidfd::open(child.id() as i32).is_none_or(|run| run.dies_within(DEADLINE));
    assert!(ended, "run waits for a reader that is gone");
    child.wait().unwrap();
}
