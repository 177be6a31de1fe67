//! `log` of several processes, with the time of each line, and without an ID.

use serde_json::json;
use std::io::{BufRead, BufReader};
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon, id};

#[test]
fn lines_of_several_processes_come_in_the_order_of_their_times_behind_their_names() {
    let d = Daemon::start();
    let named = |name: &str| json!({ "name": name });
    let (go, back) = (d.gate("go"), d.gate("back"));
    // More than a tenth of a second lies between two, the precision of times in the log.
    let web = format!("echo web 1; {}; sleep 0.3; echo web 2; sleep 0.3; {}; echo -n web 3", go.wait(), back.send("x"));
    let web = id(&d.sh_with(&web, named("web")));
    d.printed(&web, "web 1");
    let db = id(&d.sh_with("sleep 0.3; echo db 1 >&2; printf '1%%\\r50%%\\r100%%\\n'", named("database")));
    d.closed(&db);
    go.open();
    assert_eq!(back.recv(DEADLINE), "x");
    d.closed(&web);
    let output = d.ctl(&["log", "web", "database"]);
    let expected = "web      | web 1\ndatabase | db 1\ndatabase | 100%\nweb      | web 2\nweb      | web 3\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, expected, ""));
    assert_eq!(d.ctl(&["log", "web", "database", "--tail", "1"]).stdout, "database | 100%\nweb      | web 3\n");
    assert_eq!(d.ctl(&["log", "*", "--stream", "stderr"]).stdout, "database | db 1\n");
    assert_eq!(
        d.ctl(&["log", "web", "database", "--grep", "[12]$", "-n", "1"]).stdout,
        "database | db 1\nweb      | web 2\n"
    );
    let coloured = d.ctl(&["--color", "always", "log", "web", "database", "-n", "1"]).stdout;
    assert!(
        coloured.contains("\x1b[36mweb      |\x1b[0m web 3\n") && coloured.contains("\x1b[33mdatabase |"),
        "{coloured:?}"
    );
    for one_only in [&["--json"][..], &["--raw"], &["--offset", "1"], &["--grep", "x", "-A", "1"]] {
        let refused = d.ctl(&[&["log", "web", "database"], one_only].concat());
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{one_only:?}: {refused:?}");
    }
    assert_eq!(d.ctl(&["log", "web", "nosuch"]).code, 3);
}

#[test]
fn the_time_of_a_line_is_that_of_its_first_byte() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("printf be; {}; sleep 0.3; echo gan; echo next", gate.wait()));
    d.printed(&proc, "be");
    gate.open();
    d.closed(&proc);
    let output = d.ctl(&["log", "-t", &proc]);
    let lines: Vec<(&str, &str)> = output.stdout.lines().filter_map(|line| line.split_once("  ")).collect();
    assert_eq!(lines.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["began", "next"], "{output:?}");
    assert!(lines[0].0 < lines[1].0 && lines[0].0.len() == "2026-11-16 04:00:00.1".len(), "{output:?}");
    // The time is one that --since takes.
    let since = lines[1].0.split('.').next().unwrap();
    assert!(d.ctl(&["log", &proc, "--since", since]).stdout.contains("next"));
    assert_eq!(d.ctl(&["log", "-t", "--raw", &proc]).code, 2);
}

#[test]
fn several_are_followed_across_a_killed_daemon_with_nothing_lost_and_nothing_doubled() {
    let mut d = Daemon::start();
    let (go, sent, end, other) = (d.gate("go"), d.gate("sent"), d.gate("end"), d.gate("other"));
    let script = format!("echo ready; {}; seq 1 500; {}; {}; echo last", go.wait(), sent.send("x"), end.wait());
    let a = id(&d.sh_with(&script, json!({ "name": "a" })));
    let b = id(&d.sh_with(&format!("echo ready; {}; echo last", other.wait()), json!({ "name": "b" })));
    d.printed(&a, "ready");
    d.printed(&b, "ready");
    let mut child = d.ctl_command(&["--no-autostart", "log", "-f", "a", "b"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut first = [lines.next().unwrap(), lines.next().unwrap()];
    first.sort();
    assert_eq!(first, ["a | ready", "b | ready"]);
    d.kill9();
    go.open();
    assert_eq!(sent.recv(DEADLINE), "x", "the program writes while no daemon runs");
    d.spawn();
    end.open();
    other.open();
    let rest: Vec<String> = lines.collect();
    let of = |name: &str| rest.iter().filter(|line| line.starts_with(name)).cloned().collect::<Vec<_>>();
    let counted = (1..=500).map(|n| format!("a | {n}")).chain(["a | last".to_owned()]);
    assert_eq!((of("a"), of("b")), (counted.collect(), vec!["b | last".to_owned()]));
    assert_eq!(output_of(child).code, 0);
}

#[test]
fn without_an_id_it_is_the_one_that_runs_or_the_newest() {
    let d = Daemon::start();
    let refused = d.ctl(&["log"]);
    assert!(refused.code == 2 && refused.stderr.contains("no process runs"), "{refused:?}");
    d.run("echo old");
    d.run("echo new; exit 3");
    assert_eq!(d.ctl(&["log"]).stdout, "new\n", "none runs: the newest");
    assert_eq!(d.ctl(&["wait"]).code, 2, "none runs");
    let runs = d.sh("echo runs; exec sleep 1000");
    d.printed(&runs, "runs");
    d.run("echo newest");
    assert_eq!(d.ctl(&["log"]).stdout, "runs\n");
    let refused = d.ctl(&["kill"]);
    assert!(refused.code == 2 && refused.stderr.contains("give an ID"), "not from a script: {refused:?}");
    let waited = d.ctl(&["wait", "--match", "runs"]);
    assert!(waited.code == 0 && waited.stdout.starts_with(&runs), "{waited:?}");
    d.ok("kill", json!({ "id": runs }));
    let two = [
        d.sh_with("exec sleep 1000", json!({ "name": "one" })),
        d.sh_with("exec sleep 1000", json!({ "name": "two" })),
    ];
    let refused = d.ctl(&["log"]);
    assert!(refused.code == 2 && refused.stderr.contains("2 processes run: two, one"), "{two:?}: {refused:?}");
}
