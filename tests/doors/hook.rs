//! `toolctl hook` with a real daemon: each event reported once over hooks and monitors, and never a failed session.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{Daemon, id};

/// Every type that is news to an agent, as the plugins ask for them.
const NEWS: &str = "exited,completion,needs_input,watch_match,watch_disabled,restart_gave_up,stage_ready,approval_requested,approval_decided";

fn give_input(mut command: Command, input: &str) -> Child {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

/// Runs a hook of Codex, whose session is 7.
fn hook(d: &Daemon, event: &str) -> Output {
    let input = json!({"session_id": "7", "hook_event_name": event, "cwd": d.root(), "stop_hook_active": false});
    output_of(give_input(d.ctl_command(&["hook", "--agent", "codex"]), &input.to_string()))
}

fn silent(output: &Output) -> bool {
    (output.code, output.stdout.as_str(), output.stderr.as_str()) == (0, "", "")
}

/// Ends a job of the session, and returns when its completion is published.
fn end_a_job(d: &Daemon, name: &str) {
    d.sh_with("exit 3", json!({"name": name, "session_key": "codex:7", "notify": true}));
    let types = json!({"consumer": "test", "types": ["completion"], "wait_ms": 20000, "limit": 1});
    let next = d.ok("events.next", types);
    assert_eq!(next["events"][0]["name"], name, "{next}");
    d.ok("events.ack", json!({"consumer": "test", "seq": next["events"][0]["seq"]}));
}

#[test]
fn an_end_is_reported_once_by_whichever_hook_comes_first() {
    let d = Daemon::start();
    for (first, others) in
        [("Stop", ["Stop", "PostToolUse", "AfterAgent"]), ("PostToolUse", ["Stop", "PostToolUse", "AfterTool"])]
    {
        end_a_job(&d, "build");
        let answered: Value = serde_json::from_str(&hook(&d, first).stdout).unwrap();
        let text =
            if first == "Stop" { &answered["reason"] } else { &answered["hookSpecificOutput"]["additionalContext"] };
        assert!(text.as_str().unwrap().starts_with("toold: build exited 3 "), "{answered}");
        assert_eq!(answered["decision"].as_str(), (first == "Stop").then_some("block"));
        assert!(others.iter().all(|event| silent(&hook(&d, event))));
    }
    end_a_job(&d, "build");
    let turn = hook(&d, "AfterAgent");
    assert_eq!((turn.code, turn.stdout.as_str()), (2, ""));
    assert!(turn.stderr.starts_with("toold: build exited 3 "), "{turn:?}");
}

#[test]
fn an_agent_that_dies_before_it_reads_is_informed_again() {
    let d = Daemon::start();
    end_a_job(&d, "build");
    let mut command = d.ctl_command(&["hook", "--agent", "codex"]);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    drop(reader);
    let input = json!({"session_id": "7", "hook_event_name": "Stop"}).to_string();
    let child = give_input(command, &input);
    assert!(silent(&output_of(child)), "nothing is printed about the closed pipe");
    assert!(hook(&d, "Stop").stdout.contains("build exited 3"), "it was not acknowledged");
    assert!(silent(&hook(&d, "Stop")));
}

#[test]
fn a_monitor_and_hooks_together_report_each_end_once() {
    const JOBS: usize = 12;
    let d = Daemon::start();
    let mut monitor = d
        .ctl_command(&["events", "-f", "--consumer", "agent:codex:7", "--session", "codex:7", "--type", NEWS])
        .spawn()
        .unwrap();
    let lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
    let (published, monitored) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| published.send(line).unwrap_or(())));
    let mut reported = Vec::new();
    for number in 0..JOBS {
        end_a_job(&d, &format!("job-{number:02}"));
        let answered = hook(&d, "PostToolUse").stdout;
        reported.extend(answered.split("toold: ").skip(1).map(|text| text[..6].to_owned()));
    }
    let monitored_names = |line: String| line[..6].to_owned();
    while reported.len() < JOBS {
        let line = monitored.recv_timeout(toold_test_support::rig::DEADLINE).expect("each end is reported");
        reported.push(monitored_names(line));
    }
    // A last one that only the monitor can report shows that nothing else was on its way.
    end_a_job(&d, "last-1");
    let line = monitored.recv_timeout(toold_test_support::rig::DEADLINE).expect("the monitor goes on");
    assert_eq!(&line[..6], "last-1", "{line}");
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    let names: BTreeSet<&String> = reported.iter().collect();
    assert_eq!((reported.len(), names.len()), (JOBS, JOBS), "{reported:?}");
}

