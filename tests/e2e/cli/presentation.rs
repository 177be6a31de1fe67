//! Values as `toolctl` reads and prints them: statuses, times, truncation, counts, names.

use crate::TOOLCTL;
use serde_json::json;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::Term;

/// A terminal of 24 by 40 that runs this shell text and prints its code.
fn narrow(d: &Daemon, text: &str) -> Term {
    Term::shell(d, &format!("stty cols 40; export NO_COLOR=1; {text}; echo \"[code $?]\"; read -r _"), &[])
}

#[test]
fn every_status_in_the_table_can_be_used_as_a_filter() {
    let d = Daemon::start();
    d.sh_with("exec sleep 1000", json!({ "name": "runs" }));
    d.sh_with("exit 0", json!({ "name": "ended", "yield_ms": 60000 }));
    d.sh_with("kill -9 $$", json!({ "name": "died", "yield_ms": 60000 }));
    d.sh_with("exec sleep 1000", json!({ "name": "late", "timeout_ms": 50, "yield_ms": 60000 }));
    d.sh_with("exec sleep 1000", json!({ "name": "hit" }));
    assert_eq!(d.ctl(&["kill", "hit"]).code, 0);
    assert_eq!(d.ctl(&["exec", "--name", "never", "--", "/nonexistent/program"]).code, 1);
    let named = |status: &str| -> Vec<String> {
        let output = d.ctl(&["list", "--sort", "name", "--status", status]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{status}");
        output.stdout.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
    };
    let shown = d.ctl(&["list", "-a"]).stdout;
    for line in shown.lines().skip(1) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert!(named(cells[2]).contains(&cells[1].to_owned()), "{line}");
    }
    assert_eq!(
        (named("killed"), named("timeout"), named("signaled")),
        (["hit"].map(String::from).to_vec(), ["late"].map(String::from).to_vec(), ["died"].map(String::from).to_vec())
    );
    assert_eq!((named("failed_start"), named("running")), (vec!["never".to_owned()], vec!["runs".to_owned()]));
    assert_eq!(named("exited"), ["died", "ended", "hit", "late", "never"], "any kind of end");
    // The broken code printed a time for which it ran.
    assert!(d.ctl(&["inspect", "never"]).stdout.contains(", never ran\n"));
    for status in ["starting", "lost", "oom"] {
        assert_eq!(named(status), Vec::<String>::new());
    }
    let document = d.ctl(&["list", "--json", "--status", "killed"]).stdout;
    assert!(document.contains("\"total\":1") && document.contains("\"hit\""), "{document}");
    let output = d.ctl(&["list", "--status", "dead"]);
    let statuses =
        "pending, starting, running, exited, lost, stopped, killed, signaled, timeout, oom, failed_start, dependency";
    assert!(output.code == 2 && output.stderr.contains(statuses), "{output:?}");
}

