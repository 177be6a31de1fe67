//! Errors of the daemon as `toolctl` prints them: with option names and with the remedy.

use toold_test_support::rig::Daemon;

#[test]
fn errors_of_the_daemon_name_options_and_remedies() {
    let d = Daemon::start();
    assert_eq!(d.ctl(&["exec", "--name", "web", "--", "/bin/sleep", "1000"]).code, 0);
    for (args, code, message) in [
        (&["exec", "--name", "web", "--", "/bin/true"][..], 1, "toolctl kill web"),
        (&["exec", "--timeout", "0", "--", "/bin/true"], 2, "--timeout: must be at least 1ms"),
        (&["exec", "--heartbeat", "5s", "--", "/bin/true"], 2, "--heartbeat: must be at least 1m, not 5s"),
        (&["wait", "web", "--match", "("], 2, "--match: "),
        (&["exec", "--ready-re", "(", "--", "/bin/true"], 2, "--ready-re: "),
        (&["exec", "--watch-re", "(", "--", "/bin/true"], 2, "--watch or --watch-re, number 1: "),
        (&["exec", "--label", "k=v", "--name", "proc_x", "--", "/bin/true"], 2, "--name: must not look like an id"),
        (&["exec", "--name", "@last", "--", "/bin/true"], 2, "a name must not begin with @"),
        (&["run", "--name", "@mine", "--", "/bin/true"], 2, "a name must not begin with @"),
        // Before, these names were taken, and `toolctl kill -x` was then an error about options.
        (&["exec", "--name=-x", "--", "/bin/true"], 2, "a name must not begin with -"),
        (&["run", "--name=--", "--", "/bin/true"], 2, "a name must not begin with -"),
        (&["exec", "--name", "..", "--", "/bin/true"], 2, "--name: must not be . or .."),
        (&["exec", "--name", ".", "--", "/bin/true"], 2, "--name: must not be . or .."),
        (&["write", "web", "x"], 1, "start it with --stdin or --pty"),
        (&["resize", "web", "24x80"], 2, "start it with --pty"),
        (&["poll", "we"], 3, "did you mean web (running "),
        (&["inspect", "9"], 3, "the start of an id needs at least 4 digits; `toolctl list` shows"),
        (&["inspect", "proc_abc"], 3, "the start of an id needs at least 4 digits; `toolctl list` shows"),
        (&["inspect", "xyz"], 3, "no process \"xyz\"; `toolctl list` shows"),
        (&["poll", "missing"], 3, "`toolctl list` shows what there is"),
    ] {
        let output = d.ctl(args);
        assert_eq!((output.code, output.stderr.contains(message)), (code, true), "{args:?}: {}", output.stderr);
        for wire in ["_ms", "pty: true", "regex:", "stdin: "] {
            assert!(!output.stderr.contains(wire), "{args:?}: {}", output.stderr);
        }
    }
    let gone = Daemon::prepare("", &[]).ctl(&["--no-autostart", "list"]);
    assert!(gone.code == 4 && gone.stderr.contains("`toold &`"), "{gone:?}");
    assert!(!gone.stderr.contains("service start"), "no user manager is here: {gone:?}");
}

/// Before, a line feed in the name of a program began a line that looked like one of `toolctl`.
#[test]
fn text_from_outside_makes_no_line_of_its_own_and_acts_on_no_terminal() {
    let d = Daemon::start();
    let hostile = "no\x1b[2J\u{9b}31m\ntoolctl: all is well";
    let label = format!("k={hostile}");
    assert_eq!(d.ctl(&["run", "--name", "web", "--label", &label, "--", "/bin/sh", "-c", ": $1", hostile]).code, 0);
    for (args, fails) in [
        (&["exec", "--", hostile][..], true),
        (&["run", "--", hostile], true),
        (&["exec", "--cwd", hostile, "--", "/bin/true"], true),
        (&["--socket", hostile, "--no-autostart", "list"], true),
        (&["--config", hostile, "--socket", "other/s", "list"], true),
        (&["poll", hostile], true),
        (&["wait", hostile], true),
        (&["kill", hostile], true),
        (&[hostile], true),
        (&["list", "--all"], false),
        (&["inspect", "web"], false),
        (&["poll", "web"], false),
    ] {
        let output = d.ctl(args);
        assert_eq!(output.code != 0, fails, "{args:?}: {output:?}");
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{args:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("toolctl: all is well")), "{args:?}: {text}");
        }
    }
}
