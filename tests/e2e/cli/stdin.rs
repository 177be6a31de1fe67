//! `toolctl run` at a terminal, with a pipe as the program's stdin: typed lines, and whether program or shell gets them.

use serde_json::json;
use std::sync::atomic::Ordering;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::sys::Pidfd;
use toold_test_support::term::Term;

/// Prints each line that it reads, and its end.
const READER: &str = "echo ready; while read -r line; do echo \"got $line\"; done; echo end; exit 4";

/// Shell text that runs `toolctl`, prints its code, and then the next line that is typed to the shell.
const THEN_READ: &str = "\"$0\" \"$@\"; echo \"[code $?]\"; read -r a; echo \"the shell got $a\"; read -r _";

/// The shell survives signals that keys send to the whole foreground, as an interactive shell does.
fn run(d: &Daemon, script: &str) -> Term {
    let text = "trap : INT QUIT; \"$0\" \"$@\"; echo \"[code $?]\"; read -r _";
    Term::shell(d, text, &["run", "--", "/bin/sh", "-c", script])
}

/// The only process of the daemon.
fn only(d: &Daemon) -> String {
    let ids = d.ids(json!({}));
    assert_eq!(ids.len(), 1);
    ids[0].clone()
}

#[test]
fn typed_lines_arrive_and_ctrl_d_closes() {
    // The broken code gave the program /dev/null: it read end of file while a person was typing.
    let d = Daemon::start();
    let term = run(&d, READER);
    term.sees("ready");
    term.dialog(&[("one\r", "got one"), ("two\r", "got two")]);
    term.types("\x04");
    assert_eq!(term.ends(), 4);
    assert_eq!(d.text(&only(&d)), "ready\ngot one\ngot two\nend\n");
}

#[test]
fn ctrl_d_sends_a_line_without_newline_and_the_second_closes() {
    let d = Daemon::start();
    let term = Term::ctl(&d, &["run", "--", "cat"]);
    term.types("half\x04\x04");
    assert_eq!(term.ends(), 0);
    assert_eq!(d.text(&only(&d)), "half");
}

#[test]
fn the_status_line_of_a_quiet_program_is_below_the_typed_text_and_is_removed() {
    let d = Daemon::start();
    let term = run(&d, READER);
    term.sees("ready");
    term.types("a line that");
    let output = term.sees(" running: ready");
    let rows: Vec<&str> = output.lines().collect();
    let typed = rows.iter().position(|row| *row == "a line that").expect("the typed text is on a line of its own");
    assert!(rows[typed + 1].ends_with(&format!("{} running: ready", only(&d))), "{output}");
    term.types(" takes its time\r\x04");
    assert_eq!(term.ends(), 4);
    let all = term.sees("end");
    assert!(all.contains("ready\na line that takes its time\ngot a line that takes its time\nend"), "{all}");
    assert!(!all.contains("running"), "{all}");
}

#[test]
fn ctrl_c_is_still_an_interrupt() {
    let d = Daemon::start();
    let term = run(&d, "trap 'echo interrupted; exit 9' INT; echo ready; read -r line; echo \"got $line\"; read -r _");
    term.sees("ready");
    term.dialog(&[("one\r", "got one"), ("\x03", "interrupted")]);
    assert_eq!(term.ends(), 9);
}

#[test]
fn ctrl_backslash_detaches_and_reports_it() {
    let d = Daemon::start();
    let term = run(&d, "trap 'echo quit' QUIT; echo ready; while :; do sleep 0.02; done");
    term.sees("ready");
    term.types("\x1c");
    assert_eq!(term.ends(), 131);
    term.sees(&format!("toolctl: {} is still running: toolctl log -f", only(&d)));
    let process = d.process(&only(&d));
    assert_eq!((&process["status"], d.text(&only(&d)).as_str()), (&json!("running"), "ready\n"));
}

#[test]
fn after_ctrl_z_a_line_goes_to_the_shell_and_after_fg_to_the_program() {
    let d = Daemon::start();
    let text = "set -m; \"$0\" \"$@\"; echo \"[stopped $?]\"; read -r a; echo \"the shell got $a\"; fg; echo \"[code $?]\"; \
        read -r _";
    let term = Term::shell(&d, text, &["run", "--", "/bin/sh", "-c", READER]);
    term.sees("ready");
    term.dialog(&[
        ("one\r", "got one"),
        ("\x1a", "[stopped 148]"),
        ("two\r", "the shell got two"),
        ("three\r", "got three"),
    ]);
    term.types("\x04");
    assert_eq!(term.ends(), 4);
    assert_eq!(d.text(&only(&d)), "ready\ngot one\ngot three\nend\n");
}

#[test]
fn in_the_background_it_is_not_stopped_and_takes_nothing_until_fg() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}; echo alive; {READER}", gate.wait());
    let text = "set -m; \"$0\" \"$@\" & for n in 1 2; do read -r a; echo \"the shell got $a\"; done; fg; \
        echo \"[code $?]\"; read -r _";
    let term = Term::shell(&d, text, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    term.types("one\r");
    term.sees("the shell got one");
    gate.open();
    term.sees("alive");
    term.dialog(&[("two\r", "the shell got two"), ("three\r", "got three")]);
    term.types("\x04");
    assert_eq!(term.ends(), 4);
    assert_eq!(d.text(&only(&d)), "ready\nalive\nready\ngot three\nend\n");
}

