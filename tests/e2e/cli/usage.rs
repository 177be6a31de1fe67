//! A command line that is not understood, and help: in colours where they are wanted, as a document with `--json`.

use serde_json::Value;
use toold_test_support::ctl::{Ran, ran};
use toold_test_support::rig::Daemon;
use toold_test_support::term::Term;

fn run(d: &Daemon, env: (&str, &str), args: &str) -> Ran {
    let args: Vec<&str> = args.split(' ').collect();
    ran(d.tool("toolctl", &args).env(env.0, env.1).spawn().unwrap())
}

#[test]
fn colours_of_usage_errors_and_help_are_as_asked_for_wherever_that_stands() {
    let d = Daemon::prepare("", &[]);
    let none = ("NOTHING", "");
    for (env, args, coloured) in [
        (none, "list --nonsense", false),
        (none, "list --nonsense --color=always", true),
        (none, "--color always list --nonsense", true),
        (none, "run --color=always", true),
        (("NO_COLOR", "1"), "list --nonsense --color always", true),
        (("CLICOLOR_FORCE", "1"), "list --nonsense", true),
        (("CLICOLOR_FORCE", "0"), "list --nonsense", false),
        (("CLICOLOR_FORCE", "1"), "list --nonsense --color=never", false),
        (("CLICOLOR_FORCE", "1"), "--color never kill", false),
    ] {
        let told = run(&d, env, args);
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{env:?} {args}");
        assert_eq!(told.stderr.contains("\x1b["), coloured, "{env:?} {args}: {}", told.stderr);
    }
    for (env, args, coloured) in [
        (none, "--help", false),
        (none, "--help --color=always", true),
        (none, "list --color always --help", true),
        (none, "help list --color always", true),
        (("CLICOLOR_FORCE", "1"), "kill --help", true),
        (("CLICOLOR_FORCE", "1"), "kill --help --color=never", false),
        (("NO_COLOR", "1"), "help kill", false),
    ] {
        let told = run(&d, env, args);
        assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{env:?} {args}");
        assert_eq!(told.stdout.contains("\x1b["), coloured, "{env:?} {args}: {}", told.stdout);
    }
}

#[test]
fn on_a_terminal_help_is_coloured_and_fits_it() {
    let d = Daemon::prepare("", &[]);
    let term = Term::ctl(&d, &["forget", "--help"]);
    let all = term.printed("[code 0]");
    assert!(all.contains("\x1b[1m"), "{all:?}");
    let screen = term.sees("[code 0]");
    assert!(screen.lines().any(|line| line.trim() == "Global options:"), "{screen}");
    let plain = Term::ctl(&d, &["forget", "--help", "--color", "never"]);
    assert!(!plain.printed("[code 0]").contains("\x1b[1m"));
}

#[test]
fn with_json_a_usage_error_is_one_document_on_standard_error() {
    let d = Daemon::prepare("", &[]);
    for args in ["list --nonsense --json", "--json kill", "--json list --sort size", "poll --json", "list --json=1"] {
        let told = run(&d, ("CLICOLOR_FORCE", "1"), args);
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{args}");
        let document: Value = serde_json::from_str(&told.stderr).unwrap_or_else(|e| panic!("{e}: {told:?}"));
        assert_eq!((&document["code"], &document["data"]["kind"]), (&Value::Null, &Value::from("usage")), "{args}");
        assert!(!document["message"].as_str().unwrap().is_empty(), "{args}");
    }
}

#[test]
fn what_other_programs_call_it_is_answered_with_what_it_is_called_here() {
    let d = Daemon::prepare("", &[]);
    for (typed, meant) in [
        ("stop x", "`toolctl kill` ends a process"),
        ("ps", "`toolctl list`"),
        ("logs x", "`toolctl log`"),
        ("rm x", "`toolctl forget`"),
        ("start x", "`toolctl exec`"),
        ("status x", "`toolctl poll`"),
    ] {
        let told = run(&d, ("NOTHING", ""), typed);
        assert_eq!((told.code, told.stderr.contains(meant)), (2, true), "{typed}: {told:?}");
    }
    // Clap took it for an option, and advised `-- -1`.
    let told = run(&d, ("NOTHING", ""), "log x -n -1");
    assert!(told.code == 2 && told.stderr.contains("'-1' for '-n': it cannot be below 0"), "{told:?}");
    assert!(!told.stderr.contains("-- -1"), "{told:?}");
}

#[test]
fn every_error_begins_with_the_name_of_the_program_whoever_found_it() {
    let d = Daemon::start();
    for args in ["list --nonsense", "nonsense", "kill", "log x --grep (", "log nobody", "list -n 0", "list -n x"] {
        let told = run(&d, ("NOTHING", ""), args);
        assert!(told.code > 1 && told.stderr.starts_with("toolctl: "), "{args}: {told:?}");
    }
    let coloured = run(&d, ("NOTHING", ""), "list --nonsense --color=always").stderr;
    assert!(coloured.starts_with("\x1b[") && coloured.contains("toolctl:"), "{coloured:?}");
}
