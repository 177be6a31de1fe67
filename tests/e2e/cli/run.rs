//! `toolctl run`: behaves like the program itself, with its streams, its code and its interrupts.

use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon};
use toold_test_support::sys::Pidfd;

/// Starts `toolctl run` and returns its stdout to read line by line.
fn start(d: &Daemon, args: &[&str]) -> (Child, BufReader<ChildStdout>, Pidfd) {
    let mut child = d.ctl_command(args).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let fd = Pidfd::open(child.id() as i32).unwrap();
    (child, stdout, fd)
}

fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line
}

#[test]
fn stdout_and_stderr_are_separate_and_the_code_is_that_of_the_program() {
    let d = Daemon::start();
    let output = d.ctl(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (7, "out\n", "err\n"));
    for (script, code) in [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        assert_eq!(d.ctl(&["run", "--", "sh", "-c", script]).code, code, "{script}");
    }
}

#[test]
fn output_is_streamed_while_the_program_runs() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo early; {}; echo late", gate.wait());
    let (child, mut stdout, _) = start(&d, &["run", "--", "sh", "-c", &script]);
    assert_eq!(line(&mut stdout), "early\n");
    gate.open();
    assert_eq!((line(&mut stdout).as_str(), line(&mut stdout).as_str()), ("late\n", ""));
    assert_eq!(output_of(child).code, 0);
}

#[test]
fn large_and_binary_output_is_unchanged() {
    let d = Daemon::start();
    let file = d.root().join("data");
    std::fs::write(&file, (0..3_000_000u32).map(|n| (n * 7 % 256) as u8).collect::<Vec<u8>>()).unwrap();
    let output = d.ctl_command(&["run", "--", "cat", file.to_str().unwrap()]).output().unwrap();
    assert!(output.stdout == std::fs::read(&file).unwrap(), "{} bytes came", output.stdout.len());
    let output = d.ctl(&["run", "--", "printf", "\\033[31mred"]);
    assert_eq!(output.stdout, "\u{1b}[31mred", "the colours of the program are kept");
}

#[test]
fn an_interrupt_is_forwarded_and_the_program_decides_the_code() {
    let d = Daemon::start();
    let script = "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    let (child, mut stdout, fd) = start(&d, &["run", "--", "sh", "-c", script]);
    assert_eq!(line(&mut stdout), "ready\n");
    fd.signal(libc::SIGINT);
    assert_eq!(line(&mut stdout), "interrupted\n");
    assert_eq!(output_of(child).code, 9);
}

#[test]
fn a_second_interrupt_kills() {
    let d = Daemon::start();
    let script = "trap 'echo no' INT; trap '' TERM; echo ready; while :; do sleep 0.02; done";
    let (child, mut stdout, fd) = start(&d, &["run", "--", "sh", "-c", script]);
    assert_eq!(line(&mut stdout), "ready\n");
    let program = d.program(&d.ids(json!({}))[0]);
    fd.signal(libc::SIGINT);
    assert_eq!(line(&mut stdout), "no\n");
    fd.signal(libc::SIGINT);
    let output = output_of(child);
    assert!(output.code == 137 && output.stderr.contains("killing proc_"), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 1, "its own kill is not reported: {output:?}");
    assert!(program.dies_within(DEADLINE));
}

