//! Runs a program to its end and collects its output and exit code.

use crate::rig::DEADLINE;
use crate::sys::Pidfd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// The time in which the streams of a program that ended must close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The output of a run of `toolctl` or `toold`.
#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Collects the output of a child until it ends.
pub fn output_of(child: Child) -> Output {
    let fd = Pidfd::open(child.id() as i32);
    let (done, output) = std::sync::mpsc::channel();
    // A thread reads the output meanwhile, or a full pipe would block the child.
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    if let Some(fd) = fd.filter(|fd| !fd.dies_within(DEADLINE)) {
        fd.signal(libc::SIGKILL);
        panic!("it did not end: {:?}", output.recv_timeout(CLOSE_TIMEOUT));
    }
    // A daemon that it started must not hold its streams.
    let output = output.recv_timeout(CLOSE_TIMEOUT).expect("its output is closed when it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: exit_code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The exit code, or 128+n after signal n.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}
