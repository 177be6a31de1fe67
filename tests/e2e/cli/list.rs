//! `list` and `inspect` for people: tables, a full screen that is restored, hostile content.

use crate::TOOLCTL;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;
use toold_test_support::term::Term;

/// Text that would act on the terminal of its reader, apart from colours.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;evil\u{7}\u{9b}1m\u{202e}\u{200b}\r\n";

/// A process on a terminal of 30 by 120 that runs `toolctl`, and prints its code and whether the terminal is restored.
fn on_terminal(d: &Daemon, env: &str, args: &str) -> String {
    let script = format!(
        "trap : INT TERM; before=$(stty -g); {env} {TOOLCTL} {args}; echo \"code $?\"; \
         test \"$before\" = \"$(stty -g)\" && echo as before"
    );
    id(&d.sh_with(&script, json!({ "pty": { "rows": 30, "cols": 120 }, "name": "screen" })))
}

/// The `toolctl` on such a terminal, and its state letter from /proc.
fn toolctl(d: &Daemon, screen: &str) -> (Pidfd, Value) {
    let tree = d.ok("inspect", json!({ "id": screen }))["tree"].clone();
    let is_ctl = |m: &&Value| m["command"].as_str().is_some_and(|c| c.starts_with(TOOLCTL));
    let member = tree.as_array().unwrap().iter().find(is_ctl).unwrap();
    (Pidfd::open(member["pid"].as_i64().unwrap() as i32).unwrap(), member["state"].clone())
}

/// Checks that the terminal got text and colours only.
#[track_caller]
fn assert_harmless(text: &str) {
    let mut rest = String::new();
    for (n, part) in text.split("\u{1b}[").enumerate() {
        let colour = part.find('m').filter(|at| part[..*at].bytes().all(|b| b.is_ascii_digit() || b == b';'));
        match (n, colour) {
            (0, _) => rest.push_str(part),
            (_, Some(at)) => rest.push_str(&part[at + 1..]),
            (_, None) => panic!("an escape sequence other than a colour: {part:?} in {text:?}"),
        }
    }
    let wrong = |c: &char| c.is_control() && !matches!(c, '\r' | '\n' | '\t') || matches!(c, '\u{202e}' | '\u{200b}');
    assert_eq!(rest.chars().find(wrong), None, "{text:?}");
}

#[test]
fn watch_redraws_on_changes_and_restores_the_terminal() {
    let d = Daemon::start();
    let screen = on_terminal(&d, "", "list --watch");
    d.printed(&screen, "COMMAND");
    let late = id(&d.sh_with("exec sleep 1000", json!({ "name": "latecomer" })));
    d.printed(&screen, &format!("{late}  latecomer"));
    d.ok("kill", json!({ "id": late }));
    d.printed(&screen, "SIGTERM");
    d.ok("write", json!({ "id": screen, "data": "\u{3}" }));
    d.closed(&screen);
    let text = d.text(&screen);
    let (taken, after) = text.rsplit_once("\u{1b}[?1049l").unwrap_or_else(|| panic!("restored: {text:?}"));
    assert!(taken.starts_with("\u{1b}[?1049h") && taken.ends_with("\u{1b}[?25h"), "{text:?}");
    assert_eq!(after, "code 0\r\nas before\r\n");
    assert!(!taken.contains("\u{1b}[2J"), "the screen is not cleared between two frames");
}

#[test]
fn watch_continues_after_the_daemon_was_killed_and_starts_none_itself() {
    let mut d = Daemon::start();
    let screen = on_terminal(&d, "", "list --watch");
    d.printed(&screen, "COMMAND");
    d.kill9();
    d.eventually("it reports that", || {
        let log = d.state().join("procs").join(&screen).join("log");
        String::from_utf8_lossy(&std::fs::read(log).unwrap()).contains("the daemon is not running")
    });
    d.spawn();
    d.sh_with("exec sleep 1000", json!({ "name": "afterwards" }));
    d.printed(&screen, "afterwards");
    d.ok("write", json!({ "id": screen, "data": "q" }));
    d.closed(&screen);
    assert!(d.text(&screen).ends_with("\u{1b}[?1049lcode 0\r\nas before\r\n"));
}

