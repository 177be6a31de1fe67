//! `toolctl attach`: the current screen, keys, sizes, several clients at once, and a daemon that is killed meanwhile.

use crate::TOOLCTL;
use serde_json::json;
use std::process::Command;
use toold_test_support::rig::{DEADLINE, Daemon, id, skip_unless};
use toold_test_support::sys::Pidfd;
use toold_test_support::term::{DETACH, SIZE, Term};

/// A full-screen program: alternate screen, hidden cursor, mouse and paste reports, text at cursor positions,
/// some of it overwritten. Then it prints each typed line at another position.
const FULL_SCREEN: &str = "printf '\\033[?1049h\\033[?25l\\033[?1000h\\033[?2004h\\033[2J\\033[3;5Hold text\\033[3;5HTITLE   '; \
    printf '\\033[20;1H\\033[31mstatus\\033[m\\033[10;1H'; stty -echo; \
    while read -r line; do printf '\\033[12;3Hgot %s.\\033[K' \"$line\"; done";

pub fn on_terminal(d: &Daemon, script: &str) -> String {
    id(&d.sh_with(script, json!({ "pty": { "rows": SIZE.0, "cols": SIZE.1 } })))
}

#[test]
fn the_current_screen_is_shown_and_typing_reaches_the_program() {
    let d = Daemon::start();
    let proc = on_terminal(&d, FULL_SCREEN);
    d.printed(&proc, "status");
    let term = Term::ctl(&d, &["attach", &proc]);
    let screen = term.sees("status");
    let rows: Vec<&str> = screen.lines().collect();
    assert_eq!((rows[2].trim_end(), rows[19]), ("    TITLE", "status"), "{screen}");
    assert!(!screen.contains("old text"));
    assert_eq!(term.modes(), (true, true, true, true));
    term.types("hello\r");
    assert_eq!(term.sees("got hello.").lines().nth(11), Some("  got hello."));
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
    term.sees(&format!("toolctl: {proc} is still running: toolctl attach {proc}"));
    assert_eq!(d.process(&proc)["status"], "running");
    let again = Term::ctl(&d, &["attach", &proc]);
    assert!(again.sees("got hello.").contains("TITLE"), "a second attach sees the same");
}

#[test]
fn the_program_follows_our_window_and_a_viewer_never_resizes_it() {
    let d = Daemon::start();
    let script = "trap 'echo now $(stty size)' WINCH; echo ready; while :; do sleep 0.02; done";
    let proc = id(&d.sh_with(script, json!({ "pty": { "rows": 10, "cols": 40 } })));
    d.printed(&proc, "ready");
    let viewer = Term::ctl(&d, &["attach", "-r", &proc]);
    viewer.sees("ready");
    viewer.resize(33, 99);
    viewer.types(DETACH);
    assert_eq!(viewer.ends(), 0);
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 10, "cols": 40 }));
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("now 24 80");
    term.resize(30, 100);
    term.sees("now 30 100");
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 30, "cols": 100 }));
}

#[test]
fn two_clients_see_the_same_and_a_viewer_does_not_type() {
    let d = Daemon::start();
    let proc = on_terminal(&d, FULL_SCREEN);
    d.printed(&proc, "status");
    let (one, two) = (Term::ctl(&d, &["attach", &proc]), Term::ctl(&d, &["attach", &proc]));
    let viewer = Term::shell(
        &d,
        "trap : INT; \"$0\" \"$@\" </dev/null; echo \"[code $?]\"; read -r _",
        &["attach", "-r", &proc],
    );
    let all_see = |text: &str| [&one, &two, &viewer].iter().for_each(|term| drop(term.sees(text)));
    all_see("TITLE");
    one.types("first\r");
    all_see("got first.");
    two.types("second\r");
    all_see("got second.");
    viewer.types("\x03");
    assert_eq!(viewer.ends(), 130, "Ctrl-C ends a viewer");
    let viewer = Term::ctl(&d, &["attach", "--read-only", &proc]);
    viewer.sees("got second.");
    viewer.types("secret\r");
    one.types("third\r");
    // toolctl handles keys before answers, so the typed keys were handled by then.
    viewer.sees("got third.");
    viewer.types("\x03");
    assert_eq!(viewer.ends(), 0);
    one.types("fourth\r");
    one.sees("got fourth.");
    assert!(!d.text(&proc).contains("secret"));
}

