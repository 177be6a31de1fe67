//! `toolctl`, command by command: stdout and the exit code.

use crate::TOOLCTL;
use serde_json::{Value, json};
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("one JSON document: {e}: {text}"))
}

/// Returns the id, which must be alone on stdout.
#[track_caller]
fn only_id(stdout: &str) -> String {
    let line = stdout.strip_suffix('\n').expect("one line");
    let hex = line.strip_prefix("proc_").unwrap_or_else(|| panic!("not an id alone: {stdout:?}"));
    assert!(hex.len() == 12 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{stdout:?}");
    line.to_string()
}

#[test]
fn exec_prints_only_the_id_and_leaves_the_process_running() {
    let d = Daemon::start();
    let output = d.ctl(&["exec", "--", "/bin/sleep", "1000"]);
    assert_eq!(output.code, 0, "{output:?}");
    let proc = only_id(&output.stdout);
    let p = d.process(&proc);
    assert_eq!((&p["status"], &p["argv"]), (&json!("running"), &json!(["/bin/sleep", "1000"])));
    let output = d.ctl(&["exec", "-c", "echo $((6*7)); exit 3"]);
    let p = d.closed(&only_id(&output.stdout));
    assert_eq!((&p["exit_code"], p["output"].as_str().unwrap().ends_with("42\n")), (&json!(3), true));
}

#[test]
fn arguments_after_the_dashes_belong_to_the_program() {
    let d = Daemon::start();
    let output = d.ctl(&["run", "--", "printf", "%s|", "--json", "-h", "a b", "$HOME"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "--json|-h|a b|$HOME|"), "{output:?}");
}

#[test]
fn json_is_the_result_of_the_method_in_one_document() {
    let d = Daemon::start();
    let proc = id(&d.run("echo hello; exit 3"));
    let stable = |mut v: Value| {
        // Fields that change from one moment to the next.
        for key in ["uptime_ms", "usage", "daemon", "counts", "timeout_ms"] {
            v.as_object_mut().map(|o| o.remove(key));
        }
        v
    };
    for (args, method, params, code) in [
        (vec!["poll", &proc], "poll", json!({ "id": proc }), 0),
        (vec!["log", &proc], "log", json!({ "id": proc }), 0),
        (vec!["inspect", &proc], "inspect", json!({ "id": proc }), 0),
        (vec!["list"], "list", json!({}), 0),
        (vec!["info"], "daemon.info", json!({}), 0),
        (vec!["wait", &proc], "wait", json!({ "id": proc }), 3),
        (vec!["kill", &proc], "kill", json!({ "id": proc }), 0),
    ] {
        let output = d.ctl(&[&args[..], &["--json"]].concat());
        assert_eq!(output.code, code, "{output:?}");
        let expected = d.ok(method, params);
        assert_eq!(stable(json_of(&output.stdout)), stable(expected), "{args:?}");
    }
    let output = d.ctl(&["exec", "--json", "--", "/bin/true"]);
    assert!(json_of(&output.stdout)["id"].as_str().unwrap().starts_with("proc_"));
}

#[test]
fn poll_and_log_print_the_output() {
    let d = Daemon::start();
    let proc = id(&d.run("seq 1 300"));
    let output = d.ctl(&["poll", &proc]);
    assert!(output.code == 0 && output.stdout.contains("\n300\n"), "{output:?}");
    let output = d.ctl(&["log", &proc, "-n", "2"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "299\n300\n"));
    let output = d.ctl(&["log", &proc, "--grep", "^1.0$"]);
    assert_eq!(output.stdout, (10..20).map(|n| format!("{n}0\n")).collect::<String>());
}

#[test]
fn log_follow_prints_output_until_the_end() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("echo first; {}; seq 1 5000; echo last", gate.wait()));
    d.printed(&proc, "first");
    let follower = d.ctl_command(&["log", &proc, "-f", "-n", "6000"]).spawn().unwrap();
    gate.open();
    let output = output_of(follower);
    let expected: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!((output.code, output.stdout), (0, format!("first\n{expected}last\n")));
}

