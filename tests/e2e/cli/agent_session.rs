//! The session of the agent that runs `toolctl`: what it starts belongs to it, what it looks at does not become less.

use serde_json::{Value, json};
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{Daemon, id};

/// Runs `toolctl` with these variables.
fn ctl(d: &Daemon, vars: &[(&str, &str)], args: &[&str]) -> Output {
    output_of(d.ctl_command(args).envs(vars.iter().copied()).spawn().unwrap())
}

fn session(d: &Daemon, started: &Output) -> Value {
    d.process(started.stdout.trim())["session_key"].clone()
}

const CLAUDE: (&str, &str) = ("CLAUDE_CODE_SESSION_ID", "67466");
const CODEX: (&str, &str) = ("CODEX_THREAD_ID", "01a1");
const NAMED: (&str, &str) = ("TOOLD_SESSION", "mine");

#[test]
fn what_an_agent_starts_belongs_to_its_session_unless_an_option_names_another() {
    let d = Daemon::start();
    let exec = |vars: &[(&str, &str)], more: &[&str]| {
        let started = ctl(&d, vars, &[&["exec"], more, &["--", "sleep", "1000"]].concat());
        session(&d, &started)
    };
    assert_eq!(exec(&[], &[]), Value::Null);
    assert_eq!(exec(&[CODEX], &[]), "codex:01a1");
    assert_eq!(exec(&[CODEX, CLAUDE], &[]), "claude:67466");
    assert_eq!(exec(&[CODEX, CLAUDE, NAMED], &[]), "mine");
    assert_eq!(exec(&[CLAUDE], &["--session", "chat"]), "chat");
    assert_eq!(exec(&[CLAUDE], &["--session", ""]), Value::Null, "an empty one is none");
    let run = ctl(&d, &[CLAUDE], &["run", "--name", "ran", "--", "true"]);
    assert_eq!((run.code, &d.process("ran")["session_key"]), (0, &json!("claude:67466")));
    let script = ctl(&d, &[CLAUDE], &["script", "--lang", "bash", "--name", "scripted", "-c", "exit 0"]);
    assert_eq!((script.code, &d.process("scripted")["session_key"]), (0, &json!("claude:67466")), "{script:?}");
}

#[test]
fn a_session_hides_no_process_of_others() {
    let d = Daemon::start();
    let other = id(&d.sh_with("exec sleep 1000", json!({ "name": "other", "session_key": "s" })));
    let listed = ctl(&d, &[CLAUDE], &["list"]);
    assert!(listed.stdout.contains("other"), "{listed:?}");
    assert_eq!(ctl(&d, &[CLAUDE], &["log", "other"]).code, 0);
    assert_eq!(ctl(&d, &[CLAUDE], &["kill", "--all"]).code, 0);
    assert_eq!(d.process(&other)["reason"], "killed");
}

#[test]
fn events_are_those_of_the_session_unless_a_process_is_named() {
    let d = Daemon::start();
    let (own, other) = (json!({ "session_key": "claude:67466", "name": "own" }), json!({ "name": "other" }));
    for more in [own, other] {
        d.closed(&id(&d.sh_with("exit 0", more)));
    }
    let names = |vars: &[(&str, &str)], more: &[&str]| -> Vec<String> {
        let printed = ctl(&d, vars, &[&["events", "--json", "--type", "started"], more].concat()).stdout;
        let event = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
        printed.lines().map(event).collect()
    };
    assert_eq!(names(&[], &[]), ["own", "other"]);
    assert_eq!(names(&[CLAUDE], &[]), ["own"]);
    assert_eq!(names(&[CLAUDE], &["--session", ""]), ["own", "other"]);
    assert_eq!(names(&[CLAUDE], &["--id", "other"]), ["other"]);
}

#[test]
fn a_wait_without_ids_waits_for_the_session_of_the_agent() {
    let d = Daemon::start();
    let nothing = ctl(&d, &[CLAUDE], &["wait"]);
    let printed = "toolctl: nothing runs in session claude:67466\n";
    assert_eq!((nothing.code, nothing.stdout.as_str(), nothing.stderr.as_str()), (0, "", printed));
    d.sh("exec sleep 1000");
    let started = ctl(&d, &[CLAUDE], &["exec", "--", "sleep", "1000"]);
    let (own, waited) = (started.stdout.trim(), ctl(&d, &[CLAUDE], &["wait", "--timeout", "300ms"]));
    assert_eq!((session(&d, &started), waited.code), (json!("claude:67466"), 124), "{waited:?}");
    assert!(waited.stdout.starts_with(own) && waited.stdout.lines().count() == 1, "only its own: {waited:?}");
    let named = ctl(&d, &[], &["wait", "--session", "claude:67466", "--timeout", "300ms"]);
    assert_eq!((named.code, named.stdout.starts_with(own)), (124, true), "{named:?}");
    d.ok("kill", json!({ "id": own }));
    let json = ctl(&d, &[], &["wait", "--session", "claude:67466", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["status"], &json["processes"]), (&json!("exited"), &json!([])));
    assert_eq!(ctl(&d, &[], &["wait", "--session", "s", "x"]).code, 2);
}