#[test]
fn what_a_command_reports_to_the_agent_itself_is_not_reported_again() {
    let d = Daemon::start();
    let mut run = d.ctl_command(&["run", "-c", "exit 3"]);
    run.env("CODEX_THREAD_ID", "7");
    assert_eq!(output_of(run.spawn().unwrap()).code, 3);
    let started =
        d.ctl_command(&["exec", "--name", "later", "-c", "exit 4"]).env("CODEX_THREAD_ID", "7").output().unwrap();
    assert!(started.status.success());
    let mut wait = d.ctl_command(&["wait", "later"]);
    wait.env("CODEX_THREAD_ID", "7");
    assert_eq!(output_of(wait.spawn().unwrap()).code, 4);
    assert!(silent(&hook(&d, "Stop")));
}

#[test]
fn a_question_starts_a_turn_and_an_answered_one_does_not() {
    let d = Daemon::start();
    let asks = "printf 'Overwrite? [y/N] '; read -r answer; read -r rest";
    let setup = id(&d.sh_with(asks, json!({"name": "setup", "session_key": "codex:7", "stdin": "pipe"})));
    let wait = json!({"consumer": "test", "types": ["needs_input"], "wait_ms": 20000, "limit": 1});
    let asked = d.ok("events.next", wait.clone());
    d.ok("events.ack", json!({"consumer": "test", "seq": asked["events"][0]["seq"]}));
    let answered = hook(&d, "Stop").stdout;
    assert!(answered.contains("toold: setup asks \\\"Overwrite? [y/N]\\\""), "{answered}");
    assert!(silent(&hook(&d, "Stop")));
    d.ok("kill", json!({"id": setup}));
}

#[test]
fn the_start_of_a_session_shows_what_runs_and_its_end_may_kill_it() {
    let d = Daemon::start();
    assert!(silent(&hook(&d, "SessionStart")), "nothing runs");
    let web =
        id(&d.sh_with("read -r _", json!({"name": "web", "session_key": "codex:7", "stdin": "pipe", "cwd": "/"})));
    let near = id(&d.sh_with("read -r _", json!({"cwd": d.root(), "stdin": "pipe"})));
    d.sh_with("read -r _", json!({"cwd": "/", "stdin": "pipe"}));
    let text = hook(&d, "SessionStart").stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].starts_with(&format!("{web} (web) running ")) && lines[2].starts_with(&near), "{text}");
    assert!(silent(&hook(&d, "SessionEnd")));
    assert_eq!(d.process(&web)["status"], "running");
    let input = json!({"session_id": "7", "hook_event_name": "SessionEnd"}).to_string();
    let command = d.ctl_command(&["hook", "--agent", "codex", "--on-end", "kill"]);
    assert!(silent(&output_of(give_input(command, &input))));
    assert_eq!((&d.process(&web)["status"], &d.process(&near)["status"]), (&json!("exited"), &json!("running")));
}

#[test]
fn without_a_daemon_or_with_nonsense_a_hook_is_silent_and_starts_none() {
    let d = Daemon::prepare("", &[]);
    for event in ["SessionStart", "Stop", "AfterAgent", "PostToolUse", "SessionEnd", "Unknown"] {
        assert!(silent(&hook(&d, event)), "{event}");
    }
    assert!(!d.socket().exists() && !d.state().exists(), "no daemon was started");
    let d = Daemon::start();
    for input in ["", "nonsense", "{", "[]", "{}", "{\"hook_event_name\":7}", "\u{0}"] {
        for args in [&["hook"][..], &["hook", "--agent"], &["hook", "--agent", "x", "--later", "y"]] {
            let output = output_of(give_input(d.ctl_command(args), input));
            assert!(silent(&output), "{input:?} {args:?} {output:?}");
        }
    }
}

/// Before, a server of Codex, which gets no `$XDG_RUNTIME_DIR`, could not reach the daemon of the user's shell.
#[test]
fn a_program_without_a_runtime_directory_reaches_the_daemon_that_runs() {
    let d = Daemon::start();
    let output = output_of(d.ctl_command(&["--no-autostart", "list"]).env_remove("XDG_RUNTIME_DIR").spawn().unwrap());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