#[test]
fn wait_exits_with_the_code_of_the_process_124_on_timeout_and_0_for_a_match() {
    let d = Daemon::start();
    let seven = id(&d.run("echo some output; exit 7"));
    let runs = d.sh("echo ready; exec sleep 1000");
    assert_eq!(d.ctl(&["wait", &seven]).code, 7);
    let killed = d.sh("kill -9 $$");
    assert_eq!(d.ctl(&["wait", &killed]).code, 137);
    let output = d.ctl(&["wait", &runs, "--timeout", "500ms"]);
    assert!(output.code == 124 && output.stderr.contains("timed out after 500ms;"), "{output:?}");
    assert_eq!(d.process(&runs)["status"], "running");
    assert_eq!(d.ctl(&["wait", &runs, "--match", "^rea"]).code, 0);
    assert_eq!(d.ctl(&["wait", "--any", &runs, &seven]).code, 7);
    assert_eq!(d.ctl(&["wait", &runs, &seven, "--timeout", "1s"]).code, 124, "all of them, unless --any");
}

#[test]
fn kill_and_signal_take_their_signals_by_name() {
    let d = Daemon::start();
    let proc = d.sh("trap 'echo got it' USR1; trap '' TERM; echo ready; while :; do sleep 0.02; done");
    d.printed(&proc, "ready");
    assert_eq!(d.ctl(&["signal", &proc, "SIGUSR1"]).code, 0);
    d.printed(&proc, "got it");
    let output = d.ctl(&["kill", &proc, "--grace", "1s"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(d.process(&proc)["exit_code"], 137);
    for (typed, code) in [("-9", 137), ("-TERM", 143), ("-INT", 130), ("-SIGHUP", 129), ("-15", 143)] {
        let proc = d.sh("exec sleep 1000");
        let output = d.ctl(&["kill", typed, &proc]);
        assert_eq!((output.code, &d.process(&proc)["exit_code"]), (0, &json!(code)), "{typed}: {output:?}");
    }
    let (a, b) = (d.sh("exec sleep 1000"), d.sh("exec sleep 1000"));
    assert_eq!(d.ctl(&["kill", &a, &b, "-s", "SIGINT"]).code, 0);
    assert_eq!((&d.process(&a)["exit_code"], &d.process(&b)["exit_code"]), (&json!(130), &json!(130)));
}

#[test]
fn write_submit_and_close_reach_the_stdin_of_the_program() {
    let d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    assert_eq!(d.ctl(&["write", &proc, "one "]).code, 0);
    assert_eq!(d.ctl(&["submit", &proc, "two"]).code, 0);
    assert_eq!(d.ctl(&["close", &proc]).code, 0);
    d.closed(&proc);
    assert_eq!(d.text(&proc), "one two\n");
    let output = d.ctl(&["write", &proc, "late"]);
    assert!(output.code == 1 && output.stderr.len() > 5 && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn list_inspect_and_info_print_text_without_colour_in_a_pipe() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("exec sleep 1000", json!({ "name": "web" })));
    let texts = [vec!["list"], vec!["inspect", &proc], vec!["info"]].map(|args| d.ctl(&args));
    for output in &texts {
        assert!(output.code == 0 && !output.stdout.contains('\u{1b}') && !output.stdout.is_empty(), "{output:?}");
    }
    assert!(texts[0].stdout.contains("web") && texts[0].stdout.contains(&proc[..9]), "{}", texts[0].stdout);
    assert!(texts[1].stdout.contains(&proc) && texts[1].stdout.contains("sleep"), "{}", texts[1].stdout);
    assert!(texts[2].stdout.contains(d.socket().to_str().unwrap()), "{}", texts[2].stdout);
}

#[test]
fn shutdown_stops_the_daemon_and_leaves_the_processes() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    assert_eq!(d.ctl(&["shutdown"]).code, 0);
    assert_eq!(d.ended(), 0);
    assert!(!program.is_dead());
    d.spawn();
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn exit_codes_classify_errors() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for (args, code) in [
        (vec!["no-such-command"], 2),
        (vec!["list", "--no-such-flag"], 2),
        (vec![], 2),
        (vec!["poll"], 2),
        (vec!["exec"], 2),
        (vec!["wait", &proc, "--timeout", "soon"], 2),
        (vec!["poll", "missing"], 3),
        (vec!["log", "proc_000000000000"], 3),
        (vec!["wait", "missing"], 3),
        (vec!["kill", "missing"], 3),
        (vec!["inspect", "missing"], 3),
        (vec!["write", "missing", "x"], 3),
        (vec!["run", "--", "/no/such/program"], 127),
        (vec!["exec", "--", "/no/such/program"], 1),
        (vec!["log", &proc, "--grep", "("], 2),
        (vec!["kill", &proc, "-s", "SIGNOTHING"], 2),
        (vec!["submit", &proc, "no stdin"], 1),
    ] {
        let output = d.ctl(&args);
        assert_eq!(output.code, code, "{args:?}: {output:?}");
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "the message is on stderr: {args:?}: {output:?}"
        );
        assert!(!output.stderr.contains("panicked"), "{output:?}");
    }
    assert_eq!((d.ctl(&["--help"]).code, d.ctl(&["--version"]).code), (0, 0));
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn an_error_names_the_remedy() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for verb in ["write", "submit"] {
        let output = d.ctl(&[verb, &proc, "x"]);
        let has_remedy = output.stderr.ends_with("was started without stdin; start it with --stdin or --pty\n");
        assert!(output.code == 1 && has_remedy, "{output:?}");
    }
    let gone = d.root().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let inside = |args: &str| {
        let mut command = std::process::Command::new("/bin/sh");
        // The shell removes its own working directory, which is that of toolctl too.
        let script = format!("rmdir {} && exec {} {args}", gone.display(), TOOLCTL);
        command.args(["-c", &script]).current_dir(&gone).env("TOOLD_SOCKET", d.socket());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        output_of(command.spawn().unwrap())
    };
    let output = inside("--no-autostart exec -- true");
    let message = "toolctl: the current directory is gone; give --cwd DIR\n";
    assert_eq!((output.code, output.stderr.as_str()), (1, message));
    std::fs::create_dir(&gone).unwrap();
    assert_eq!(inside("--no-autostart exec --cwd / -- true").code, 0);
}

