//! Tests of starting and supervising the daemon: flags, configuration, sockets, systemd.

pub mod install;
mod log;
mod start;
mod startup_errors;
mod systemd;
mod watchdog;

use std::os::unix::net::UnixDatagram;
use std::process::Child;
use toold_test_support::rig::{DEADLINE, Daemon};

/// Starts the daemon with a socket for its notifications, in place of systemd.
fn start_notified(d: &Daemon) -> (Child, UnixDatagram) {
    let path = d.root().join("notify.sock");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(DEADLINE)).unwrap();
    (d.command().env("NOTIFY_SOCKET", &path).spawn().unwrap(), systemd)
}

/// The lines of the next notification.
#[track_caller]
fn notification(systemd: &UnixDatagram) -> Vec<String> {
    let mut buffer = [0; 4096];
    let n = loop {
        match systemd.recv(&mut buffer) {
            // A signal to the test interrupts the call, since the socket has a timeout.
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            received => break received.expect("a notification within the deadline"),
        }
    };
    String::from_utf8_lossy(&buffer[..n]).lines().map(String::from).collect()
}