#[test]
fn another_detach_key_leaves_the_usual_one_to_the_program() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "trap 'echo quit' QUIT; echo ready; while :; do sleep 0.02; done");
    d.printed(&proc, "ready");
    let term = Term::ctl(&d, &["attach", &proc, "--detach-keys", "C-p,C-q"]);
    term.sees("ready");
    term.types(DETACH);
    term.sees("quit");
    term.types("\x10\x11");
    assert_eq!(term.ends(), 0);
}

#[test]
fn the_last_keys_before_the_detach_key_are_written() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "stty -echo; echo ready; read -r line; echo got:$line; exec sleep 1000");
    d.printed(&proc, "ready");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("ready");
    term.types(&format!("all of it\r{DETACH}"));
    assert_eq!(term.ends(), 0);
    d.printed(&proc, "got:all of it");
}

/// The message after a reconnect.
const RECONNECTED: &str = "[toolctl: reconnected to the daemon; no output was lost]";

/// kill -9 of the daemon that runs now.
pub fn kill9(d: &Daemon) {
    let pid = d.ok("daemon.info", json!({}))["pid"].as_i64().unwrap() as i32;
    let daemon = Pidfd::open(pid).unwrap();
    daemon.signal(libc::SIGKILL);
    assert!(daemon.dies_within(DEADLINE));
}

#[test]
fn a_daemon_killed_during_typing_loses_and_doubles_nothing() {
    let d = Daemon::start();
    // The program prints every byte that it reads.
    let proc = on_terminal(&d, "stty raw -echo; echo ready; exec cat");
    d.printed(&proc, "ready");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("ready");
    let typed: Vec<String> = (0..400).map(|n| format!("<{n:04}>")).collect();
    for part in typed.chunks(100) {
        // When the daemon is killed, some of it is in the terminal, some in flight and some written.
        part[..60].iter().for_each(|keys| term.types(keys));
        kill9(&d);
        part[60..].iter().for_each(|keys| term.types(keys));
        term.printed(part.last().unwrap());
    }
    // The broken code reported a reconnect as soon as it could connect, which works with a dying daemon too.
    let all = term.printed_times(RECONNECTED, 4);
    assert_eq!(all.matches(RECONNECTED).count(), 4, "{all:?}");
    let shown: String = all.split("<0000>").skip(1).collect();
    let shown = format!("<0000>{shown}").replace(RECONNECTED, "").replace("\r\n", "");
    assert_eq!(shown, typed.concat(), "on the screen");
    assert_eq!(d.text(&proc), format!("ready\n{}", typed.concat()), "and in the program");
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
}

#[test]
fn text_at_cursor_positions_is_not_shifted_by_the_reconnect_message() {
    // As `top` does it. The broken code wrote its line at the cursor, and everything below moved down for good.
    let rows: Vec<String> = (1..=SIZE.0).map(|n| format!("row {n}")).collect();
    let script = "stty -echo; printf '\\033[H\\033[J'; for n in $(seq 1 24); do printf \"\\033[$n;1Hrow $n\"; done; \
        printf '\\033[6;1H'; while read -r line; do printf '\\033[12;1Hgot %s\\033[6;1H' \"$line\"; done";
    let d = Daemon::start();
    let run = Term::ctl(&d, &["run", "-t", "--", "/bin/sh", "-c", script]);
    run.sees("row 24");
    let attached = Term::ctl(&d, &["attach", &d.ids(json!({}))[0]]);
    attached.sees("row 24");
    kill9(&d);
    run.types("hello\r");
    let mut expected = rows;
    (expected[11], expected[23]) = ("got hello".into(), RECONNECTED.into());
    for term in [&run, &attached] {
        term.sees("got hello");
        assert_eq!(term.sees(RECONNECTED).lines().collect::<Vec<_>>(), expected);
    }
    expected[23] = "row 24".into();
    for term in [&run, &attached] {
        assert_eq!(term.loses(RECONNECTED).lines().collect::<Vec<_>>(), expected, "the message disappears by itself");
    }
}

#[test]
fn a_redraw_during_the_outage_does_not_hide_the_reconnect_message() {
    // The broken code printed the message first, and the program's new screen overwrote it at once.
    let d = Daemon::start();
    let gate = d.gate("go");
    let script =
        format!("printf '\\033[H\\033[Jfirst'; {}; printf '\\033[H\\033[Jsecond'; exec sleep 1000", gate.wait());
    let proc = on_terminal(&d, &script);
    d.printed(&proc, "first");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("first");
    kill9(&d);
    gate.open();
    term.sees("second");
    assert_eq!(term.sees(RECONNECTED).lines().next(), Some("second"));
    assert_eq!(term.loses(RECONNECTED), "second");
}