#[test]
fn watch_restores_the_terminal_before_it_dies_by_a_signal() {
    let d = Daemon::start();
    let screen = on_terminal(&d, "", "list --watch");
    d.printed(&screen, "COMMAND");
    toolctl(&d, &screen).0.signal(libc::SIGTERM);
    d.closed(&screen);
    let text = d.text(&screen);
    let (_, after) = text.rsplit_once("\u{1b}[?1049l").unwrap_or_else(|| panic!("restored: {text:?}"));
    assert!(after.contains("code 143\r\nas before"), "{text:?}");
}

#[test]
fn watch_restores_the_terminal_while_it_is_suspended() {
    let d = Daemon::start();
    let screen = on_terminal(&d, "", "list --watch");
    d.printed(&screen, "COMMAND");
    toolctl(&d, &screen).0.signal(libc::SIGTSTP);
    d.eventually("it stands still", || toolctl(&d, &screen).1 == "T");
    assert!(d.text(&screen).ends_with("\u{1b}[?1049l"));
    toolctl(&d, &screen).0.signal(libc::SIGCONT);
    d.eventually("it is back", || d.text(&screen).matches("\u{1b}[?1049h").count() == 2);
    d.ok("write", json!({ "id": screen, "data": "q" }));
    d.closed(&screen);
    assert!(d.text(&screen).ends_with("\u{1b}[?1049lcode 0\r\nas before\r\n"));
}