#[test]
fn an_exit_from_outside_is_explained_beside_the_code() {
    let d = Daemon::start();
    let output = d.ctl(&["run", "--timeout", "300ms", "--", "sleep", "1000"]);
    let message = format!("toolctl: {} was ended by --timeout (300ms)\n", d.ids(json!({}))[0]);
    assert_eq!((output.code, output.stderr), (124, message));
    let (child, mut stdout, _) = start(&d, &["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    assert_eq!(line(&mut stdout), "ready\n");
    let running = d.ids(json!({ "status": "running" })).remove(0);
    let killer = d.ctl_command(&["kill", &running]).spawn().unwrap();
    let by = format!("pid {}\n", killer.id());
    assert_eq!(output_of(killer).code, 0);
    let output = output_of(child);
    assert_eq!(output.code, 143);
    assert!(output.stderr.starts_with(&format!("toolctl: {running} was killed by client uid ")), "{output:?}");
    assert!(output.stderr.ends_with(&by), "{output:?}");
}

#[test]
fn detach_after_leaves_it_running_and_prints_its_id() {
    let d = Daemon::start();
    let output = d.ctl(&["run", "--detach-after", "1s", "--", "sh", "-c", "echo early; exec sleep 1000"]);
    assert_eq!(output.code, 0, "{output:?}");
    let ids = d.ids(json!({ "status": "running" }));
    assert_eq!(ids.len(), 1);
    assert!(output.stdout.starts_with("early\n") && (output.stdout + &output.stderr).contains(&ids[0]));
    let output = d.ctl(&["run", "--detach-after", "50s", "--", "sh", "-c", "exit 4"]);
    assert_eq!(output.code, 4, "a program that ends earlier is not detached");
}

#[test]
fn the_process_survives_a_run_that_is_killed() {
    let d = Daemon::start();
    let (mut child, mut stdout, _) = start(&d, &["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    assert_eq!(line(&mut stdout), "ready\n");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(d.ids(json!({ "status": "running" })).len(), 1);
}

#[test]
fn a_run_whose_reader_is_gone_exits_without_a_panic() {
    let d = Daemon::start();
    let (child, mut stdout, _) = start(&d, &["run", "--", "sh", "-c", "seq 1 1000000"]);
    line(&mut stdout);
    drop(stdout);
    assert!(!output_of(child).stderr.contains("panicked"));
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_run_for_ever() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("({}; echo late) & echo early; exit 5", gate.wait());
    let (child, mut stdout, _) = start(&d, &["run", "--", "sh", "-c", &script]);
    assert_eq!(line(&mut stdout), "early\n");
    // run may wait for closed or for the exit. The code is that of the program in both cases.
    d.exited(&d.ids(json!({}))[0]);
    gate.open();
    assert_eq!(output_of(child).code, 5);
}

/// Runs `toolctl run` with this stdin to its end.
fn run_with(d: &Daemon, stdin: impl Into<Stdio>, args: &[&str]) -> (i32, String) {
    let output = output_of(d.ctl_command(&[&["run"], args].concat()).stdin(stdin).spawn().unwrap());
    assert_eq!(output.stderr, "", "{args:?}");
    (output.code, output.stdout)
}

/// A pipe that contains `text` and whose writer is closed.
fn filled(text: &str) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    reader
}

#[test]
fn a_piped_stdin_goes_to_the_program_unless_no_stdin_is_given() {
    // The broken code gave the program /dev/null, and the piped input was lost silently.
    let d = Daemon::start();
    let cat = ["--", "cat"];
    assert_eq!(run_with(&d, filled("data\n"), &cat), (0, "data\n".into()));
    assert_eq!(run_with(&d, filled(""), &cat), (0, String::new()));
    let (socket, mut other) = UnixStream::pair().unwrap();
    other.write_all(b"by socket").unwrap();
    drop(other);
    assert_eq!(run_with(&d, OwnedFd::from(socket), &cat), (0, "by socket".into()));
    let much: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let file = d.root().join("data");
    std::fs::write(&file, &much).unwrap();
    assert!(run_with(&d, File::open(&file).unwrap(), &cat) == (0, much));
    let see = ["--", "readlink", "/proc/self/fd/0"];
    assert_eq!(run_with(&d, Stdio::null(), &see), (0, "/dev/null\n".into()));
    assert_eq!(run_with(&d, filled("x"), &[&["--no-stdin"], &see[..]].concat()), (0, "/dev/null\n".into()));
    assert!(run_with(&d, Stdio::null(), &[&["--stdin"], &see[..]].concat()).1.starts_with("pipe:"));
}

#[test]
fn run_exits_with_the_program_whatever_its_stdin_does() {
    let d = Daemon::start();
    let (open, _writer) = std::io::pipe().unwrap();
    assert_eq!(run_with(&d, open, &["--", "sh", "-c", "exit 3"]), (3, String::new()));
    // More than the program reads, and than all pipes on the way hold.
    let file = d.root().join("much");
    std::fs::write(&file, "line\n".repeat(1_000_000)).unwrap();
    let output = run_with(&d, File::open(&file).unwrap(), &["--", "sh", "-c", "read x; echo $x; exit 4"]);
    assert_eq!(output, (4, "line\n".into()));
}

#[test]
fn run_works_from_a_directory_that_is_the_programs_too() {
    let d = Daemon::start();
    let mut command: Command = d.ctl_command(&["run", "--", "pwd", "-P"]);
    command.current_dir("/usr");
    let output = output_of(command.spawn().unwrap());
    assert_eq!((output.code, output.stdout.as_str()), (0, "/usr\n"), "the command runs in the caller's directory");
}

#[test]
fn a_program_that_cannot_start_exits_with_the_code_of_a_shell() {
    // The broken code exited with 1, as a program that ran and failed might.
    let d = Daemon::start();
    let plain = d.root().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    for program in ["nosuchprogram", "/no/such/program", plain, "/", "/etc/passwd/x"] {
        let shell = output_of(d.tool("bash", &["-c", &format!("'{program}'")]).spawn().unwrap());
        let output = d.ctl(&["run", "--", program]);
        assert_eq!((output.code, output.stdout.as_str()), (shell.code, ""), "{output:?}");
        assert!(output.stderr.starts_with(&format!("toolctl: exec {program}: ")), "{output:?}");
        let document = d.ctl(&["--json", "run", "--", program]);
        assert_eq!((document.code, document.stderr.lines().count()), (shell.code, 1), "{document:?}");
        assert_eq!(d.ctl(&["exec", "--", program]).code, 1, "exec does not stand for the program");
    }
    let output = d.ctl(&["run", "echo hello"]);
    assert!(output.code == 127 && output.stderr.contains("shell text goes behind -c"), "{output:?}");
    assert_eq!(d.ctl(&["run", "-c", "nosuchprogram"]).code, 127);
}

/// As in `docs/attach.md`: only a terminal gets a message.
#[test]
fn a_daemon_killed_meanwhile_leaves_no_message_in_the_output_of_the_program() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("echo before; {}; echo after; exit 5", gate.wait());
    let (child, mut stdout, _) = start(&d, &["run", "--", "/bin/sh", "-c", &script]);
    assert_eq!(line(&mut stdout), "before\n");
    d.kill9();
    gate.open();
    assert_eq!((line(&mut stdout), line(&mut stdout)), ("after\n".into(), String::new()));
    let output = output_of(child);
    assert_eq!((output.code, output.stderr.as_str()), (5, ""), "{output:?}");
}

#[test]
fn a_process_that_its_time_limit_ended_exits_like_timeout() {
    // The broken code exited with 143.
    let d = Daemon::start();
    for options in [&["--timeout", "200ms"][..], &["--idle", "200ms"], &["--timeout", "200ms", "--json"]] {
        let ran = d.ctl(&[&["run"], options, &["--", "/bin/sleep", "1000"]].concat());
        assert_eq!(ran.code, 124, "{options:?}: {ran:?}");
    }
    assert_eq!(d.ctl(&["run", "--timeout", "1h", "--", "/bin/sh", "-c", "kill -TERM $$"]).code, 143);
}

#[test]
fn rm_removes_the_record_after_the_end_whatever_the_end_is() {
    let d = Daemon::start();
    let ran = d.ctl(&["run", "--rm", "--", "/bin/sh", "-c", "echo hi; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (3, "hi\n", ""));
    assert_eq!(d.ctl(&["run", "--rm", "--", "/no/such/program"]).code, 127);
    assert_eq!(d.ctl(&["run", "--rm", "--json", "--", "/bin/true"]).code, 0);
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    let ran = d.ctl(&["run", "--rm", "--name", "left", "-c", "sleep 1000 & echo hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n"));
    assert!(ran.stderr.contains("still run, so its record is kept"), "{ran:?}");
    d.ok("kill", json!({ "id": "left" }));
    assert_eq!(d.ctl(&["run", "--rm", "--detach-after", "1s", "--", "/bin/true"]).code, 2);
}

#[test]
fn a_limited_output_is_its_beginning_and_its_end_and_the_log_has_all_of_it() {
    let d = Daemon::start();
    let ran = d.ctl(&["run", "--max-output", "1K", "--name", "n", "--", "seq", "10000"]);
    let (head, tail) = (ran.stdout.lines().next().unwrap(), ran.stdout.lines().last().unwrap());
    assert_eq!((ran.code, head, tail), (0, "1", "10000"), "{ran:?}");
    assert!(ran.stdout.len() <= 1024 && ran.stdout.len() > 900, "{}", ran.stdout.len());
    let left_out = 48894 - ran.stdout.len();
    assert!(ran.stderr.contains(&format!("toolctl: {left_out} bytes of output are left out here; ")), "{}", ran.stderr);
    assert!(ran.stdout.lines().all(|line| line.parse::<u32>().is_ok_and(|n| (1..=10000).contains(&n))), "{ran:?}");
    assert_eq!(d.text("n").lines().count(), 10000);
    let ran = d.ctl(&["run", "--max-output", "1K", "--", "seq", "10"]);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (10, ""));
}