#[test]
fn keys_are_left_to_a_program_that_reads_without_lines() {
    // Such as a pager at the end of the pipeline.
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}", gate.wait());
    let text = "\"$0\" \"$@\" | { read -r a; stty -icanon min 1 < /dev/tty; echo keys; \
        for n in 1 2 3; do echo \"key $n $(head -c 1 < /dev/tty)\"; done; stty icanon < /dev/tty; cat; }; \
        echo \"[code $?]\"; read -r _";
    let term = Term::shell(&d, text, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("keys");
    for (n, key) in ["a", "b", "c"].iter().enumerate() {
        term.types(key);
        term.sees(&format!("key {} {key}", n + 1));
    }
    gate.open();
    term.printed("[code 0]");
}

#[test]
fn a_line_typed_after_the_exit_goes_to_the_shell() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}; exit 3", gate.wait());
    let term = Term::shell(&d, THEN_READ, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    // toolctl learns of the exit and of the line at once, as on a slow machine: after it has sent its next request
    // and sleeps.
    let toolctl = term.toolctl();
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", toolctl.pid)).unwrap();
    d.eventually("toolctl waits for news", || stat().contains(") S "));
    toolctl.signal(libc::SIGSTOP);
    gate.open();
    d.closed(&only(&d));
    term.types("mine\r");
    term.printed("mine");
    toolctl.signal(libc::SIGCONT);
    assert_eq!(term.ends(), 3);
    term.sees("the shell got mine");
}

#[test]
fn a_line_typed_while_the_exit_is_in_flight_goes_to_the_shell() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}; exit 3", gate.wait());
    let term = Term::shell(&d, THEN_READ, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    // The daemon is stopped, so that the line arrives before the exit. The broken code took the line at once and lost it.
    let program = d.program(&only(&d));
    let daemon = Pidfd::open(d.ok("daemon.info", json!({}))["pid"].as_i64().unwrap() as i32).unwrap();
    daemon.signal(libc::SIGSTOP);
    gate.open();
    assert!(program.dies_within(DEADLINE));
    term.types("mine\r");
    term.printed("mine");
    daemon.signal(libc::SIGCONT);
    assert_eq!(term.ends(), 3);
    term.sees("the shell got mine");
}

#[test]
fn a_line_typed_after_a_detach_goes_to_the_shell() {
    let d = Daemon::start();
    let term = Term::shell(&d, THEN_READ, &["run", "--detach-after", "700ms", "--", "/bin/sh", "-c", READER]);
    assert_eq!(term.ends(), 0);
    term.types("mine\r");
    term.sees("the shell got mine");
    assert_eq!(d.text(&only(&d)), "ready\n");
    d.ctl(&["submit", &only(&d), "later"]);
    d.printed(&only(&d), "got later");
}

#[test]
fn with_no_stdin_everything_goes_to_the_shell() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}; cat; exit 3", gate.wait());
    let term = Term::shell(&d, THEN_READ, &["run", "--no-stdin", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    term.types("mine\r");
    gate.open();
    assert_eq!(term.ends(), 3);
    term.sees("the shell got mine");
}

#[test]
fn a_daemon_killed_meanwhile_loses_no_line_and_doubles_none() {
    let mut d = Daemon::start();
    let term = run(&d, READER);
    term.sees("ready");
    term.types("one\r");
    term.sees("got one");
    d.kill9();
    term.types("two\r");
    term.sees("got two");
    term.types("\x04");
    assert_eq!(term.ends(), 4);
    assert_eq!(d.text(&only(&d)), "ready\ngot one\ngot two\nend\n");
}

#[test]
fn a_line_typed_after_the_program_closed_its_stdin_goes_to_the_shell() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("exec < /dev/null; echo ready; {}; echo late; exit 3", gate.wait());
    let term = Term::shell(&d, THEN_READ, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    term.types("mine\r");
    // A request shows that the program does not read any more.
    d.eventually("the stdin is known to be closed", || d.process(&only(&d))["stdin"] == "closed");
    gate.open();
    assert_eq!(term.ends(), 3);
    term.sees("the shell got mine");
    assert!(!term.printed("late").contains("toolctl:"), "{}", term.printed("late"));
}

#[test]
fn a_program_that_never_reads_leaves_the_rest_in_the_terminal_and_can_be_interrupted() {
    let d = Daemon::start();
    let term = run(&d, "echo ready; exec sleep 1000");
    term.sees("ready");
    // More than its pipe and the terminal hold together, so that typing blocks.
    let typing = term.types_on(format!("{}\r", "x".repeat(1023)).repeat(100));
    d.eventually("half of a pipe is full", || typing.load(Ordering::Relaxed) > 32 * 1024);
    let toolctl = term.toolctl();
    toolctl.signal(libc::SIGINT);
    assert!(toolctl.dies_within(DEADLINE));
    term.printed("[code 130]");
}