#[test]
fn an_autostarted_daemon_keeps_no_lock_of_its_caller() {
    let d = Daemon::prepare("", &[]);
    let lock = d.root().join("lock").display().to_string();
    let script = format!("exec 9>{lock}; flock 9; {} info", TOOLCTL);
    let called =
        std::process::Command::new("bash").args(["-c", &script]).env_clear().envs(d.env.clone()).output().unwrap();
    assert!(called.status.success(), "{called:?}");
    let free = std::process::Command::new("flock").args(["-n", &lock, "true"]).status().unwrap();
    let stopped = d.ctl(&["shutdown"]);
    assert_eq!((free.code(), stopped.code), (Some(0), 0), "{stopped:?}");
}

#[test]
fn no_daemon_and_no_autostart_exits_with_4_and_starts_none() {
    let d = Daemon::prepare("", &[]);
    for args in [vec!["list"], vec!["run", "--", "true"], vec!["shutdown"]] {
        let output = d.ctl(&[&["--no-autostart"][..], &args].concat());
        assert!(output.code == 4 && output.stderr.contains("toold"), "{output:?}");
    }
    assert!(!d.socket().exists() && d.marked().is_empty());
}

#[test]
fn the_daemon_is_started_when_none_answers_and_stays() {
    let d = Daemon::prepare("max_running = 33\n", &[]);
    let output = d.ctl(&["exec", "--", "/bin/sleep", "1000"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(d.process(&only_id(&output.stdout))["status"], "running");
    let info = d.ok("daemon.info", json!({}));
    assert_eq!((&info["limits"]["max_running"], &info["counts"]["running"]), (&json!(33), &json!(1)));
    // The daemon is in its own session: a hang-up or Ctrl-C of the terminal does not reach it.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", info["pid"])).unwrap();
    assert_eq!(stat.rsplit(')').next().unwrap().split_whitespace().nth(3), Some(info["pid"].to_string().as_str()));
}

#[test]
fn the_error_for_a_daemon_that_cannot_start_has_its_reason() {
    let d = Daemon::prepare("max_runing = 33\n", &[]);
    let output = d.ctl(&["list"]);
    assert!(output.code == 4 && output.stderr.contains("max_runing"), "{output:?}");
}

#[test]
fn the_error_for_a_dead_socket_names_the_cause_and_the_socket_of_the_daemon() {
    // The broken code started a daemon that could not lock the state directory, waited for another for three seconds, and
    // printed the path of its log.
    let d = Daemon::start();
    let (asked, there) = (d.root().join("nope/x"), d.socket().display().to_string());
    let asked = asked.to_str().unwrap();
    for more in [&[][..], &["--no-autostart"]] {
        let output = d.ctl(&[&["--socket", asked], more, &["list"]].concat());
        let why = format!("toolctl: no daemon at {asked}: there is no directory {}; ", d.root().join("nope").display());
        let remedy = format!("the one of this state directory listens at {there}: leave --socket out\n");
        assert_eq!((output.code, output.stderr), (4, why + &remedy));
    }
    let output = output_of(d.ctl_command(&["list"]).env("TOOLD_SOCKET", d.root().join("x")).spawn().unwrap());
    assert_eq!(output.code, 4, "{output:?}");
    assert!(
        output.stderr.ends_with(&format!("use --socket {there}, or `export TOOLD_SOCKET={there}`\n")),
        "{output:?}"
    );
    assert!(!d.state().join("toold.log").exists(), "no daemon was started");
}

#[test]
fn many_clients_that_start_the_daemon_at_once_get_one() {
    let d = Daemon::prepare("", &[]);
    let racers: Vec<_> = (0..6).map(|_| d.ctl_command(&["info", "--json"]).spawn().unwrap()).collect();
    let pids: Vec<Value> = racers
        .into_iter()
        .map(output_of)
        .map(|output| {
            assert_eq!(output.code, 0, "{output:?}");
            json_of(&output.stdout)["pid"].clone()
        })
        .collect();
    assert!(pids.iter().all(|p| p == &pids[0]), "{pids:?}");
    assert_eq!(d.ok("daemon.info", json!({}))["pid"], pids[0]);
}

#[test]
fn the_socket_of_a_dead_daemon_starts_a_new_one() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    d.kill9();
    let output = d.ctl(&["poll", &proc, "--json"]);
    assert_eq!((output.code, &json_of(&output.stdout)["status"]), (0, &json!("running")), "{output:?}");
}

#[test]
fn a_paused_process_is_shown_as_stopped_wherever_it_is_looked_at() {
    let d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/sleep", "1000"], "name": "nap" })));
    let shown = |args: &[&str]| {
        let output = d.ctl(args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
        output.stdout
    };
    assert!(shown(&["pause", "nap"]).starts_with(&format!("{proc} (nap) stopped, running ")));
    assert!(shown(&["poll", "nap"]).contains("\nstatus: running\nstopped: true\n"));
    assert!(shown(&["list", "--status", "stopped"]).contains("  nap   stopped  "));
    assert!(shown(&["inspect", "nap"]).contains(&format!("toolctl resume {proc}")));
    let waited = d.ctl(&["wait", "nap", "--timeout", "1ms"]);
    assert_eq!(waited.code, 124, "{waited:?}");
    let hint = format!("{proc} is stopped and does not go on by itself: toolctl resume {proc}");
    assert!(waited.stderr.contains(&hint) && waited.stdout.contains("stopped, running"), "{waited:?}");
    assert!(shown(&["resume", "nap"]).starts_with(&format!("{proc} (nap) running ")));
    assert!(!shown(&["list", "--status", "stopped"]).contains("nap"));
    d.ok("kill", json!({ "id": proc }));
    assert_eq!(d.ctl(&["pause", "nap"]).code, 1);
    assert_eq!(d.ctl(&["resume", "no-such"]).code, 3);
}

#[test]
fn restart_prints_the_new_id_and_passes_the_environment_of_its_caller() {
    let d = Daemon::start();
    let script = "echo mark $MARK; exec sleep 1000";
    let old = id(&d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "name": "web", "env": { "MARK": "one" } })));
    let restart = |args: &[&str]| {
        let mut command = d.ctl_command(args);
        command.env("MARK", "caller").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        output_of(command.spawn().unwrap())
    };
    let output = restart(&["restart", "web"]);
    assert_eq!(output.code, 0, "{output:?}");
    let second = only_id(&output.stdout);
    d.printed(&second, "mark caller");
    assert_eq!(d.process(&second)["restart_of"], json!(old));
    let third = only_id(&restart(&["restart", "web", "--env", "MARK=given"]).stdout);
    d.printed(&third, "mark given");
    let fourth = only_id(&restart(&["restart", "--keep-env", "web", "--grace", "1s"]).stdout);
    d.printed(&fourth, "mark given");
    let fifth = json_of(&restart(&["restart", "web", "--env-mode", "replace", "--json"]).stdout);
    assert_eq!((&fifth["restart_of"], &fifth["name"]), (&json!(fourth), &json!("web")));
    assert_eq!(restart(&["restart", "no-such"]).code, 3);
    for wrong in [&["--env-mode", "inherit"][..], &["--keep-env", "--env", "A=1"]] {
        assert_eq!(restart(&[&["restart", "web"], wrong].concat()).code, 2, "{wrong:?}");
    }
    assert_eq!(d.process(&id(&fifth))["status"], "running");
}
