//! The verbs of other programs, and patterns of names.

use serde_json::json;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::Term;

/// The broken code understood each of them, and refused it.
#[test]
fn verbs_of_other_programs_work() {
    let d = Daemon::start();
    let started = d.ctl(&["start", "--name", "web", "--", "sh", "-c", "seq 1 30; exec sleep 1000"]);
    assert_eq!(started.code, 0, "{started:?}");
    d.printed("web", "30");
    for list in [&["ps"][..], &["ls"], &["status"], &["--no-autostart", "status"]] {
        let output = d.ctl(list);
        assert!(output.code == 0 && output.stdout.starts_with("ID ") && output.stdout.contains("web"), "{output:?}");
    }
    assert!(d.ctl(&["status", "web"]).stdout.starts_with("id: proc_"));
    assert_eq!(d.ctl(&["logs", "web"]).stdout.lines().count(), 30);
    assert_eq!(d.ctl(&["tail", "web"]).stdout.lines().count(), 10);
    assert_eq!(d.ctl(&["tail", "-n", "2", "web"]).stdout, "29\n30\n");
    let stopped = d.ctl(&["stop", "-9", "web"]);
    assert!(stopped.code == 0 && stopped.stdout.ends_with(" killed (SIGKILL)\n"), "{stopped:?}");
    assert_eq!(d.ctl(&["rm", "web"]).stdout, "removed 1 process\n");
    let help = d.ctl(&["help", "list"]);
    assert!(help.code == 0 && !help.stdout.contains("--socket <"), "global options are not repeated: {help:?}");
}

#[test]
fn a_pattern_of_names_stands_for_what_runs_and_for_forget_for_what_has_ended() {
    let d = Daemon::start();
    let start = |name: &str, script: &str| id(&d.sh_with(script, json!({ "name": name })));
    let old = start("test-1", "exit 4");
    d.closed(&old);
    let (one, two, other) =
        (start("test-1", "exec sleep 1000"), start("test-2", "exec sleep 1000"), start("web", "exec sleep 1000"));
    let none = d.ctl(&["kill", "nosuch-*"]);
    assert!(none.code == 3 && none.stderr.contains("no process has a name that matches \"nosuch-*\""), "{none:?}");
    let killed = d.ctl(&["kill", "test-?"]);
    assert_eq!(killed.stdout, format!("{one} killed (SIGTERM)\n{two} killed (SIGTERM)\n"));
    assert_eq!(d.process(&other)["status"], "running");
    // None of them runs, so it waits for the newest of each name.
    assert_eq!(d.ctl(&["wait", "test-*"]).code, 143);
    d.closed(&one);
    d.closed(&two);
    assert_eq!(d.ctl(&["forget", "*"]).stdout, "removed 3 processes\n");
    assert_eq!(d.ids(json!({})), [other.as_str()]);
    let several = d.ctl(&["inspect", "w*"]);
    assert_eq!(several.code, 3, "one process is shown by its name: {several:?}");
}

#[test]
fn at_a_terminal_kill_and_attach_without_an_id_take_the_process_that_runs_alone() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("echo ready; exec sleep 1000", json!({ "pty": true })));
    d.printed(&proc, "ready");
    let term = Term::ctl(&d, &["attach"]);
    term.sees("ready");
    term.types(toold_test_support::term::DETACH);
    assert_eq!(term.ends(), 0);
    let term = Term::ctl(&d, &["kill"]);
    term.sees(&format!("{proc} killed (SIG"));
    assert_eq!(term.ends(), 0);
    let term = Term::ctl(&d, &["kill"]);
    term.sees("give an ID: no process runs");
    assert_eq!(term.ends(), 2);
}