#[test]
fn watch_in_a_pipe_prints_a_table_per_change_until_the_reader_is_gone() {
    let d = Daemon::start();
    let first = id(&d.sh_with("exec sleep 1000", json!({ "name": "first" })));
    let mut child = d.ctl_command(&["list", "--watch"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    assert!(line().starts_with("ID ") && line().contains("running"));
    d.ok("kill", json!({ "id": first }));
    assert_eq!(line(), "\n");
    assert!(line().starts_with("ID ") && line().contains("killed"));
    drop(stdout);
    let output = output_of(child);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[test]
fn hostile_content_does_not_act_on_the_terminal() {
    let d = Daemon::start();
    let file = d.root().join("hostile");
    std::fs::write(&file, [HOSTILE.as_bytes(), b"\xff\x9b2Jtail\n"].concat()).unwrap();
    let argv = json!(["/bin/sh", "-c", "cat \"$1\"; exec sleep 1000", HOSTILE, file]);
    let more = json!({ "argv": argv, "labels": { HOSTILE: HOSTILE }, "session_key": HOSTILE, "task_id": HOSTILE, "watch": [HOSTILE.trim_end()] });
    let proc = id(&d.ok("exec", more));
    d.printed(&proc, "tail");
    for args in
        ["list", "list -a", "inspect", "log", "log --no-pager --since 1h", "log --color=always", "poll", "events"]
    {
        let whole = match args.split_once(' ') {
            _ if args.starts_with("list") || args == "events" => args.to_owned(),
            Some((verb, flags)) => format!("{verb} {proc} {flags}"),
            None => format!("{args} {proc}"),
        };
        let screen = on_terminal(&d, "", &whole);
        d.closed(&screen);
        let text = d.text(&screen);
        assert!(text.ends_with("code 0\r\nas before\r\n"), "{whole}: {text:?}");
        assert_harmless(&text);
    }
    let raw = on_terminal(&d, "", &format!("log --raw {proc}"));
    d.closed(&raw);
    let bytes = d.bytes(&raw);
    assert!(bytes.windows(4).any(|w| w == b"\x1b[2J") && bytes.contains(&0xff), "{bytes:?}");
}

#[test]
fn colours_are_printed_on_request() {
    let d = Daemon::start();
    d.run("exit 3");
    let piped = |name: &str, value: &str, args: &[&str]| {
        let mut command = d.ctl_command(args);
        command.env(name, value);
        output_of(command.spawn().unwrap()).stdout.contains('\u{1b}')
    };
    assert!(!piped("X", "", &["list"]) && piped("CLICOLOR_FORCE", "1", &["list"]));
    assert!(
        piped("NO_COLOR", "1", &["list", "--color=always"])
            && !piped("CLICOLOR_FORCE", "1", &["--color", "never", "list"])
    );
    for (env, args, coloured) in [("", "list", true), ("NO_COLOR=1", "list", false), ("", "list --color never", false)]
    {
        let screen = on_terminal(&d, env, args);
        d.closed(&screen);
        assert_eq!(d.text(&screen).contains("\u{1b}[31m"), coloured, "{env} {args}");
    }
}

#[test]
fn list_sorts_filters_and_reports_what_it_leaves_out() {
    let d = Daemon::start();
    for name in ["beta", "alpha", "gamma"] {
        d.sh_with("exec sleep 1000", json!({ "name": name }));
    }
    (0..25).for_each(|_| drop(d.run("exit 0")));
    let names = |args: &[&str]| -> Vec<String> {
        let output = d.ctl(&[&["list"], args].concat());
        let names = output.stdout.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().to_owned());
        names.filter(|name| name != "-").collect()
    };
    assert_eq!(names(&[]), ["gamma", "alpha", "beta"]);
    assert_eq!(names(&["--sort", "name"]), ["alpha", "beta", "gamma"]);
    assert_eq!(names(&["--sort", "name", "-r"]), ["gamma", "beta", "alpha"]);
    assert_eq!(names(&["--name", "*mm*"]), ["gamma"]);
    let output = d.ctl(&["list"]);
    assert_eq!(output.stdout.lines().count(), 1 + 3 + 20);
    assert_eq!(output.stderr, "toolctl: 5 more are not shown; -a shows all\n");
    let output = d.ctl(&["list", "-a"]);
    assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (1 + 3 + 25, ""));
}

#[test]
fn inspect_prints_a_status_and_ends_with_the_last_lines() {
    let d = Daemon::start();
    let more = json!({ "name": "web", "limits": { "output_bytes": 1 << 20 }, "timeout_ms": 900_000 });
    let proc = id(&d.sh_with("seq 1 30; sleep 1000; true", more));
    d.printed(&proc, "30");
    d.eventually("the shell has started the other", || {
        d.ok("inspect", json!({ "id": proc }))["tree"][1]["command"] == "sleep 1000"
    });
    let output = d.ctl(&["inspect", "web"]).stdout;
    assert!(output.starts_with(&format!("● web ({proc}) - ")), "{output}");
    for part in [
        "State: running since ",
        "Limits: 15m in all, by shim\n",
        "output 1.0M, by ",
        "└─ sleep 1000\n",
        "bytes, 30 lines, open",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let last: String = (21..=30).map(|n| format!("{n}\n")).collect();
    assert!(output.ends_with(&format!("\n\n{last}")), "{output}");
    let screen = on_terminal(&d, "TZ=Asia/Tokyo", "inspect web");
    d.closed(&screen);
    assert!(d.text(&screen).contains(" JST; "), "local time for people: {}", d.text(&screen));
    assert!(d.ctl(&["inspect", "web", "--json"]).stdout.contains("Z\""), "JSON has RFC 3339");
}

#[test]
fn mistyped_arguments_are_printed_without_their_escape_sequences() {
    let d = Daemon::start();
    let screen = on_terminal(&d, "", "\"$(printf '\\033]0;evil\\007')\"");
    d.closed(&screen);
    let shown = String::from_utf8_lossy(&d.bytes(&screen)).into_owned();
    assert!(!shown.contains("\x1b]0;") && shown.contains("code 2"), "{shown:?}");
}

#[test]
fn an_empty_list_is_a_message_on_a_terminal_and_a_heading_in_a_pipe() {
    let d = Daemon::start();
    let text = "\"$0\" list; \"$0\" list --name 'x*' 2> err; echo \"[code $?]\"; read -r _";
    let printed = Term::shell(&d, text, &[]).printed("[code 0]");
    // The broken code printed the names of ten columns.
    assert_eq!(printed.split("[code").next(), Some("toolctl: no processes\r\n"), "{printed:?}");
    assert_eq!(std::fs::read_to_string(d.root().join("err")).unwrap(), "toolctl: no processes\n");
    let output = d.ctl(&["list"]);
    assert!(output.code == 0 && output.stdout.starts_with("ID ") && output.stderr.is_empty(), "{output:?}");
    assert_eq!(d.ctl(&["list", "--json"]).stdout, "{\"processes\":[],\"total\":0}\n");
}

/// The broken code printed an escape for each of 200 bytes.
#[test]
fn binary_output_does_not_fill_a_row_of_a_pipe() {
    let d = Daemon::start();
    d.run("head -c 500 /dev/zero; printf '\\1\\2\\377\\376'");
    let row = d.ctl(&["list"]).stdout.lines().nth(1).unwrap().to_owned();
    assert!(row.ends_with("  (binary)") && row.len() < 300, "{row}");
}
