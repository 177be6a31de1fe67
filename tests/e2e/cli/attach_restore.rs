//! Every way out of `attach` leaves the terminal as it was.

use crate::cli::attach::on_terminal;
use serde_json::json;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::term::Term;

/// Turns on all that has to be turned off, and waits for a line.
const LOUD: &str =
    "printf '\\033[?1049h\\033[?25l\\033[?1003h\\033[?2004h\\033[1mloud'; stty -echo; read -r code; exit $code";

#[test]
fn the_code_is_the_process_s_own_and_the_terminal_is_as_before() {
    let d = Daemon::start();
    for code in [0, 7] {
        let proc = on_terminal(&d, LOUD);
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
fn a_killed_process_ends_it_too() {
    let d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
    d.printed(&proc, "loud");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("loud");
    assert_eq!(d.ctl(&["kill", &proc, "-s", "9"]).code, 0);
    assert_eq!(term.ends(), 137);
    term.sees("was killed by client");
}

#[test]
fn a_signal_to_toolctl_gives_the_terminal_back_and_the_process_runs_on() {
    let d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
    d.printed(&proc, "loud");
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        let term = Term::ctl(&d, &["attach", &proc]);
        term.sees("loud");
        term.toolctl().signal(signal);
        assert_eq!(term.ends(), 128 + signal);
        term.sees("runs on; come back: toolctl attach");
    }
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_window_that_is_closed_ends_toolctl_and_not_the_process() {
    let d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
    d.printed(&proc, "loud");
    let mut term = Term::ctl(&d, &["attach", &proc]);
    term.sees("loud");
    let toolctl = term.toolctl();
    term.close();
    assert!(toolctl.dies_within(DEADLINE));
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_stop_gives_the_terminal_back_and_who_goes_on_has_the_screen_again() {
    let d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
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
fn without_a_terminal_on_both_sides_it_says_what_to_use_instead() {
    let d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
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
fn a_process_without_a_terminal_or_without_life_is_refused() {
    let d = Daemon::start();
    for (stdin, typed) in [("pipe", true), ("null", false)] {
        let proc = d.sh_with("exec sleep 1000", json!({ "stdin": stdin }));
        let term = Term::ctl(&d, &["attach", proc["id"].as_str().unwrap()]);
        assert_eq!(term.ends(), 2);
        let said = term.sees("has no terminal").replace('\n', "");
        assert_eq!((said.contains("log -f"), said.contains("toolctl submit")), (true, typed), "{said}");
    }
    let ended = on_terminal(&d, "exit 3");
    d.closed(&ended);
    let term = Term::ctl(&d, &["attach", &ended]);
    assert_eq!(term.ends(), 1);
    term.sees("exited 3: see");
    let nobody = Term::ctl(&d, &["attach", "nobody"]);
    assert_eq!(nobody.ends(), 3);
}

#[test]
fn no_daemon_and_none_to_be_started_is_an_error_on_a_clean_terminal() {
    let mut d = Daemon::start();
    let proc = on_terminal(&d, LOUD);
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
fn after_a_full_screen_the_shell_goes_on_where_it_was() {
    // The broken code left an empty line, which the program alone does not: as `vim` ends, and as `top` does.
    let d = Daemon::start();
    for end in ["\\033[?1049hfull\\033[5;5H\\033[?1l\\033[?1049l\\033[?25h", "\\033[?25ltext\\r\\n\\033[?25h\\033[K"] {
        let term = Term::ctl(&d, &["run", "-t", "--", "printf", end]);
        assert_eq!(term.ends(), 0);
        let screen = term.sees("[code 0]");
        assert!(["[code 0]", "text\n[code 0]"].contains(&screen.trim_end()), "{screen:?}");
    }
}