#[test]
fn half_written_keys_continue_where_they_stopped_after_a_killed_daemon() {
    if skip_unless(Command::new("python3").arg("--version").output().is_ok(), "python3 looks at its own input") {
        return;
    }
    let d = Daemon::start();
    let (report, go) = (d.gate("report"), d.gate("go"));
    // Reads nothing until its terminal is full: by then a part is written, and no answer was sent.
    let script = format!(
        "stty raw -echo; echo ready; python3 -c 'import fcntl, struct, termios, time\n\
         while struct.unpack(\"i\", fcntl.ioctl(0, termios.FIONREAD, b\"    \"))[0] < 4000: time.sleep(0.01)'; {}; {}; exec cat",
        report.send("full"),
        go.wait()
    );
    let proc = on_terminal(&d, &script.replace("\\n", "\n"));
    d.printed(&proc, "ready");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("ready");
    let typed: String = (0..5000).map(|n| format!("<{n:04}>")).collect();
    term.types(&typed);
    assert_eq!(report.recv(DEADLINE), "full");
    kill9(&d);
    go.open();
    term.printed("<4999>");
    assert!(d.text(&proc) == format!("ready\n{typed}"), "{} bytes came of {}", d.bytes(&proc).len(), typed.len() + 6);
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
}

#[test]
fn the_end_of_a_long_output_is_shown_and_a_full_screen_is_redrawn() {
    let d = Daemon::start();
    // More than is replayed, and a corner that is only drawn when the size changes.
    let script = "printf '\\033[?1049h\\033[2J'; trap 'printf \"\\033[1;1Hcorner\"' WINCH; \
        seq -f '\\033[5;1Hline %.0f' 1 30000 | while IFS= read -r l; do printf \"$l\"; done; printf '\\033[6;1Hdone'; \
        while :; do sleep 0.02; done";
    let proc = on_terminal(&d, script);
    d.printed(&proc, "done");
    let term = Term::ctl(&d, &["attach", &proc]);
    assert!(term.sees("corner").contains("line 30000"));
    assert!(term.modes().0, "the alternate screen was entered before the replayed part");
    d.eventually("the size is ours in the end", || {
        d.process(&proc)["pty_size"] == json!({ "rows": SIZE.0, "cols": SIZE.1 })
    });
}

#[test]
fn tmux_shows_it_and_gets_its_pane_back() {
    let tmux = |d: &Daemon, args: &[&str]| {
        let socket = d.root().join("tmux.sock");
        let mut command = Command::new("tmux");
        command.arg("-S").arg(socket).args(["-f", "/dev/null"]).args(args).env("HOME", d.home()).env_remove("TMUX");
        let output = command.output().unwrap();
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    if skip_unless(Command::new("tmux").arg("-V").output().is_ok(), "tmux is the terminal of this test") {
        return;
    }
    let d = Daemon::start();
    let proc = on_terminal(&d, FULL_SCREEN);
    d.printed(&proc, "status");
    let socket = d.socket().display().to_string();
    let line = format!("echo before; '{TOOLCTL}' --socket '{socket}' attach {proc}; echo code $?; exec sleep 1000");
    tmux(&d, &["new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", &line]);
    let pane = || tmux(&d, &["capture-pane", "-p"]);
    d.eventually("the pane shows the screen", || pane().contains("TITLE") && pane().contains("status"));
    tmux(&d, &["send-keys", "from tmux", "Enter"]);
    d.eventually("what is typed arrives", || pane().contains("got from tmux."));
    tmux(&d, &["resize-window", "-x", "100", "-y", "30"]);
    d.eventually("the size arrives", || d.process(&proc)["pty_size"] == json!({ "rows": 30, "cols": 100 }));
    tmux(&d, &["send-keys", "C-\\"]);
    d.eventually("the pane is itself again", || pane().contains("before") && pane().contains("code 0"));
    let flags = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}";
    assert_eq!(tmux(&d, &["display-message", "-p", flags]).trim(), "0 1 0");
    tmux(&d, &["kill-server"]);
}
