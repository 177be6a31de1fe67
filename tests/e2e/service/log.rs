//! The daemon's own log: it never delays the daemon, and where `toolctl` started it, it is bounded.

use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use toold_test_support::rig::Daemon;

/// One call at a time on a connection: each further one is refused, with a line of the log.
const ONE_CALL: &str = "max_requests_in_flight = 1\n";

/// Calls until the daemon has logged more than a pipe and its queue can hold.
fn make_it_log(d: &Daemon) {
    let id = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    let wait = conn.request("wait", json!({ "id": id }));
    for _ in 0..15_000 {
        assert!(conn.call("list", json!({})).is_err());
    }
    d.ok("kill", json!({ "id": id, "grace_ms": 0 }));
    conn.answer(wait).unwrap();
}

/// Before, the daemon froze in write(2), for every client, as soon as the pipe was full.
#[test]
fn a_log_that_is_not_read_delays_no_call_and_dropped_lines_are_reported() {
    let mut d = Daemon::prepare(ONE_CALL, &[("RUST_LOG", "debug")]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = d.command();
    command.stderr(writer);
    d.spawn_as(command);
    make_it_log(&d);
    let started = d.sh_with("echo works", json!({ "yield_ms": 30000 }));
    assert_eq!(started["output"], "works\n");
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    let report = lines.find(|line| line.contains("lines of this log were dropped"));
    let report = report.expect("a report of the dropped lines");
    assert!(report.contains("WARN") && report.contains("dropped="), "{report}");
}

#[test]
fn a_daemon_stops_while_its_log_is_not_read() {
    let mut d = Daemon::prepare(ONE_CALL, &[("RUST_LOG", "debug")]);
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut command = d.command();
    command.stderr(writer);
    d.spawn_as(command);
    make_it_log(&d);
    assert_eq!(d.stop(libc::SIGTERM), 0);
}

#[test]
fn a_log_whose_reader_is_gone_or_that_is_closed_does_not_matter() {
    let mut d = Daemon::prepare(ONE_CALL, &[("RUST_LOG", "debug")]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = d.command();
    command.stderr(writer);
    d.spawn_as(command);
    drop(reader);
    make_it_log(&d);
    assert_eq!(d.run("exit 3")["exit_code"], 3);
    assert_eq!(d.stop(libc::SIGTERM), 0);
    d.before = Some("exec 2>&-".into());
    d.spawn();
    make_it_log(&d);
    assert_eq!(d.run("exit 4")["exit_code"], 4);
}

/// Before, the log grew for as long as the daemon ran.
#[test]
fn the_log_of_a_daemon_that_toolctl_started_is_bounded() {
    const MAX: u64 = 65536;
    let d = Daemon::prepare(&format!("{ONE_CALL}daemon_log_max_bytes = {MAX}\n"), &[("RUST_LOG", "debug")]);
    assert_eq!(d.ctl(&["info"]).code, 0);
    let (log, older) = (d.state().join("toold.log"), d.state().join("toold.log.1"));
    make_it_log(&d);
    d.eventually("the log was rotated", || older.exists());
    d.eventually("the daemon goes on in a new file", || fs::metadata(&log).is_ok_and(|found| found.len() > 0));
    let files: Vec<_> = fs::read_dir(d.state()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let logs: Vec<_> = files.iter().filter(|path| path.to_str().unwrap().contains("toold.log")).collect();
    assert_eq!(logs.len(), 2, "{logs:?}");
    for path in logs {
        assert!(fs::metadata(path).unwrap().len() <= MAX, "{path:?}");
    }
    assert_eq!(d.ctl(&["shutdown"]).code, 0);
    d.eventually("the last line is in the log", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("stopped; processes keep running"))
    });
}

/// A log that the user redirected is theirs, also if it is long.
#[test]
fn a_log_that_a_user_redirected_is_not_rotated() {
    let d = Daemon::start_with(&format!("{ONE_CALL}daemon_log_max_bytes = 65536\n"), &[("RUST_LOG", "debug")]);
    make_it_log(&d);
    d.eventually("all of it is kept", || d.log().len() > 3 * 65536);
    assert!(!d.root().join("toold.log.1").exists());
}
