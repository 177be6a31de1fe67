//! `toolctl exec` in a pipe, as scripts and agents call it: the id on stdout, everything else on stderr.

use serde_json::json;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{Daemon, OTHER_UID, skip_unless};
use toold_test_support::sys;

/// Runs `exec`, checks that its stdout is an id alone, and returns the id.
fn exec(d: &Daemon, args: &[&str]) -> (String, Output) {
    let ran = d.ctl(&[&["exec"], args].concat());
    let id = ran.stdout.strip_suffix('\n').unwrap_or_default().to_string();
    assert!(id.starts_with("proc_") && !id.contains(char::is_whitespace), "{ran:?}");
    (id, ran)
}

#[test]
fn in_a_pipe_stdout_is_the_id_and_stderr_has_the_reason_and_the_last_lines() {
    // The broken code printed the id and nothing else.
    let d = Daemon::start();
    let (id, ran) = exec(&d, &["--yield", "30s", "-c", "echo hi; exit 3"]);
    assert_eq!((ran.code, ran.stderr), (0, format!("toolctl: {id} exited 3\nhi\n")));
    let (id, ran) = exec(&d, &["--ready-match", "up", "-c", "echo booting; exit 2"]);
    assert_eq!((ran.code, ran.stderr), (2, format!("toolctl: {id} exited 2 before it was ready\nbooting\n")));
    let script = "echo booting; exec sleep 1000";
    let (id, ran) = exec(&d, &["--ready-match", "up", "--ready-timeout", "2s", "-c", script]);
    let (first, rest) = ran.stderr.split_once('\n').unwrap();
    assert!(first.starts_with(&format!("toolctl: {id} is not ready after 2s; ")), "{first}");
    assert_eq!((ran.code, rest), (124, "booting\n"));
    let (id, ran) = exec(&d, &["--yield", "30s", "--", "seq", "300"]);
    let last: String = (281..=300).map(|n| format!("{n}\n")).collect();
    let more = format!("toolctl: these are its last lines; for all of them: toolctl log {id}\n");
    assert_eq!((ran.code, ran.stderr), (0, format!("toolctl: {id} exited 0\n{last}{more}")));
    let (_, ran) = exec(&d, &["--ready-match", "up", "-c", "echo up; exec sleep 1000"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "what is as expected is not reported");
    let (_, ran) = exec(&d, &["--", "/bin/true"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_limit_that_is_not_enforced_is_reported_and_refused_if_it_is_required() {
    if skip_unless(sys::is_root(), "only root starts a daemon of another user, who may make no control groups") {
        return;
    }
    let mut d = Daemon::prepare("", &[]);
    d.give_to_other_user();
    d.spawn();
    let ctl = d.root().join("bin/toolctl").display().to_string();
    let toolctl = |args: &[&str]| {
        let user =
            [format!("--reuid={OTHER_UID}"), format!("--regid={OTHER_UID}"), "--clear-groups".into(), ctl.clone()];
        let all: Vec<&str> = user.iter().map(String::as_str).chain(args.iter().copied()).collect();
        output_of(d.tool("setpriv", &all).spawn().unwrap())
    };
    let limited = ["--name", "n", "--memory", "64M", "--", "/bin/sleep", "1000"];
    let ran = toolctl(&[&["exec"], &limited[..]].concat());
    // The broken code printed nothing.
    assert!(ran.code == 0 && ran.stderr.starts_with("toolctl: memory 64M is not enforced: "), "{ran:?}");
    assert_eq!((ran.stderr.lines().count(), ran.stdout.lines().count()), (1, 1), "{ran:?}");
    let inspected = toolctl(&["inspect", "n"]).stdout;
    assert!(inspected.contains("memory 64M, not enforced ("), "{inspected}");
    assert!(!inspected.contains("(not enforced"), "once: {inspected}");
    let ran = toolctl(&["run", "--memory", "64M", "--", "/bin/echo", "hi"]);
    assert!(ran.stderr.starts_with("toolctl: memory 64M is not enforced: "), "{ran:?}");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n"));
    let before = d.ids(json!({})).len();
    for options in [&["--name", "m"][..], &["--name", "n", "--if-running", "restart"]] {
        let all = [&["exec", "--require-limits"], options, &["--memory", "64M", "--", "/bin/sleep", "1000"]].concat();
        let ran = toolctl(&all);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert!(ran.stderr.contains("limits.memory_bytes cannot be enforced here: "), "{ran:?}");
    }
    assert_eq!((d.ids(json!({})).len(), &d.process("n")["status"]), (before, &json!("running")), "nothing has changed");
    let ran = toolctl(&["exec", "--require-limits", "--idle", "1h", "--", "/bin/true"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "the shim enforces that");
}