#[test]
fn log_takes_the_time_formats_of_date() {
    let d = Daemon::start();
    let proc = id(&d.run("echo before"));
    let shown = |args: &[&str]| d.ctl(&[&["log", &proc], args].concat()).stdout;
    let date = |zone: &str, form: &[&str]| -> String {
        let output = d.tool("date", form).env("TZ", zone).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for form in ["-Is", "--rfc-3339=seconds", "-Im", "-Ins", "--rfc-3339=ns"] {
        for zone in ["UTC", "Asia/Tokyo", "America/St_Johns"] {
            let (past, future) = (date(zone, &["-d", "1 hour ago", form]), date(zone, &["-d", "1 hour", form]));
            assert_eq!(shown(&["--since", &past, "--until", &future]), "before\n", "{past} to {future}");
            assert_eq!(shown(&["--since", &future]), "", "{future}");
            assert_eq!(shown(&["--until", &past]), "", "{past}");
        }
    }
    assert_eq!(d.ctl(&["log", &proc, "--since", "2026-11-16T10:00:00+2"]).code, 2);
}

#[test]
fn the_sequence_that_ncurses_ends_a_colour_with_is_stripped() {
    let d = Daemon::start();
    let proc = id(&d.run(r"printf '\033[31mred\033(B\017\033[m \016lqk\017\033)0 end\n'"));
    assert_eq!(d.ctl(&["log", &proc]).stdout, "red lqk end\n");
    assert_eq!(d.ctl(&["log", &proc, "--grep", "^red lqk end$"]).stdout, "red lqk end\n");
    assert_eq!(d.ok("poll", json!({ "id": proc, "cursor": 0 }))["output"], "red lqk end\n");
    assert!(d.ctl(&["list"]).stdout.contains("  red lqk end\n"), "{}", d.ctl(&["list"]).stdout);
    assert_eq!(d.ctl(&["log", &proc, "--color=always"]).stdout, "\u{1b}[31mred\u{1b}[m lqk end\n");
    let matched = d.ok("wait", json!({ "id": proc, "until": { "match": "red lqk end" } }));
    assert_eq!(matched["status"], "matched");
}

#[test]
fn closing_a_closed_stdin_succeeds() {
    let d = Daemon::start();
    let reader = id(&d.sh_with("cat; exec sleep 1000", json!({ "stdin": "pipe" })));
    assert_eq!(d.ctl(&["close", &reader]).code, 0);
    let output = d.ctl(&["close", &reader]);
    let message = format!("toolctl: the stdin of {reader} is closed; there was nothing to close\n");
    assert_eq!((output.code, output.stdout.as_str(), output.stderr), (0, "", message));
    let ended = id(&d.sh_with("head -c 1; exit 3", json!({ "stdin": "pipe" })));
    assert_eq!(d.ctl(&["write", &ended, "more than it reads"]).code, 0);
    d.exited(&ended);
    let output = d.ctl(&["close", &ended]);
    let message = format!("toolctl: {ended} has exited with code 3; there was nothing to close\n");
    assert_eq!((output.code, output.stderr), (0, message));
    assert_eq!(d.ctl(&["close", &ended, "--json"]).code, 1, "--json has the error of the method");
    let without = d.sh("exec sleep 1000");
    assert_eq!((d.ctl(&["close", &without]).code, d.ctl(&["close", "nosuch"]).code), (1, 3));
}

#[test]
fn a_missing_pager_is_skipped() {
    // The broken code passed the output to a shell that could not find the pager, and the output was lost.
    let d = Daemon::start();
    let long = id(&d.run("seq 1 100"));
    for pager in ["/nonexistent/pager", "nosuchpager -R"] {
        let script = format!("PAGER='{pager}' {TOOLCTL} log {long}; echo \"code $?\"");
        let screen = id(&d.sh_with(&script, json!({ "pty": { "rows": 24, "cols": 80 } })));
        d.closed(&screen);
        let text = d.text(&screen);
        assert!(text.starts_with("1\r\n2\r\n") && text.ends_with("\r\n100\r\ncode 0\r\n"), "{pager}: {text:?}");
    }
}

#[test]
fn a_status_line_is_shown_only_where_both_streams_are_terminals() {
    let d = Daemon::start();
    let wait = d.sh_with("sleep 2.5", json!({ "name": "job" }));
    let shown = |command: &str| {
        let term = Term::shell(&d, &format!("{command}; echo \"[code $?]\"; read -r _"), &[]);
        term.printed("[code ")
    };
    // All at once: each takes as long as its program.
    std::thread::scope(|scope| {
        let cases = [
            (true, "\"$0\" run --no-stdin -- sleep 2.5".to_owned()),
            (true, "\"$0\" run -- sleep 2.5 < /dev/null".to_owned()),
            (true, "\"$0\" run -- sleep 2.5".to_owned()),
            (false, "\"$0\" run --no-stdin -- sleep 2.5 | cat".to_owned()),
            (false, "\"$0\" run --no-stdin -- sleep 2.5 2> err".to_owned()),
            (true, format!("\"$0\" wait {}", id(&wait))),
            (false, format!("\"$0\" wait {} | cat", id(&wait))),
        ];
        let shown = &shown;
        let all: Vec<_> =
            cases.map(|(seen, command)| (seen, command.clone(), scope.spawn(move || shown(&command)))).into();
        for (seen, command, printed) in all {
            let printed = printed.join().unwrap();
            assert_eq!(printed.contains("running"), seen, "{command}: {printed:?}");
        }
    });
    assert_eq!(std::fs::read_to_string(d.root().join("err")).unwrap(), "");
}

#[test]
fn at_40_columns_a_truncated_value_is_marked() {
    let d = Daemon::start();
    let command = "echo a line; exec sleep 1000";
    let proc = id(&d.sh_with(command, json!({ "name": "a-name-that-is-long" })));
    let shown = |args: &str| -> Vec<String> {
        let all = narrow(&d, &format!("\"$0\" {args}")).printed("[code 0]");
        let text = all.split("[code").next().unwrap().to_owned();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    };
    let list = shown("list");
    assert!(list.iter().all(|line| line.chars().count() == 40 && line.ends_with('…')), "{list:?}");
    let output = d.ctl(&["info"]).stdout;
    let info = shown("info");
    assert!(info.iter().all(|line| line.chars().count() <= 40 && !line.contains('…')), "{info:?}");
    let split = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    let limits = |text: &[String]| text.split(|part| part == "limits:").nth(1).map(<[String]>::to_vec);
    assert_eq!(limits(&split(&info.join("\n"))), limits(&split(&output)), "no value is left out");
    let inspect = shown("inspect a-name-that-is-long");
    assert!(inspect.iter().all(|line| line.chars().count() <= 40), "{inspect:?}");
    assert!(inspect[0].ends_with('…'), "{inspect:?}");
    let joined: String = inspect.iter().map(|line| line.trim_start()).collect();
    let log = d.ok("inspect", json!({ "id": proc }))["log_path"].as_str().unwrap().to_owned();
    assert!(joined.contains(&log), "a value continues in the next line: {inspect:?}");
}

#[test]
fn watch_marks_a_truncated_value() {
    let d = Daemon::start();
    d.sh("echo output that is much longer than the screen of forty columns; exec sleep 1000");
    let text = "stty cols 40; \"$0\" list --watch; echo \"[code $?]\"; read -r _";
    let term = Term::shell(&d, text, &[]);
    term.resize(24, 40);
    let screen = term.sees("…");
    let rows: Vec<&str> = screen.lines().filter(|line| line.starts_with("proc_")).collect();
    assert!(rows.len() == 1 && rows[0].ends_with('…'), "{screen}");
    term.types("q");
    assert_eq!(term.ends(), 0);
}

#[test]
fn one_line_is_singular() {
    let d = Daemon::start();
    let one = id(&d.run("echo one"));
    let output = d.ctl(&["inspect", &one]).stdout;
    assert!(output.contains("Output: 4 bytes, 1 line, closed\n"), "{output}");
    d.sh_with("echo two; echo lines", json!({ "name": "two", "notify": true, "yield_ms": 60000 }));
    d.sh_with("echo", json!({ "name": "one", "notify": true, "yield_ms": 60000 }));
    d.eventually("the completions are published", || {
        let output = d.ctl(&["events"]).stdout;
        output.contains("10 bytes, 2 lines") && output.contains("1 byte, 1 line")
    });
}

#[test]
fn detaching_prints_the_name() {
    let d = Daemon::start();
    let start = |name: &str, more: &[&str], script: &str| {
        Term::ctl(&d, &[&["run", "--name", name], more, &["--", "/bin/sh", "-c", script]].concat())
    };
    let term = start("web", &["-t"], "echo ready; exec sleep 1000");
    term.sees("ready");
    term.types(toold_test_support::term::DETACH);
    assert_eq!(term.ends(), 0);
    let web = d.process("web")["id"].as_str().unwrap().to_owned();
    term.sees(&format!("toolctl: web ({web}) is still running: toolctl attach web"));
    let term = Term::ctl(&d, &["attach", &web]);
    term.sees("ready");
    term.types(toold_test_support::term::DETACH);
    assert_eq!(term.ends(), 0);
    term.sees("is still running: toolctl attach web");
    let term = start("job", &["--detach-after", "300ms"], "exec sleep 1000");
    assert_eq!(term.ends(), 0);
    let job = d.process("job")["id"].as_str().unwrap().to_owned();
    term.sees(&format!("job ({job}) is still running: toolctl log -f job"));
    let output = d.ctl(&["run", "--name", "piped", "--detach-after", "300ms", "--", "sleep", "1000"]);
    assert_eq!(output.stdout, format!("{}\n", d.process("piped")["id"].as_str().unwrap()), "only the id in a pipe");
}

#[test]
fn the_error_for_a_missing_process_names_a_command_to_type() {
    let d = Daemon::start();
    let output = d.ctl(&["log", "nosuch"]);
    assert!(output.code == 3 && output.stderr.contains("`toolctl list` shows what there is"), "{output:?}");
}
