//! References to processes on the command line of `toolctl`.

use toold_test_support::rig::{Daemon, id};

#[test]
fn at_last_is_the_newest_and_at_failed_the_newest_that_failed() {
    let d = Daemon::start();
    let failed = id(&d.run("exit 3"));
    d.run("exit 0");
    let newest = d.sh("exec sleep 1000");
    let first_line = |reference: &str| d.ctl(&["poll", reference]).stdout.lines().next().map(String::from);
    assert_eq!(first_line("@last"), Some(format!("id: {newest}")));
    assert_eq!(first_line("@failed"), Some(format!("id: {failed}")));
    assert_eq!(d.ctl(&["wait", "@failed"]).code, 3);
    assert_eq!(d.ctl(&["kill", "@last"]).code, 0);
    // The broken code took what the user had killed for a failure.
    assert_eq!(first_line("@failed"), Some(format!("id: {failed}")));
}

#[test]
fn the_error_for_a_wrong_id_suggests_the_nearest() {
    let d = Daemon::start();
    assert_eq!(d.ctl(&["exec", "--name", "server", "--", "/bin/sleep", "1000"]).code, 0);
    for (typed, hint) in [("sevrer", true), ("servers", true), ("database", false)] {
        let output = d.ctl(&["log", typed]);
        let suggested =
            output.stderr.contains("did you mean server (running") && output.stderr.contains("/bin/sleep 1000");
        assert_eq!((output.code, suggested), (3, hint), "{output:?}");
    }
    let output = d.ctl(&["--json", "log", "sevrer"]);
    assert!(
        serde_json::from_str::<serde_json::Value>(&output.stderr).is_ok(),
        "the error is one JSON document: {output:?}"
    );
}

#[test]
fn every_command_suggests_alike_and_never_the_given_text() {
    let d = Daemon::start();
    for name in ["server", "long", "v"] {
        assert_eq!(d.ctl(&["exec", "--name", name, "--", "/bin/sleep", "1000"]).code, 0);
    }
    let wrong = ["wait", "kill", "notify", "forget", "log", "log -f", "poll", "inspect", "close", "events --id"];
    let hint = |command: &str, typed: &str| {
        let output = d.ctl(&[command.split(' ').collect(), typed.split(' ').collect::<Vec<_>>()].concat());
        assert_eq!(output.code, 3, "{command} {typed}: {output:?}");
        output.stderr.lines().find_map(|line| line.split_once("did you mean ")).map(|(_, hint)| hint.to_owned())
    };
    for command in wrong {
        let server = hint(command, "sevrer");
        assert!(server.as_ref().is_some_and(|hint| hint.starts_with("server (running")), "{command}: {server:?}");
        for typed in ["nosuch", "p", "9"] {
            assert_eq!(hint(command, typed), None, "{command} {typed}");
        }
    }
    for command in ["wait", "kill", "notify", "forget"] {
        // The broken code suggested `long`.
        assert_eq!(hint(command, "nosuch long"), None, "{command}");
    }
}

#[test]
fn without_a_process_at_last_is_an_error() {
    let d = Daemon::start();
    let output = d.ctl(&["log", "@last"]);
    assert_eq!((output.code, output.stderr.as_str()), (3, "toolctl: there is no process yet, so no @last\n"));
}

#[test]
fn a_program_is_searched_in_the_path_of_the_caller_and_not_of_the_daemon() {
    let d = Daemon::start();
    let dir = d.root().join("mine");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("mytool"), "#!/bin/sh\necho mine\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("mytool"), mode).unwrap();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    // A login shell reads this file, as it reads an /etc/profile that sets PATH.
    std::fs::write(d.home().join(".profile"), "PATH=/usr/bin:/bin\n").unwrap();
    for args in [&["run", "--", "mytool"][..], &["run", "-c", "mytool", "--no-login"], &["run", "-c", "mytool"]] {
        let output = toold_test_support::output::output_of(d.ctl_command(args).env("PATH", &path).spawn().unwrap());
        assert_eq!((output.code, output.stdout.as_str()), (0, "mine\n"), "{args:?}: {output:?}");
    }
    let none = ["run", "--env", "PATH=/nowhere", "--", "mytool"];
    let output = toold_test_support::output::output_of(d.ctl_command(&none).env("PATH", &path).spawn().unwrap());
    assert_eq!(output.code, 127, "the given PATH wins: {output:?}");
}

#[test]
fn a_command_that_fails_for_one_of_several_processes_exits_with_an_error() {
    let d = Daemon::start();
    d.ctl(&["exec", "--name", "one", "--", "sleep", "1000"]);
    let output = d.ctl(&["forget", "one"]);
    assert_eq!(output.code, 1, "{output:?}");
    let output = d.ctl(&["kill", "one", "nosuch"]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("nothing was killed"), "{output:?}");
    assert_eq!(d.process("one")["status"], "running");
}

#[test]
fn a_wait_may_be_longer_than_the_maximum_of_the_daemon() {
    let d = Daemon::start_with("max_wait_ms = 200\n", &[]);
    let gate = d.gate("go");
    let process = d.sh(&format!("{}; exit 5", gate.wait()));
    let child = d.ctl_command(&["wait", &process, "--timeout", "30s"]).spawn().unwrap();
    let waiting = toold_test_support::sys::Pidfd::open(child.id() as i32).unwrap();
    // Three times the maximum of one wait.
    assert!(!waiting.dies_within(std::time::Duration::from_millis(600)));
    gate.open();
    assert_eq!(toold_test_support::output::output_of(child).code, 5);
    let left = d.ctl(&["wait", &d.sh("exec sleep 1000"), "--timeout", "500ms"]);
    assert_eq!(left.code, 124, "{left:?}");
}
