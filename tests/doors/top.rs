//! `toolctl top` on a real terminal: what is on the screen, what keys do, and how the terminal is left.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, files, id, skip_unless};
use toold_test_support::term::Term;

/// A daemon with a server, a failed test and a program that asks.
fn busy() -> Daemon {
    let d = Daemon::start();
    d.sh_with("echo listening; echo oops >&2; sleep 600 & sleep 600", json!({"name": "web"}));
    let tests = d.sh_with("echo 'FAILED test_x'; exit 2", json!({"name": "tests"}));
    d.closed(&id(&tests));
    d
}

fn ask(d: &Daemon, script: &str) -> String {
    let asking = d.sh_with(script, json!({"name": "setup", "pty": {"rows": 24, "cols": 80}}));
    d.ok("wait", json!({"id": id(&asking), "until": "input", "timeout_ms": 30_000}));
    id(&asking)
}

#[test]
fn the_list_has_asks_runs_and_ended_in_order_and_q_restores_the_terminal() {
    let d = busy();
    ask(&d, "printf 'Overwrite? [y/N] '; read x; sleep 600");
    let t = Term::ctl(&d, &["top"]);
    let screen = t.sees("1 run · 1 asks · 1 failed today");
    let screen = if screen.contains("Overwrite") { screen } else { t.sees("Overwrite? [y/N]") };
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("no {text} in\n{screen}"));
    assert!(at("! setup") < at("● web") && at("● web") < at("✗ tests"), "{screen}");
    assert!(at("exited 2") < at("FAILED test_x"), "{screen}");
    assert!(
        screen.lines().last().is_some_and(|keys| keys.starts_with("enter log") && keys.ends_with("? help  q")),
        "{screen}"
    );
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn a_question_is_answered_and_a_hidden_answer_is_shown_and_kept_nowhere() {
    let d = Daemon::start();
    let asking =
        ask(&d, "printf 'Name: '; read n; stty -echo; printf 'Password: '; read p; echo; echo \"$n ${#p}\"; sleep 600");
    let t = Term::ctl(&d, &["top"]);
    t.sees("! setup");
    t.dialog(&[("i", "Name: ›"), ("ann", "Name: › ann"), ("\r", "Password:")]);
    d.ok("wait", json!({"id": asking, "until": "input", "timeout_ms": 30_000}));
    t.sees("! setup");
    t.types("i");
    t.sees("Password: (hidden) ›");
    t.types("hunter2secret\r");
    t.sees("ann 13");
    t.types("q");
    assert_eq!(t.ends(), 0);
    let leaked = |bytes: &[u8]| bytes.windows(13).any(|part| part == b"hunter2secret");
    assert!(!leaked(t.printed("[code ").as_bytes()), "on the screen");
    for file in files(&d.state()) {
        assert!(!leaked(&fs::read(&file).unwrap_or_default()), "{}", file.display());
    }
    assert!(!leaked(d.log().as_bytes()), "in the daemon's log");
}

