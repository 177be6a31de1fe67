//! `toolctl screen`, `keys` and `submit --secret`: a terminal program without a terminal of one's own.

use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::Term;

const SECRET: &str = "hunter2-typed";

#[test]
fn a_program_is_driven_by_keys_and_read_by_its_screen() {
    let d = Daemon::start();
    let script = "stty raw -echo; printf '\\033[2J\\033[2;3Hrow two'; printf '\\033[4;1H'; exec cat -v";
    let process = id(&d.sh_with(script, json!({ "pty": { "rows": 6, "cols": 30 }, "name": "menu" })));
    d.printed(&process, "row two");
    let typed = d.ctl(&["keys", "menu", "Up", "C-c", "hello", "--", "-n", "Enter"]);
    assert_eq!((typed.code, typed.stdout), (0, format!("{process} wrote 12 bytes\n")));
    d.printed(&process, "^M");
    let shown = d.ctl(&["screen", "menu"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "\n  row two\n\n^[[A^Chello-n^M\n"));
    let json = d.ctl(&["screen", "menu", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap(), d.ok("screen", json!({ "id": process })));
    for (args, why) in [
        (vec!["keys", "menu", "enter"], "that one is \"Enter\""),
        (vec!["keys", "menu", "C-"], "`toolctl write` types it as text"),
        (vec!["keys", "menu"], "KEY"),
        (vec!["submit", "--secret", "menu", "in the history"], "cannot be used with"),
        (vec!["submit", "menu"], "TEXT"),
    ] {
        let wrong = d.ctl(&args);
        assert_eq!((wrong.code, wrong.stderr.contains(why)), (2, true), "{args:?}: {}", wrong.stderr);
    }
    let pipe = id(&d.sh_with("exec sleep 1000", json!({ "stdin": "pipe" })));
    let none = d.ctl(&["screen", &pipe]);
    assert_eq!((none.code, none.stderr.contains("has no terminal; start it with --pty")), (2, true), "{}", none.stderr);
    let none = d.ctl(&["keys", &pipe, "Up"]);
    assert_eq!((none.code, none.stderr.contains("which has no key Up")), (2, true), "{}", none.stderr);
}

fn asks(d: &Daemon) -> String {
    let script = "stty -echo; printf 'Password: '; read -r x; echo \"length ${#x}\"";
    let process = id(&d.sh_with(script, json!({ "pty": true, "name": "setup" })));
    d.printed(&process, "Password");
    process
}

#[test]
fn a_secret_is_asked_for_without_being_shown() {
    let d = Daemon::start();
    let process = asks(&d);
    let term = Term::ctl(&d, &["submit", "--secret", "setup"]);
    term.sees("secret for setup: ");
    term.types(&format!("{SECRET}x\x7f\r"));
    assert_eq!(term.ends(), 0);
    assert!(!term.printed("[code").contains(SECRET));
    d.printed(&process, &format!("length {}", SECRET.len()));
    d.exited(&process);
    let next = asks(&d);
    let term = Term::ctl(&d, &["submit", "--secret", &next]);
    term.sees("secret for ");
    term.types("half\x03");
    assert_eq!(term.ends(), 130);
    assert_eq!(d.text(&next), "Password: ", "nothing was written");
}

/// The broken code left the terminal without echo.
#[test]
fn a_signal_at_the_prompt_for_a_secret_ends_toolctl_and_restores_the_terminal() {
    let d = Daemon::start();
    let process = asks(&d);
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        let term = Term::ctl(&d, &["submit", "--secret", &process]);
        term.sees("secret for ");
        term.types("half");
        term.toolctl().signal(signal);
        assert_eq!(term.ends(), 128 + signal, "the signal ended it");
    }
    assert_eq!(d.text(&process), "Password: ", "nothing was written");
}

#[test]
fn a_secret_comes_from_standard_input_that_is_not_a_terminal() {
    let d = Daemon::start();
    let process = asks(&d);
    let mut submit = d.ctl_command(&["submit", "--secret", "setup"]).stdin(Stdio::piped()).spawn().unwrap();
    submit.stdin.take().unwrap().write_all(format!("{SECRET}\n").as_bytes()).unwrap();
    let done = output_of(submit);
    assert_eq!(done.code, 0, "{done:?}");
    d.printed(&process, &format!("length {}", SECRET.len()));
}

/// The broken code printed `👩\u{200d}👩\u{200d}👧` and `می\u{200c}خواهم`.
#[test]
fn joined_emoji_and_letters_are_text_on_a_terminal() {
    let d = Daemon::start();
    let text = "👩\u{200d}👩\u{200d}👧 می\u{200c}خواهم a\u{200d}b";
    let process = d.sh(&format!("printf '%s\\n' '{text}'"));
    d.closed(&process);
    let term = Term::ctl(&d, &["log", &process]);
    assert_eq!(term.ends(), 0);
    let shown = term.printed("[code");
    assert!(shown.contains("👩\u{200d}👩\u{200d}👧 می\u{200c}خواهم a\\u{200d}b"), "{shown:?}");
}
