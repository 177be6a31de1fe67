//! Every way out of `attach` restores the terminal.

use crate::cli::attach::on_terminal;
use serde_json::json;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::term::Term;

/// Turns on every mode that must be turned off, and waits for a line.
const ALL_MODES: &str =
    "printf '\\033[?1049h\\033[?25l\\033[?1003h\\033[?2004h\\033[1mloud'; stty -echo; read -r code; exit $code";

#[test]
fn the_code_is_that_of_the_process_and_the_terminal_is_restored() {
    let d = Daemon::start();
    for code in [0, 7] {
        let proc = on_terminal(&d, ALL_MODES);
        d.printed(&proc, "loud");
        let term = Term::ctl(&d, &["attach", &proc]);
        term.sees("loud");
        assert_eq!(term.modes(), (true, true, true, true));
        term.types(&format!("{code}\r"));
        assert_eq!(term.ends(), code);
        term.sees(&format!("exited {code}"));
    }
}

#[test]
fn a_killed_process_ends_attach_too() {
    let d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    d.printed(&proc, "loud");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("loud");
    assert_eq!(d.ctl(&["kill", &proc, "-s", "9"]).code, 0);
    assert_eq!(term.ends(), 137);
    term.sees("was killed by client");
}

#[test]
fn a_signal_to_toolctl_restores_the_terminal_and_the_process_keeps_running() {
    let d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    d.printed(&proc, "loud");
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        let term = Term::ctl(&d, &["attach", &proc]);
        term.sees("loud");
        term.toolctl().signal(signal);
        assert_eq!(term.ends(), 128 + signal);
        term.sees("is still running: toolctl attach");
    }
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_closed_window_ends_toolctl_and_not_the_process() {
    let d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    d.printed(&proc, "loud");
    let mut term = Term::ctl(&d, &["attach", &proc]);
    term.sees("loud");
    let toolctl = term.toolctl();
    term.close();
    assert!(toolctl.dies_within(DEADLINE));
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_stop_restores_the_terminal_and_continuing_redraws_the_screen() {
    let d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    d.printed(&proc, "loud");
    let term =
        Term::shell(&d, "set -m; \"$0\" \"$@\"; echo \"[code $?]\"; read -r _; fg; read -r _", &["attach", &proc]);
    term.sees("loud");
    term.toolctl().signal(libc::SIGTSTP);
    assert_eq!(term.ends(), 128 + libc::SIGTSTP);
    term.types("\r");
    d.eventually("the screen is the program's again", || term.modes() == (true, true, true, true));
}

#[test]
fn without_a_terminal_on_both_sides_it_names_the_alternatives() {
    let d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    let output = d.ctl(&["attach", &proc]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(
        output.stderr.contains("standard output is not a terminal") && output.stderr.contains("log -f"),
        "{output:?}"
    );
    let term = Term::shell(&d, "\"$0\" \"$@\" </dev/null; echo \"[code $?]\"; read -r _", &["attach", &proc]);
    assert_eq!(term.ends(), 2);
    term.sees("standard input is not a terminal");
}

#[test]
fn a_process_without_a_terminal_or_after_its_exit_is_rejected() {
    let d = Daemon::start();
    for (stdin, typed) in [("pipe", true), ("null", false)] {
        let proc = d.sh_with("exec sleep 1000", json!({ "stdin": stdin }));
        let term = Term::ctl(&d, &["attach", proc["id"].as_str().unwrap()]);
        assert_eq!(term.ends(), 2);
        let screen = term.sees("has no terminal").replace('\n', "");
        assert_eq!((screen.contains("log -f"), screen.contains("toolctl submit")), (true, typed), "{screen}");
    }
    let ended = on_terminal(&d, "exit 3");
    d.closed(&ended);
    let term = Term::ctl(&d, &["attach", &ended]);
    assert_eq!(term.ends(), 1);
    term.sees("exited 3: see");
    let missing = Term::ctl(&d, &["attach", "missing"]);
    assert_eq!(missing.ends(), 3);
}

#[test]
fn without_a_daemon_and_autostart_it_fails_on_a_clean_terminal() {
    let mut d = Daemon::start();
    let proc = on_terminal(&d, ALL_MODES);
    d.printed(&proc, "loud");
    let term = Term::ctl(&d, &["--no-autostart", "attach", &proc]);
    term.sees("loud");
    d.kill9();
    assert_eq!(term.ends(), 4);
    term.sees("no daemon at");
    d.spawn();
    drop(output_of(d.ctl_command(&["kill", &proc]).stdin(Stdio::null()).spawn().unwrap()));
}

#[test]
fn after_a_full_screen_the_shell_continues_where_it_was() {
    // The broken code left an empty line, which the program alone does not: as `vim` ends, and as `top` does.
    let d = Daemon::start();
    for end in ["\\033[?1049hfull\\033[5;5H\\033[?1l\\033[?1049l\\033[?25h", "\\033[?25ltext\\r\\n\\033[?25h\\033[K"] {
        let term = Term::ctl(&d, &["run", "-t", "--", "printf", end]);
        assert_eq!(term.ends(), 0);
        let screen = term.sees("[code 0]");
        assert!(["[code 0]", "text\n[code 0]"].contains(&screen.trim_end()), "{screen:?}");
    }
}
