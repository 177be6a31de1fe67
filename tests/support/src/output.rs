//! A program run to its end: what it said, and its exit code.

use crate::rig::DEADLINE;
use crate::sys::Pidfd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// How long the streams of a program that ended may stay open.
const STREAMS: Duration = Duration::from_secs(10);

/// What a run of `toolctl` or `toold` said.
#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Collects what a child says until it ends.
pub fn output_of(child: Child) -> Output {
    let fd = Pidfd::open(child.id() as i32);
    let (done, output) = std::sync::mpsc::channel();
    // The output is read meanwhile, or a full pipe would hold the child.
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    if let Some(fd) = fd.filter(|fd| !fd.dies_within(DEADLINE)) {
        fd.signal(libc::SIGKILL);
        panic!("it did not end: {:?}", output.recv_timeout(STREAMS));
    }
    // A daemon that it started must not hold its streams.
    let output = output.recv_timeout(STREAMS).expect("its output is closed when it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: exit_code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The exit code, or 128+n after signal n.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}
