//! A daemon in another namespace than the shims of the one before it.

use serde_json::{Value, json};
use std::process::Command;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys;

/// A program that reads lines and answers them.
const ANSWERS: &str = "echo ready; while read -r line; do echo got $line; done";

/// Checks that this user can make such namespaces.
fn can_unshare(flags: &str) -> bool {
    Command::new("unshare").args([flags, "true"]).output().is_ok_and(|output| output.status.success())
}

/// Starts the next daemon, within new namespaces or in those of the test.
fn restart_in(d: &mut Daemon, flags: Option<&str>) {
    d.before = flags.map(|flags| format!("exec unshare {flags} \"$0\" \"$@\""));
    d.restart();
}

fn start_answering(d: &Daemon) -> String {
    let process = id(&d.sh_with(ANSWERS, json!({ "stdin": "pipe" })));
    d.printed(&process, "ready");
    process
}

fn write(d: &Daemon, process: &str, line: &str) {
    d.ok("write", json!({ "id": process, "data": format!("{line}\n") }));
    d.printed(process, &format!("got {line}"));
}

fn reason(d: &Daemon, process: &str) -> String {
    d.eventually("the reason is shown", || d.process(process)["unreachable"].is_string());
    let shown = d.process(process);
    assert_eq!((&shown["status"], &shown["detached"]), (&json!("running"), &json!(true)), "{shown}");
    shown["unreachable"].as_str().unwrap().to_string()
}

#[test]
fn a_shim_in_another_network_namespace_is_reported_with_what_to_do_and_works_again_from_its_own() {
    if skip_unless(can_unshare("-Urn"), "this user cannot make namespaces") {
        return;
    }
    let mut d = Daemon::start();
    let (process, other) = (start_answering(&d), start_answering(&d));
    restart_in(&mut d, Some("-Urn"));
    // The broken code listed it as any other, and a write failed after 11 s: "stopped, frozen or waits for its disk".
    let why = reason(&d, &process);
    assert!(why.contains("another network namespace") && why.contains("nsenter --net=/proc/"), "{why}");
    for (verb, params) in [
        ("write", json!({ "id": process, "data": "lost\n" })),
        ("close", json!({ "id": process })),
        ("signal", json!({ "id": process, "signal": "SIGUSR1" })),
    ] {
        let error = d.call(verb, params).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(&why), "{verb}: {error}");
        assert_eq!(error["data"]["kind"], "unavailable", "{verb}: {error}");
    }
    assert_eq!(d.text(&process), "ready\n", "output is still read");
    let shown = d.ctl(&["inspect", &process]);
    assert!(shown.stdout.contains("another network namespace"), "{shown:?}");
    assert_eq!(d.run("exit 3")["exit_code"], 3, "its own shims are reached");

    reason(&d, &other);
    let killed = d.ok("kill", json!({ "id": other }));
    let result = &killed["results"][0];
    assert_eq!((&killed["status"], &result["signals_sent"]), (&json!("killed"), &json!(["SIGKILL"])), "{killed}");
    assert!(result["note"].as_str().unwrap().contains("another network namespace"), "{killed}");
    assert_eq!(d.exited(&other)["signal"], "SIGKILL");

    restart_in(&mut d, None);
    write(&d, &process, "again");
    assert_eq!(d.process(&process)["unreachable"], Value::Null);
    assert_eq!(d.process(&process)["detached"], Value::Null);
    d.ok("kill", json!({ "id": process }));
}

#[test]
fn root_reaches_a_shim_in_another_network_namespace() {
    if skip_unless(sys::is_root() && can_unshare("-n"), "only root can enter a namespace of another process") {
        return;
    }
    let mut d = Daemon::start();
    let process = start_answering(&d);
    restart_in(&mut d, Some("-n"));
    write(&d, &process, "across");
    assert_eq!(d.process(&process)["unreachable"], Value::Null);
    let killed = d.ok("kill", json!({ "id": process }));
    assert_eq!(killed["results"][0]["signals_sent"], json!(["SIGTERM"]), "the shim did it: {killed}");
}

#[test]
fn the_pids_of_another_pid_namespace_are_not_signalled() {
    if skip_unless(can_unshare("-Urnpf"), "this user cannot make namespaces") {
        return;
    }
    let mut d = Daemon::start();
    let process = start_answering(&d);
    let program = d.program(&process);
    d.kill9();
    let (home, before) = (d.before.clone(), "exec unshare -Urnpf --kill-child --mount-proc \"$0\" \"$@\"");
    d.before = Some(before.into());
    d.spawn();
    assert!(reason(&d, &process).contains("it cannot be killed from here"));
    let killed = d.ok("kill", json!({ "id": process }));
    // The broken code killed whatever was below the process that has the shim's pid in this namespace.
    assert_eq!(killed["status"], "survivors", "{killed}");
    assert!(killed["results"][0]["note"].as_str().unwrap().contains("network namespace"), "{killed}");
    assert!(!program.is_dead());
    // The rig's child is the parent of this daemon, and ends with it.
    d.ok("daemon.shutdown", json!({}));
    d.ended();
    d.before = home;
    d.spawn();
    write(&d, &process, "again");
    d.ok("kill", json!({ "id": process }));
}
