//! Watchdog pings for systemd, a socket from systemd itself, and `systemd-analyze verify` of our units.

use super::{notification, start_notified};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use toold_test_support::conn::Conn;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};
use toold_test_support::sys::Pidfd;

/// Collects the notifications of a daemon from its start to its stop; `until` gets all of them and decides when to stop.
fn messages(env: &[(&str, &str)], until: impl Fn(&[String]) -> bool) -> Vec<String> {
    let d = Daemon::prepare("", env);
    let (mut child, systemd) = start_notified(&d);
    let mut all: Vec<String> = Vec::new();
    let mut stopping = false;
    while all.last().is_none_or(|message| message != "STOPPING=1") {
        all.extend(notification(&systemd));
        if !stopping && until(&all) {
            Conn::open(&d.socket()).unwrap().call("daemon.info", json!({})).unwrap();
            Pidfd::open(child.id() as i32).unwrap().signal(libc::SIGTERM);
            stopping = true;
        }
    }
    assert!(child.wait().unwrap().success());
    all
}

fn pings(messages: &[String]) -> usize {
    messages.iter().filter(|message| *message == "WATCHDOG=1").count()
}

#[test]
fn pings_are_sent_while_systemd_wants_them() {
    let all = messages(&[("WATCHDOG_USEC", "300000")], |all| pings(all) >= 3);
    assert_eq!(all[0], "READY=1", "{all:?}");
}

#[test]
fn pings_are_sent_only_on_request() {
    assert_eq!(messages(&[], |all| all == ["READY=1"]), ["READY=1", "STOPPING=1"]);
    let anothers = [("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    assert_eq!(messages(&anothers, |all| all == ["READY=1"]), ["READY=1", "STOPPING=1"]);
}

#[test]
fn a_socket_from_systemd_itself_is_served_from_the_first_call_on() {
    let activate = "systemd-socket-activate";
    if skip_unless(has(activate), "systemd-socket-activate is not installed") {
        return;
    }
    let mut d = Daemon::prepare("", &[]);
    d.socket_stays = true;
    let socket = d.socket();
    fs::create_dir(socket.parent().unwrap()).unwrap();
    let keep = ["-E", "XDG_STATE_HOME", "-E", "XDG_RUNTIME_DIR", "-E", "XDG_CONFIG_HOME", "-E", "TMPDIR"];
    let listen = ["-l", socket.to_str().unwrap(), "--fdname=toold"];
    let args = [&keep[..], &listen[..], &[d.binary.to_str().unwrap()]].concat();
    let mut child = d.tool(activate, &args).spawn().unwrap();
    // The file exists a moment before the socket listens, so the test does not wait for the file.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Listening on") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
    }
    let output = d.ctl(&["--no-autostart", "run", "--", "echo", "hello"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "hello\n"), "{output:?}");
    assert_eq!(d.ok("daemon.info", json!({}))["pid"], child.id(), "it became the daemon");
    assert_eq!(d.ctl(&["shutdown"]).code, 0);
    child.wait().unwrap();
    drop(stderr);
    fs::remove_file(&socket).unwrap();
}

#[test]
fn systemd_accepts_our_units() {
    if skip_unless(has("systemd-analyze"), "systemd-analyze is not installed") {
        return;
    }
    let d = Daemon::prepare("", &[]);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    for name in ["toold.service", "toold.socket"] {
        let text = fs::read_to_string(ours.join(name)).unwrap().replace("/usr/bin/toold", d.binary.to_str().unwrap());
        fs::write(d.root().join(name), text).unwrap();
    }
    let output = output_of(
        d.tool("systemd-analyze", &["verify", "--user", "--man=no", "./toold.service", "./toold.socket"])
            .spawn()
            .unwrap(),
    );
    // systemd 254 is the first to know one key.
    let fault = |line: &&str| line.contains("toold") && !line.contains("DelegateSubgroup");
    let faults: Vec<&str> = output.stderr.lines().filter(fault).collect();
    assert!(output.code == 0 && faults.is_empty(), "{output:?}");
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