#[test]
fn k_asks_with_the_size_of_the_tree_esc_cancels_and_kk_kills_all_of_it() {
    let d = busy();
    let web = d.ids(json!({"name": "web"})).remove(0);
    d.eventually("the tree is complete", || d.ok("inspect", json!({"id": web}))["tree"].as_array().unwrap().len() == 3);
    let t = Term::ctl(&d, &["top"]);
    t.sees("● web");
    t.types("K");
    t.sees("kill web and its tree of 3 processes?");
    t.types("\x1b");
    t.loses("kill web and");
    t.types("KK");
    t.sees("✗ web");
    assert_eq!(d.exited(&web)["signal"], "SIGKILL");
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn the_log_follows_until_it_is_scrolled_and_is_searched() {
    let d = Daemon::start();
    let gate = d.gate("more");
    let script = format!(
        "i=1; while [ $i -le 100 ]; do echo \"line $i\"; i=$((i+1)); done; {}; echo 'the end'; sleep 600",
        gate.wait()
    );
    d.sh_with(&script, json!({"name": "log"}));
    let t = Term::ctl(&d, &["top"]);
    t.sees("line 100");
    t.types("\r");
    t.sees("log ── stdout+stderr ── following");
    t.dialog(&[("/", "search: /"), ("line 4\\d\r", "line 40"), ("n", "line 41"), ("N", "line 40")]);
    gate.open();
    d.printed("log", "the end");
    t.dialog(&[("/", "search: /"), ("the end\r", "the end"), ("G", "following")]);
    t.types("\x1b");
    t.sees("NAME");
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn a_search_over_all_logs_names_lines_and_opens_one() {
    let d = busy();
    let old = d.sh_with("echo a; echo 'needle here'; echo b", json!({"name": "old"}));
    d.closed(&id(&old));
    let t = Term::ctl(&d, &["top"]);
    t.sees("✓ old");
    t.dialog(&[("g", "grep all logs:"), ("needle\r", "old:2  needle here"), ("\r", "2 needle here")]);
    t.types("\x1b");
    t.sees("all logs");
    t.types("\x1bq");
    assert_eq!(t.ends(), 0);
}

#[test]
fn it_goes_on_when_the_daemon_was_killed_and_is_back() {
    let mut d = busy();
    let t = Term::ctl(&d, &["top"]);
    t.sees("● web");
    d.kill9();
    t.sees("the daemon is away");
    d.spawn();
    t.sees("1 run · 0 asks");
    d.sh_with("sleep 600", json!({"name": "later"}));
    t.sees("● later");
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn a_signal_restores_the_terminal_and_a_tiny_screen_is_no_end() {
    let d = busy();
    let t = Term::ctl(&d, &["top"]);
    t.sees("● web");
    t.resize(5, 20);
    t.sees("enter log  ? help  q");
    t.types("j\r?");
    t.resize(1, 1);
    t.resize(24, 80);
    t.sees("any key closes this");
    t.types("x\x1b");
    t.sees("● web");
    t.toolctl().signal(libc::SIGTERM);
    assert_eq!(t.ends(), 143);
}

#[test]
fn attach_and_an_editor_get_the_terminal_and_give_it_back() {
    let mut d = Daemon::prepare("", &[]);
    let editor = d.root().join("editor");
    let seen = d.root().join("edited");
    fs::write(&editor, format!("#!/bin/sh\ncp \"$1\" {}\n", seen.display())).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    d.env.push(("VISUAL".into(), editor.display().to_string()));
    d.spawn();
    let shell = d.sh_with(
        "echo ready; while read x; do echo \"got $x\"; done",
        json!({"name": "shell", "pty": {"rows": 24, "cols": 80}}),
    );
    d.printed(&id(&shell), "ready");
    let t = Term::ctl(&d, &["top"]);
    t.sees("shell ── screen");
    t.types("a");
    t.loses("NAME");
    t.dialog(&[("hello\r", "got hello"), ("\x1c", "NAME")]);
    t.sees("shell ── screen");
    t.types("e");
    d.eventually("the editor has the log", || fs::read_to_string(&seen).is_ok_and(|text| text.contains("got hello")));
    t.sees("NAME");
    t.types("y");
    t.printed("\x1b]52;c;");
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn rerun_marks_forget_tree_and_owners() {
    let d = busy();
    d.sh_with("sleep 600", json!({"name": "job", "session_key": "chat:1"}));
    let t = Term::ctl(&d, &["top"]);
    t.sees("● job");
    t.types("t");
    t.sees("PID   CPU    MEM  COMMAND");
    t.types("to");
    t.sees("chat:1 (1)");
    t.types("o/tests\r");
    t.loses("● job");
    t.types("R");
    t.sees("started again");
    d.eventually("there are two runs", || d.ids(json!({"name": "tests"})).len() == 2);
    t.sees("filter: tests");
    d.eventually("both have ended", || d.ids(json!({"name": "tests", "status": "exited"})).len() == 2);
    t.types("\x1b[H ");
    t.sees("1 marked");
    t.types(" ");
    t.sees("2 marked");
    t.types("F");
    t.sees("forget 2 marked and its log?");
    t.types("y");
    d.eventually("both are forgotten", || d.ids(json!({"name": "tests"})).is_empty());
    t.types("q");
    assert_eq!(t.ends(), 0);
}

#[test]
fn once_prints_one_frame_of_the_asked_size_without_escapes() {
    let d = busy();
    for (columns, lines) in [(80, 24), (120, 40), (40, 8), (20, 5), (1, 1)] {
        let mut command = d.ctl_command(&["top", "--once"]);
        command.env("COLUMNS", columns.to_string()).env("LINES", lines.to_string());
        let output = output_of(command.spawn().unwrap());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.stdout);
        assert_eq!(output.stdout.lines().count(), lines, "{}", output.stdout);
        assert!(output.stdout.lines().all(|line| line.chars().count() <= columns), "{}", output.stdout);
        assert!(!output.stdout.contains('\x1b'), "{:?}", output.stdout);
        assert!(columns < 20 || output.stdout.contains("✗ tests"), "{}", output.stdout);
    }
    let filtered = d.ctl(&["top", "--once", "--filter", "web"]).stdout;
    assert!(filtered.contains("● web") && !filtered.contains("✗ tests"), "{filtered}");
    let refused = d.ctl(&["top"]);
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (1, "toolctl: top needs a terminal; `toolctl top --once` prints one frame\n")
    );
    let away = d.ctl(&["top", "--once", "--no-autostart", "--socket", "/nowhere/sock"]);
    assert_eq!(away.code, 4, "{away:?}");
}

#[test]
fn no_color_uses_none() {
    let mut d = busy();
    d.env.push(("NO_COLOR".into(), "1".into()));
    let t = Term::ctl(&d, &["top"]);
    t.sees("● web");
    t.types("q");
    assert_eq!(t.ends(), 0);
    let all = t.printed("[code ");
    let coloured = regex::Regex::new("\x1b\\[[0-9;]*(3[0-7]|4[0-7]|38;[25]|48;[25])[;m]").unwrap();
    assert!(!coloured.is_match(&all), "{all:?}");
}

#[test]
fn tmux_shows_it_and_gets_its_pane_back() {
    if skip_unless(Command::new("tmux").arg("-V").output().is_ok(), "tmux is not installed") {
        return;
    }
    let d = busy();
    let tmux = |args: &[&str]| {
        let socket = d.root().join("tmux.sock");
        let mut command = d.tool("tmux", &["-S", socket.to_str().unwrap(), "-f", "/dev/null"]);
        let output = output_of(command.args(args).spawn().unwrap());
        assert_eq!(output.code, 0, "tmux {args:?}: {output:?}");
        output.stdout
    };
    tmux(&["new-session", "-d", "-x", "80", "-y", "24", "/bin/sh"]);
    let shows =
        |text: &str| d.eventually(&format!("the pane has {text}"), || tmux(&["capture-pane", "-p"]).contains(text));
    tmux(&["send-keys", "toolctl top; echo code $?", "Enter"]);
    shows("● web");
    tmux(&["send-keys", "/", "tests", "Enter"]);
    shows("filter: tests");
    tmux(&["send-keys", "?"]);
    shows("any key closes this");
    tmux(&["resize-window", "-x", "30", "-y", "6"]);
    tmux(&["send-keys", "x"]);
    shows("✗ tests");
    tmux(&["send-keys", "q"]);
    shows("code 0");
    tmux(&["kill-server"]);
}
