//! Child processes of the benchmark, which starts its own executable: an echo server, a supervisor of one process, a server that
//! sends to many clients. Each serves one listening socket, which is its standard input.

use crate::bench_sys;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use toold_test_support::sys::Pidfd;

/// Hidden argument before the name of a role.
const ROLE_FLAG: &str = "--role";
/// Bytes per write of `fan`.
const PAGE_LEN: usize = 1 << 16;

/// A child process in a role, killed when dropped.
pub struct ChildProcess {
    child: Child,
    dir: TempDir,
}

impl ChildProcess {
    pub fn start(name: &str) -> ChildProcess {
        let dir = tempfile::Builder::new().prefix("toold-bench-").tempdir_in("/tmp").unwrap();
        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child =
            command.args([ROLE_FLAG, name]).stdin(OwnedFd::from(listener)).stdout(Stdio::null()).spawn().unwrap();
        ChildProcess { child, dir }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the role that the arguments name. Returns false if they name none.
pub fn run_if_requested() -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [flag, name] = &args[..] else { return false };
    if flag != ROLE_FLAG {
        return false;
    }
    bench_sys::end_with_parent();
    let socket: OwnedFd = io::stdin().as_fd().try_clone_to_owned().unwrap();
    let listener = UnixListener::from(socket);
    // A client that disconnects ends only its own connection.
    match name.as_str() {
        "echo" => loop {
            echo(listener.accept().unwrap().0).ok();
        },
        "supervisor" => loop {
            supervise(listener.accept().unwrap().0).ok();
        },
        "fan" => fan(&listener).unwrap(),
        other => panic!("no such role: {other}"),
    }
    true
}

/// Sends every line back; `#n` as n bytes.
fn echo(mut stream: UnixStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let (mut line, mut large) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match sized(&line) {
            None => stream.write_all(&line)?,
            Some(size) => {
                if large.len() != size {
                    large = vec![b'x'; size];
                    large[size - 1] = b'\n';
                }
                stream.write_all(&large)?;
            }
        }
    }
}

fn sized(line: &[u8]) -> Option<usize> {
    std::str::from_utf8(line.strip_prefix(b"#")?).ok()?.trim().parse().ok().filter(|size| *size > 0)
}

/// Runs the program of each line and reports its start, and its exit as soon as the pidfd is readable.
fn supervise(mut stream: UnixStream) -> io::Result<()> {
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?;
        let mut argv = line.split(' ');
        let mut child = Command::new(argv.next().unwrap_or_default()).args(argv).stdin(Stdio::null()).spawn()?;
        let pidfd = Pidfd::open(child.id() as i32).unwrap();
        stream.write_all(b"started\n")?;
        assert!(pidfd.dies_within(Duration::from_secs(60)), "the supervised program does not end");
        child.wait()?;
        stream.write_all(b"exited\n")?;
    }
    Ok(())
}

/// Reads the number of clients from the first line, then sends every line to all of them; `#n` as n bytes in blocks.
fn fan(listener: &UnixListener) -> io::Result<()> {
    let (control, _) = listener.accept()?;
    let mut lines = BufReader::new(control).lines();
    let count: usize = lines.next().unwrap()?.parse().map_err(io::Error::other)?;
    let mut clients = (0..count).map(|_| Ok(listener.accept()?.0)).collect::<io::Result<Vec<UnixStream>>>()?;
    let page = vec![b'x'; PAGE_LEN];
    for line in lines {
        let line = line? + "\n";
        match sized(line.as_bytes()) {
            None => clients.iter_mut().try_for_each(|client| client.write_all(line.as_bytes()))?,
            Some(size) => {
                for _ in 0..size / PAGE_LEN {
                    clients.iter_mut().try_for_each(|client| client.write_all(&page))?;
                }
            }
        }
    }
    Ok(())
}
