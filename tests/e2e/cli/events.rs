//! `toolctl` and events: `events`, readiness, watches, `notify`, and the status line of a wait.

use crate::TOOLCTL;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{DEADLINE, Daemon, id, skip_unless};
use toold_test_support::sys::Pidfd;

/// The events that `--json` printed, one per line.
#[track_caller]
fn events(output: &Output) -> Vec<Value> {
    assert_eq!(output.code, 0, "{output:?}");
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Returns the stored events of one process, when all of these types have arrived.
#[track_caller]
fn kept(d: &Daemon, proc: &str, types: &[&str]) -> Vec<Value> {
    let look = || events(&d.ctl(&["events", "--json", "-n", "1000", "--id", proc]));
    d.eventually(&format!("{proc} has events {types:?}"), || {
        let all = look();
        types.iter().all(|kind| all.iter().any(|event| event["type"] == *kind))
    });
    look()
}

/// A `toolctl events -f --json` that the test reads line by line.
struct Followed {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Followed {
    fn start(d: &Daemon, args: &[&str]) -> Followed {
        let mut child = d.ctl_command(&[&["events", "-f", "--json"], args].concat()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Followed { child, stdout }
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("an event a line: {e}: {line:?}"))
    }

    fn stop(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn events_prints_the_last_events_and_exits() {
    let d = Daemon::start();
    let proc = id(&d.run("exit 3"));
    let all = kept(&d, &proc, &["started", "exited", "closed"]);
    let exited = all.iter().find(|event| event["type"] == "exited").unwrap();
    assert_eq!((&exited["exit_code"], &exited["id"]), (&json!(3), &json!(proc)));
    assert!(all.iter().all(|event| event["id"] == json!(proc)), "only of this process: {all:?}");
    d.run("true");
    let last = events(&d.ctl(&["events", "--json", "-n", "2"]));
    assert_eq!(last.len(), 2);
    assert_eq!(last[0]["seq"].as_u64().unwrap() + 1, last[1]["seq"].as_u64().unwrap(), "no number is left out");
    let lines = d.ctl(&["events", "--type", "exited", "--id", &proc]);
    assert!(lines.code == 0 && lines.stdout.contains("exit 3"), "{lines:?}");
    assert_eq!(lines.stdout.lines().count(), 1, "one line an event: {lines:?}");
    let consumers = &d.ok("daemon.info", json!({}))["events"]["consumers"];
    assert_eq!(consumers, &json!([]), "reading creates no consumer");
}

#[test]
fn follow_survives_a_killed_daemon_with_nothing_lost_and_nothing_doubled() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let away = d.sh(&format!("{}; exit 5", gate.wait()));
    let before = id(&d.run("exit 4"));
    let mut followed = Followed::start(&d, &["--after", "0", "--type", "exited"]);
    let first = followed.next();
    assert_eq!((&first["id"], &first["exit_code"]), (&json!(before), &json!(4)));
    let program = d.program(&away);
    d.kill9();
    gate.open();
    assert!(program.dies_within(DEADLINE), "the program exits while no daemon runs");
    d.spawn();
    let second = followed.next();
    assert_eq!((&second["id"], &second["exit_code"]), (&json!(away), &json!(5)));
    let after = id(&d.run("exit 6"));
    let third = followed.next();
    assert_eq!((&third["id"], &third["exit_code"]), (&json!(after), &json!(6)));
    followed.stop();
}

#[test]
fn a_follower_whose_reader_is_gone_exits_without_waiting_for_an_event() {
    let d = Daemon::start();
    d.run("true");
    for args in [&["--after", "0"][..], &["--consumer", "me", "--from", "oldest"]] {
        let mut followed = Followed::start(&d, args);
        followed.next();
        let Followed { child, stdout } = followed;
        drop(stdout);
        let output = output_of(child);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_consumer_gets_each_event_until_it_was_printed_and_then_never_again() {
    let mut d = Daemon::start();
    let proc = id(&d.run("exit 3"));
    kept(&d, &proc, &["started", "exited", "closed"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread =
        output_of(d.ctl_command(&["events", "--consumer", "me", "--from", "oldest"]).stdout(writer).spawn().unwrap());
    assert_eq!((unread.code, unread.stderr.as_str()), (0, ""));
    let first = events(&d.ctl(&["events", "--consumer", "me", "--json", "-n", "1"]));
    assert_eq!((first.len(), &first[0]["seq"]), (1, &json!(1)), "an unread event is delivered again");
    d.restart();
    let rest = events(&d.ctl(&["events", "--consumer", "me", "--json"]));
    assert_eq!(rest[0]["seq"], 2, "the position survives the daemon");
    assert!(events(&d.ctl(&["events", "--consumer", "me", "--json"])).is_empty());
    let nothing = d.ctl(&["events", "--consumer", "me", "--wait", "50ms"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (124, ""));
    let other = events(&d.ctl(&["events", "--consumer", "you", "--from", "oldest", "--json"]));
    assert_eq!(other.len(), 1 + rest.len(), "another consumer has its own position");
}

/// The broken code printed every event in the journal, up to 256 MB of them.
#[test]
fn a_new_consumer_begins_now_unless_the_oldest_event_is_wanted() {
    let d = Daemon::start();
    let old = id(&d.run("exit 3"));
    kept(&d, &old, &["started", "exited", "closed"]);
    let pull = |args: &[&str]| events(&d.ctl(&[&["events", "--json", "--consumer"], args].concat()));
    assert_eq!(pull(&["me"]), Vec::<Value>::new());
    let new = id(&d.run("exit 4"));
    kept(&d, &new, &["started", "exited", "closed"]);
    assert!(pull(&["me"]).iter().all(|event| event["id"] == json!(new)));
    assert_eq!(pull(&["all", "--from", "oldest", "-n", "1"])[0]["id"], json!(old));
    // A consumer that `wait` creates begins now too.
    assert_eq!(d.ctl(&["wait", &new, "--consumer", "waits"]).code, 4);
    assert_eq!(pull(&["waits"]), Vec::<Value>::new());
    let refused = d.ctl(&["events", "--consumer", "x", "--from", "yesterday"]);
    assert!(refused.code == 2 && refused.stderr.contains("oldest"), "{refused:?}");
    assert_eq!(d.ctl(&["events", "--from", "now"]).code, 2, "it is for a consumer");
}

/// The broken code showed the first of the last 2000 characters, and neither the reason of a failed start nor names of output.
#[test]
fn an_event_shows_the_last_line_the_reason_and_the_name() {
    let d = Daemon::start();
    let suite = json!({ "name": "suite", "notify": true });
    let suite = id(&d.sh_with("seq -f 'test %g passed' 3000; echo '2 failed, 3000 passed'; exit 1", suite));
    kept(&d, &suite, &["started", "exited", "closed", "completion"]);
    let shown = d.ctl(&["events", "--id", "suite", "--type", "completion"]);
    assert!(shown.stdout.contains(" lines: 2 failed, 3000 passed\n"), "{shown:?}");
    d.refused(-32006, "spawn_failed", "exec", json!({ "argv": ["/no/such/program"] }));
    let shown = d.ctl(&["events", "-n", "1", "--type", "exited"]);
    assert!(
        shown.stdout.ends_with("failed_start: exec /no/such/program: No such file or directory (os error 2)\n"),
        "{shown:?}"
    );
    let gate = d.gate("go");
    d.sh_with(&format!("{}; echo hello", gate.wait()), json!({ "name": "speaker" }));
    let follow = ["events", "-f", "--id", "speaker", "--output", "--after", "0"];
    let mut child = d.ctl_command(&follow).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().contains("started"));
    gate.open();
    let output = lines.find(|line| line.contains("stdout: hello")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let fields: Vec<&str> = output.split_whitespace().collect();
    assert!(
        fields[0].matches(':').count() == 2 && fields[1..] == ["output", "speaker", "stdout:", "hello"],
        "{output}"
    );
}

#[test]
fn a_waiting_consumer_gets_the_event_when_it_happens() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{}; exit 3", gate.wait()));
    let args = ["events", "--consumer", "me", "--from", "oldest", "--json", "--type", "exited", "--wait", "30s"];
    let waiting = d.ctl_command(&args).spawn().unwrap();
    gate.open();
    let output = events(&output_of(waiting));
    assert_eq!((output.len(), &output[0]["id"], &output[0]["exit_code"]), (1, &json!(proc), &json!(3)));
}

#[test]
fn an_exit_that_wait_or_run_returned_is_acknowledged_for_its_consumer_alone() {
    let d = Daemon::start();
    let next = ["--json", "--type", "exited", "--from", "oldest"];
    let exits = |consumer: &str| events(&d.ctl(&[&["events", "--consumer", consumer][..], &next].concat()));
    let proc = d.sh("exit 3");
    assert_eq!(d.ctl(&["wait", &proc, "--consumer", "me"]).code, 3);
    assert_eq!(d.ctl(&["run", "--consumer", "me", "--", "sh", "-c", "exit 4"]).code, 4);
    assert_eq!((exits("me").len(), exits("you").len()), (0, 2));
}

#[test]
fn output_is_pushed_to_a_follower_on_request() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{}; echo hello", gate.wait()));
    let mut followed = Followed::start(&d, &["--id", &proc, "--output", "--after", "0"]);
    assert_eq!(followed.next()["type"], "started");
    gate.open();
    let output = loop {
        let event = followed.next();
        if event["type"] == "output" {
            break event;
        }
    };
    assert_eq!(
        (&output["data"], &output["stream"], &output["cursor"]),
        (&json!("hello\n"), &json!("stdout"), &json!(0))
    );
    followed.stop();
}

#[test]
fn watches_keep_their_order_and_their_matches_are_printed_as_lines() {
    let d = Daemon::start();
    let script = "echo 'this is b\u{1b}[31mad'; exec sleep 1000";
    let args = ["exec", "--watch", "never", "--watch-re", "b.*ad", "--heartbeat", "2m", "--", "sh", "-c", script];
    let proc = d.ctl(&args).stdout.trim().to_string();
    let all = kept(&d, &proc, &["watch_match"]);
    let matched = all.iter().find(|event| event["type"] == "watch_match").unwrap();
    assert_eq!(matched["pattern_index"], 1, "{matched}");
    let output = d.ctl(&["events", "--type", "watch_match"]);
    assert!(output.stdout.contains("b.*ad") && !output.stdout.contains('\u{1b}'), "{output:?}");
    let shown = d.ctl(&["inspect", &proc]).stdout;
    assert!(shown.contains("1 hits") && shown.contains("0: \"never\"") && shown.contains("1: /b.*ad/"), "{shown}");
    assert!(shown.contains("every 2m with new output"), "{shown}");
    let info = d.ctl(&["info"]).stdout;
    assert!(info.contains("are kept") && info.contains("passing, 1 recent matches"), "{info}");
}

#[test]
fn a_completion_is_published_for_a_process_with_notify() {
    let d = Daemon::start();
    let proc = d.ctl(&["exec", "--notify", "--", "sh", "-c", "echo bye; exit 3"]).stdout.trim().to_string();
    let all = kept(&d, &proc, &["completion"]);
    let completion = all.iter().find(|event| event["type"] == "completion").unwrap();
    assert_eq!((&completion["exit_code"], &completion["output"]), (&json!(3), &json!("bye\n")));
    let output = d.ctl(&["events", "--type", "completion"]);
    assert!(output.stdout.contains("exit 3") && output.stdout.trim_end().ends_with(": bye"), "{output:?}");
}

#[test]
fn exec_returns_when_the_process_is_ready_with_a_code_for_the_result() {
    let d = Daemon::start();
    for (options, script, code) in [
        (vec!["--ready-match", "up"], "echo up; exec sleep 1000", 0),
        (vec!["--ready-re", "^u.$"], "echo up; exec sleep 1000", 0),
        (vec!["--ready-quiet", "100ms"], "echo up; exec sleep 1000", 0),
        (vec!["--ready-match", "up", "--ready-timeout", "100ms"], "exec sleep 1000", 124),
        (vec!["--ready-match", "up"], "exit 7", 7),
        (vec!["--ready-match", "up"], "exit 0", 1),
    ] {
        let output = d.ctl(&[&["exec"], &options[..], &["--", "sh", "-c", script]].concat());
        assert_eq!((output.code, output.stderr.is_empty()), (code, code == 0), "{options:?} {script}: {output:?}");
        assert!(output.stdout.starts_with("proc_") && output.stdout.lines().count() == 1, "the id alone: {output:?}");
    }
}

#[test]
fn wait_takes_a_port() {
    let python = std::process::Command::new("python3").arg("--version").output().is_ok();
    if skip_unless(python, "python3 is the program that listens") {
        return;
    }
    let d = Daemon::start();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let script = format!("import socket,time; s=socket.create_server(('127.0.0.1',{free})); time.sleep(1000)");
    let output = d.ctl(&["exec", "--name", "web", "--ready-port", &free, "--", "python3", "-c", &script]);
    assert_eq!(output.code, 0, "{output:?}");
    let output = d.ctl(&["wait", "web", "--port", &free]);
    assert!(output.code == 0 && output.stdout.contains(&format!("port {free}")), "{output:?}");
    let silent = d.sh("exit 0");
    let output = d.ctl(&["wait", &silent, "--port", &free]);
    assert!(output.code == 1 && output.stderr.contains("without listening on port"), "{output:?}");
}

#[test]
fn wait_takes_a_pause_in_the_output() {
    let d = Daemon::start();
    let proc = d.sh("echo up; exec sleep 1000");
    assert_eq!(d.ctl(&["wait", &proc, "--quiet", "50ms"]).code, 0);
}

#[test]
fn a_running_name_is_an_error_returned_or_restarted_as_requested() {
    let d = Daemon::start();
    let exec = |more: &[&str]| d.ctl(&[&["exec", "--name", "web"], more, &["--", "sleep", "1000"]].concat());
    let first = exec(&[]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(exec(&["--if-running", "error"]).code, 1);
    let same = exec(&["--if-running", "return"]);
    assert_eq!((same.code, &same.stdout), (0, &first.stdout));
    let program = d.program(first.stdout.trim());
    let new = exec(&["--if-running", "restart"]);
    assert!(new.code == 0 && new.stdout != first.stdout, "{new:?}");
    assert!(program.is_dead(), "the old one is dead before the new one is returned");
}

#[test]
fn notify_runs_its_command_with_the_details_and_exits_like_wait() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo 'bye <b>'; {}; exit 3", gate.wait());
    let proc = id(&d.sh_with(&script, json!({ "name": "job" })));
    let file = d.root().join("notified");
    let command = format!(
        "echo \"$TOOLD_ID $TOOLD_NAME $TOOLD_EXIT_CODE $TOOLD_REASON $TOOLD_OUTPUT\" > {0}; test -f \"$TOOLD_LOG\" && echo log >> {0}",
        file.display()
    );
    let waiting = d.ctl_command(&["notify", "job", "--run", &command]).spawn().unwrap();
    d.restart();
    gate.open();
    let output = output_of(waiting);
    assert_eq!((output.code, output.stderr.as_str()), (3, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{proc} job 3 exited bye <b>\n\nlog\n"));
}

#[test]
fn notify_shows_it_on_the_desktop_or_reports_that_there_is_none() {
    let d = Daemon::start();
    let proc = id(&d.run("echo '<b>bye</b>'; exit 3"));
    let output = d.ctl(&["notify", &proc]);
    assert!(
        output.code == 3 && output.stderr.starts_with("toolctl: no desktop is reachable: there is no session bus"),
        "{output:?}"
    );
    assert!(!output.stderr.contains('\u{7}'), "no bell without a terminal");
    let (bin, file) = (d.root().join("bin"), d.root().join("shown"));
    std::fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s|' \"$@\" > {}\n", file.display());
    std::fs::write(bin.join("notify-send"), script).unwrap();
    std::fs::set_permissions(bin.join("notify-send"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = d.ctl_command(&["notify", &proc]);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let output = output_of(command.spawn().unwrap());
    assert_eq!((output.code, output.stderr.as_str()), (3, ""));
    let shown = std::fs::read_to_string(&file).unwrap();
    assert!(shown.starts_with(&format!("--app-name=toolctl|--|{proc} exited 3|")), "{shown}");
    assert!(shown.ends_with("\n&lt;b&gt;bye&lt;/b&gt;|"), "{shown}");
}

/// A process on a terminal that runs `toolctl` with this daemon and sleeps afterwards, so that the screen can be read.
fn on_terminal(d: &Daemon, args: &str) -> String {
    id(&d.sh_with(&format!("{TOOLCTL} {args}; echo \"code $?\""), json!({ "pty": { "rows": 24, "cols": 80 } })))
}

#[test]
fn a_long_wait_shows_one_line_on_a_terminal_and_removes_it() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("echo halfway; {}; exit 3", gate.wait()));
    let screen = on_terminal(&d, &format!("wait {proc}"));
    d.printed(&screen, "running 1s: halfway");
    gate.open();
    d.closed(&screen);
    let text = d.text(&screen);
    let (_, end) = text.rsplit_once("\r\u{1b}[K").unwrap_or_else(|| panic!("the line is removed: {text:?}"));
    assert!(end.contains(&format!("{proc} exited 3")) && end.ends_with("code 3\r\n"), "{text:?}");
}

#[test]
fn a_quiet_run_shows_one_line_on_a_terminal_and_never_inside_the_output_of_the_program() {
    let d = Daemon::start();
    let (gate, second) = (d.gate("go"), d.gate("second"));
    let script = d.root().join("script");
    std::fs::write(&script, format!("echo halfway; {}; printf 'Name? '; {}; echo done\n", gate.wait(), second.wait()))
        .unwrap();
    let screen = on_terminal(&d, &format!("run --no-stdin -- sh {}", script.display()));
    d.printed(&screen, "running: halfway");
    gate.open();
    d.printed(&screen, "Name?");
    second.open();
    d.closed(&screen);
    let text = d.text(&screen);
    assert!(
        text.contains("\r\u{1b}[KName? done\r\ncode 0\r\n"),
        "the status line is removed before the program's output: {text:?}"
    );
}

#[test]
fn an_interrupted_wait_removes_its_line_and_dies_by_the_signal() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let screen = on_terminal(&d, &format!("wait {proc}"));
    d.printed(&screen, "running 1s");
    d.ok("write", json!({ "id": screen, "data": "\u{3}" }));
    d.exited(&screen);
    let text = d.text(&screen);
    assert!(text.trim_end().ends_with("\r\u{1b}[K"), "{text:?}");
    assert_eq!(d.process(&proc)["status"], "running", "the process keeps running");
}

#[test]
fn a_wait_in_a_pipe_shows_no_status_line() {
    let d = Daemon::start();
    let proc = d.sh("echo halfway; exec sleep 1000");
    let output = d.ctl(&["wait", &proc, "--timeout", "1500ms"]);
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (124, "toolctl: timed out after 1500ms; the process keeps running\n")
    );
    assert!(Pidfd::open(d.process(&proc)["pid"].as_i64().unwrap() as i32).is_some());
}
