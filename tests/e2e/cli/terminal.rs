//! `toolctl run` at a terminal: with a terminal of the program's own (-t), and without.

use serde_json::json;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::term::{DETACH, Term};

fn run(d: &Daemon, options: &[&str], script: &str) -> Term {
    Term::ctl(d, &[&["run"], options, &["--", "/bin/sh", "-c", script]].concat())
}

/// The only process of the daemon.
fn only(d: &Daemon) -> String {
    let ids = d.ids(json!({}));
    assert_eq!(ids.len(), 1);
    ids[0].clone()
}

#[test]
fn the_program_has_our_size_and_our_keys_and_its_code_is_returned() {
    let d = Daemon::start();
    let script = "stty size; read -r a; echo \"got $a\"; trap 'echo size $(stty size); exit 7' WINCH; echo ready; \
        while :; do sleep 0.02; done";
    let term = run(&d, &["-t"], script);
    term.sees("24 80");
    term.types("hello\r");
    term.sees("got hello");
    term.sees("ready");
    term.resize(30, 100);
    term.sees("size 30 100");
    assert_eq!(term.ends(), 7);
}

#[test]
fn the_interrupt_key_is_typed_and_not_sent_as_a_signal() {
    let d = Daemon::start();
    let term = run(&d, &["-t"], "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.02; done");
    term.sees("ready");
    term.types("\x03");
    assert_eq!(term.ends(), 9);
    assert_eq!(term.sees("interrupted").matches("interrupted").count(), 1);
}

#[test]
fn the_detach_key_and_detach_after_leave_it_running_and_print_how_to_return() {
    let d = Daemon::start();
    let term = run(&d, &["-t"], "echo ready; exec sleep 1000");
    term.sees("ready");
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
    term.sees(&format!("is still running: toolctl attach {}", only(&d)));
    d.ctl(&["kill", &only(&d)]);
    d.ctl(&["forget", &only(&d)]);
    let term = run(&d, &["-t", "--detach-after", "500ms"], "printf '\\033[?1049hready'; exec sleep 1000");
    assert_eq!(term.ends(), 0);
    term.sees("is still running: toolctl attach");
    assert_eq!(d.process(&only(&d))["status"], "running");
}

#[test]
fn a_daemon_killed_meanwhile_is_reported_in_a_line_and_the_program_keeps_running() {
    let mut d = Daemon::start();
    let term = run(&d, &["-t"], "echo ready; read -r a; echo \"got $a\"; exit 5");
    term.sees("ready");
    d.kill9();
    term.types("hello\r");
    term.sees("got hello");
    assert_eq!(term.ends(), 5);
    term.sees("reconnected to the daemon");
}

#[test]
fn a_program_that_cannot_start_leaves_the_terminal_alone() {
    let d = Daemon::start();
    let term = Term::ctl(&d, &["run", "-t", "--", "/nonexistent/program"]);
    assert_eq!(term.ends(), 127);
}

#[test]
fn a_closed_window_or_a_signal_kills_only_with_the_option_for_it() {
    let d = Daemon::start();
    for (options, killed) in [(&["-t", "--kill-on-hangup"][..], true), (&["-t"], false), (&["--kill-on-hangup"], true)]
    {
        for closed in [true, false] {
            let mut term = run(&d, options, "echo ready; exec sleep 1000");
            term.sees("ready");
            let running = d.ids(json!({ "status": "running" })).remove(0);
            let (program, toolctl) = (d.program(&running), term.toolctl());
            if closed {
                term.close()
            } else {
                toolctl.signal(libc::SIGTERM)
            }
            assert!(toolctl.dies_within(DEADLINE), "{options:?}");
            assert_eq!(program.is_dead(), killed, "{options:?} closed: {closed}");
            if !closed {
                assert_eq!(term.ends(), 143);
            }
            d.ctl(&["kill", &running]);
        }
    }
}

#[test]
fn the_detach_key_does_not_hang_up() {
    let d = Daemon::start();
    let term = run(&d, &["-t", "--kill-on-hangup"], "echo ready; exec sleep 1000");
    term.sees("ready");
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
    assert_eq!(d.process(&only(&d))["status"], "running");
}

#[test]
fn ctrl_z_stops_toolctl_while_the_job_continues_and_then_it_follows_again() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo ready; {}; echo while stopped; {}; exit 6", gate.wait(), gate.wait());
    let text = "set -m; \"$0\" \"$@\"; echo \"[stopped $?]\"; read -r _; fg; echo \"[code $?]\"; read -r _";
    let term = Term::shell(&d, text, &["run", "--", "/bin/sh", "-c", &script]);
    term.sees("ready");
    term.types("\x1a");
    term.sees("[stopped 148]");
    gate.open();
    d.printed(&only(&d), "while stopped");
    assert!(!term.printed("[stopped").contains("while stopped"));
    term.types("\r");
    term.sees("while stopped");
    gate.open();
    assert_eq!(term.ends(), 6);
}
