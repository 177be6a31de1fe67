//! Usage errors and help: colours on request, a JSON document with `--json`.

use serde_json::Value;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::Daemon;
use toold_test_support::term::Term;

fn run(d: &Daemon, env: (&str, &str), args: &str) -> Output {
    let args: Vec<&str> = args.split(' ').collect();
    output_of(d.tool("toolctl", &args).env(env.0, env.1).spawn().unwrap())
}

#[test]
fn usage_errors_and_help_are_coloured_on_request() {
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
        let output = run(&d, env, args);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{env:?} {args}");
        assert_eq!(output.stderr.contains("\x1b["), coloured, "{env:?} {args}: {}", output.stderr);
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
        let output = run(&d, env, args);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{env:?} {args}");
        assert_eq!(output.stdout.contains("\x1b["), coloured, "{env:?} {args}: {}", output.stdout);
    }
}

#[test]
fn help_on_a_terminal_is_coloured_and_fits_it() {
    let d = Daemon::prepare("", &[]);
    let term = Term::ctl(&d, &["forget", "--help"]);
    let all = term.printed("[code 0]");
    assert!(all.contains("\x1b[1m"), "{all:?}");
    let screen = term.sees("[code 0]");
    assert!(screen.lines().any(|line| line.starts_with("Global options: --socket, ")), "{screen}");
    let plain = Term::ctl(&d, &["forget", "--help", "--color", "never"]);
    assert!(!plain.printed("[code 0]").contains("\x1b[1m"));
}

#[test]
fn with_json_a_usage_error_is_one_document_on_stderr() {
    let d = Daemon::prepare("", &[]);
    for args in ["list --nonsense --json", "--json kill", "--json list --sort size", "poll --json", "list --json=1"] {
        let output = run(&d, ("CLICOLOR_FORCE", "1"), args);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args}");
        let document: Value = serde_json::from_str(&output.stderr).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        assert_eq!((&document["code"], &document["data"]["kind"]), (&Value::Null, &Value::from("usage")), "{args}");
        assert!(!document["message"].as_str().unwrap().is_empty(), "{args}");
    }
}

#[test]
fn names_of_other_programs_are_answered_with_ours() {
    let d = Daemon::prepare("", &[]);
    for (typed, meant) in [
        ("terminate x", "`toolctl kill` ends a process"),
        ("jobs", "`toolctl list`"),
        ("cat x", "`toolctl log`"),
        ("prune x", "`toolctl forget`"),
        ("launch x", "`toolctl exec`"),
        ("describe x", "`toolctl poll`"),
    ] {
        let output = run(&d, ("NOTHING", ""), typed);
        assert_eq!((output.code, output.stderr.contains(meant)), (2, true), "{typed}: {output:?}");
    }
    // Clap took it for an option and suggested `-- -1`.
    let output = run(&d, ("NOTHING", ""), "log x -n -1");
    assert!(output.code == 2 && output.stderr.contains("'-1' for '-n': it cannot be below 0"), "{output:?}");
    assert!(!output.stderr.contains("-- -1"), "{output:?}");
}

#[test]
fn every_error_starts_with_the_name_of_the_program() {
    let d = Daemon::start();
    for args in ["list --nonsense", "nonsense", "kill", "log x --grep (", "log missing", "list -n 0", "list -n x"] {
        let output = run(&d, ("NOTHING", ""), args);
        assert!(output.code > 1 && output.stderr.starts_with("toolctl: "), "{args}: {output:?}");
    }
    let coloured = run(&d, ("NOTHING", ""), "list --nonsense --color=always").stderr;
    assert!(coloured.starts_with("\x1b[") && coloured.contains("toolctl:"), "{coloured:?}");
}
