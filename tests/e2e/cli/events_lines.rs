//! The lines of `toolctl events`: their length, and the types that they show.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use toold_test_support::rig::{Daemon, id};

/// A model wrote `--type a,b` at once, and got a usage error.
#[test]
fn types_may_be_separated_by_commas() {
    let d = Daemon::start();
    let proc = id(&d.run("exit 3"));
    d.closed(&proc);
    let types = |args: &[&str]| -> Vec<String> {
        let printed = d.ctl(&[&["events", "--json"], args].concat());
        let event = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        printed.stdout.lines().map(|line| event(line)["type"].as_str().unwrap().to_owned()).collect()
    };
    d.eventually("the last one is stored", || types(&["--type", "closed"]).len() == 1);
    assert_eq!(types(&["--type", "started,exited"]), ["started", "exited"]);
    assert_eq!(types(&["--type=exited,closed", "--type", "started"]), ["started", "exited", "closed"]);
    let wrong = d.ctl(&["events", "--type", "started,nonsense"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("nonsense"), "{wrong:?}");
}

#[test]
fn each_event_is_one_line_of_at_most_300_characters() {
    let d = Daemon::start();
    let mut child = d.ctl_command(&["events", "-f", "--type", "completion,watch_match"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Characters of two columns, and marks of none.
    let long = "printf 'needle %01000d\\n' 7; printf 'wide %s\\n' \"$(printf '网%.0s' $(seq 500))\"; printf 'e\u{301}%.0s' $(seq 500)";
    d.sh_with(long, json!({ "notify": true, "watch": ["needle"], "name": "n".repeat(60) }));
    for kind in ["watch_match", "completion"] {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(kind) && line.chars().count() <= 300, "{} {line}", line.chars().count());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
