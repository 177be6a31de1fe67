//! Closed pipes, devices and full disks as standard input and output.

use serde_json::json;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id};

#[test]
fn every_command_whose_reader_is_gone_is_quiet_and_exits_with_0() {
    let mut d = Daemon::start();
    let proc = id(&d.sh_with("echo ready; exec cat", json!({ "stdin": "pipe" })));
    let term = id(&d.sh_with("exec sleep 1000", json!({ "pty": true })));
    d.printed(&proc, "ready");
    let done = id(&d.run("seq 1 100"));
    let commands: [&[&str]; 24] = [
        &["exec", "--", "true"],
        &["poll", &done],
        &["poll", &done, "--raw", "--cursor", "0"],
        &["log", &done],
        &["log", "-f", &done],
        &["log", "-f", &proc],
        &["wait", &done],
        &["wait", &proc, "--match", "ready"],
        &["events"],
        &["events", "-f"],
        &["signal", &proc, "CONT"],
        &["write", &proc, "x"],
        &["submit", &proc, "x"],
        &["resize", &term, "20x70"],
        &["list"],
        &["list", "--json"],
        &["inspect", &proc],
        &["info"],
        &["info", "--json"],
        &["close", &proc],
        &["kill", &proc],
        &["forget", &proc],
        &["--help"],
        &["shutdown"],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = output_of(d.ctl_command(args).stdout(writer).stdin(Stdio::null()).spawn().unwrap());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    }
    assert_eq!(d.ended(), 0, "the last command stopped the daemon");
}

#[test]
fn a_follower_whose_reader_leaves_later_does_not_wait_for_the_next_line() {
    use std::io::{BufRead, BufReader};
    let d = Daemon::start();
    let proc = d.sh("echo one; echo two; exec sleep 1000");
    d.printed(&proc, "two");
    let mut child = d.ctl_command(&["log", "-f", &proc]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "one\n");
    drop(stdout);
    // The broken code waited up to 30 s for more output, and then continued to wait.
    let output = output_of(child);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}

#[test]
fn the_socket_never_takes_the_number_of_a_closed_standard_stream() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let closed = format!("exec toolctl wait {proc} <&- >&- 2>&-");
    let mut child = d.tool("sh", &["-c", &closed]).spawn().unwrap();
    let target = |fd: u32| std::fs::read_link(format!("/proc/{}/fd/{fd}", child.id())).unwrap_or_default();
    // Descriptors that the test itself inherited may come before the socket.
    d.eventually("it waits", || (3..32).any(|fd| target(fd).to_string_lossy().starts_with("socket:")));
    for fd in 0..3 {
        assert_eq!(target(fd).to_str(), Some("/dev/null"), "{fd}");
    }
    d.ok("kill", json!({ "id": proc }));
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(143), "the code of the program, which SIGTERM ended");
}

#[test]
fn a_device_is_a_valid_stdin_and_a_full_disk_does_not_end_the_program() {
    let d = Daemon::start();
    let script = "toolctl run -- head -c 5 </dev/zero | od -An -c; toolctl run -- cat </dev/null | wc -c";
    let output = output_of(d.tool("sh", &["-c", script]).spawn().unwrap());
    let fields: Vec<&str> = output.stdout.split_whitespace().collect();
    assert_eq!(fields, [r"\0", r"\0", r"\0", r"\0", r"\0", "0"], "{output:?}");
    let full = "toolctl run --name flood -- sh -c 'echo x; exec sleep 1000' >/dev/full";
    let output = output_of(d.tool("sh", &["-c", full]).spawn().unwrap());
    let proc = id(&d.process("flood"));
    let runs_on = format!("toolctl: flood ({proc}) is still running: toolctl log -f flood\n");
    assert!(output.stderr.contains(&runs_on) && output.stderr.contains("No space left"), "{output:?}");
    assert_eq!((output.code, &d.process("flood")["status"]), (1, &json!("running")));
    // Before, a program that had ended right behind its output was reported to run on.
    let short = "toolctl run --name q -- sh -c 'seq 1 1000' >/dev/full";
    let output = output_of(d.tool("sh", &["-c", short]).spawn().unwrap());
    let proc = id(&d.process("q"));
    let ended = format!("toolctl: {proc} (q) exited 0");
    assert!(output.code == 1 && output.stderr.starts_with(&ended), "{output:?}");
    let kept = format!("its output is kept: toolctl log {proc}\n");
    assert!(output.stderr.contains(&kept) && output.stderr.contains("No space left"), "{output:?}");
}

#[test]
fn shell_text_is_run_by_the_shell_of_the_caller() {
    let d = Daemon::start();
    let shell_of = |shell: &str| {
        let mut command = d.ctl_command(&["run", "-c", "echo $0"]);
        output_of(command.env("SHELL", shell).spawn().unwrap()).stdout
    };
    assert_eq!((shell_of("/bin/bash"), shell_of("/bin/sh")), ("/bin/bash\n".into(), "/bin/sh\n".into()));
}
