//! The forbidden acts of `sandbox.probe`, as a confined process tries them. It writes a line for each into a file in its root.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use toold_proto::sandbox::Measure;

/// The file in the root with the results.
pub const RESULTS: &str = "results";
/// The directory that is the root of the process.
pub const ROOT: &str = "root";
/// A directory outside of it.
pub const OUTSIDE: &str = "outside";
/// A file that is hidden.
pub const HIDDEN: &str = "hidden";
/// A hidden directory with a socket, as that of the daemon's own: a call there would be one from inside.
pub const SOCKETS: &str = "sockets";
pub const SOCKET: &str = "socket";
/// The private `/tmp`.
pub const TMP: &str = "tmp";
/// Time for a connection. All of them are local.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The places that the acts are aimed at.
#[derive(Debug, clap::Args)]
pub struct Targets {
    /// The directory of this run: it has the root, the outside and the hidden file.
    pub dir: PathBuf,
    /// A TCP and a UDP socket of the daemon.
    pub tcp: SocketAddr,
    pub udp: SocketAddr,
    /// An abstract socket of the daemon.
    pub abstract_name: String,
    pub daemon: i32,
}

impl Targets {
    /// Returns the arguments that give them to a process.
    pub fn args(&self) -> Vec<OsString> {
        let texts = [self.tcp.to_string(), self.udp.to_string(), self.abstract_name.clone(), self.daemon.to_string()];
        [self.dir.clone().into()].into_iter().chain(texts.map(OsString::from)).collect()
    }
}

/// One act: its name, the measure that refuses it, and the attempt.
type Act = (&'static str, Measure, fn(&Targets) -> io::Result<()>);

/// The acts, each of which a process without a sandbox could do, as far as its user may.
pub const ACTS: [Act; 12] = [
    ("write", Measure::FsWrite, |at| std::fs::write(at.dir.join(OUTSIDE).join("new"), "x")),
    ("chmod", Measure::FsMetadata, |at| {
        std::fs::set_permissions(at.dir.join(OUTSIDE), std::fs::Permissions::from_mode(0o700))
    }),
    ("rename_protected", Measure::Protect, |at| {
        let root = at.dir.join(ROOT);
        std::fs::rename(root.join(".git"), root.join("moved"))
    }),
    ("tcp", Measure::Network, |at| TcpStream::connect_timeout(&at.tcp, CONNECT_TIMEOUT).map(drop)),
    ("udp", Measure::Network, |at| UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", at.udp).map(drop)),
    ("abstract_socket", Measure::AbstractSockets, |at| {
        let name = std::os::unix::net::SocketAddr::from_abstract_name(&at.abstract_name)?;
        UnixStream::connect_addr(&name).map(drop)
    }),
    ("unix_socket", Measure::UnixSockets, |at| UnixStream::connect(at.dir.join(SOCKETS).join(SOCKET)).map(drop)),
    ("kill", Measure::Signals, |at| {
        let pid = rustix::process::Pid::from_raw(at.daemon).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::process::test_kill_process(pid)?)
    }),
    ("ptrace", Measure::Ptrace, |at| crate::sys::try_ptrace(at.daemon)),
    ("mount", Measure::FsWrite, |at| crate::sys::try_mount(&at.dir.join(ROOT))),
    ("setuid", Measure::Setuid, |_| match rustix::thread::no_new_privs()? {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }),
    ("read_hidden", Measure::Hide, |at| match std::fs::read(at.dir.join(HIDDEN))?.is_empty() {
        // An empty file stands in its place.
        true => Err(io::ErrorKind::NotFound.into()),
        false => Ok(()),
    }),
];

/// Tries all acts, and writes the results: the program of a probe.
pub fn main(targets: &Targets) -> ExitCode {
    let mut results = String::new();
    for (name, _, act) in ACTS {
        results.push_str(&format!("{name} {}\n", if act(targets).is_ok() { "done" } else { "refused" }));
    }
    let written = std::fs::File::create(targets.dir.join(ROOT).join(RESULTS))
        .and_then(|mut file| file.write_all(results.as_bytes()));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the result of an act, from the file of a run.
pub fn result_of(act: &str, results: &str) -> &'static str {
    let found = results.lines().find_map(|line| line.strip_prefix(act)?.strip_prefix(' '));
    match found {
        Some("done") => "done",
        Some("refused") => "refused",
        _ => "unknown",
    }
}

/// Makes the directory of a run. It must not be there.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir.join(ROOT).join(".git/hooks"))?;
    for name in [OUTSIDE, SOCKETS, TMP] {
        std::fs::create_dir(dir.join(name))?;
    }
    std::fs::write(dir.join(HIDDEN), "hidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_sandbox_can_do_what_the_probe_tries_on_files_and_sockets() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = dir.path().join("run");
        make_dir(&dir).expect("writable");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let name = format!("toold-probe-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("an address");
        let _abstract = std::os::unix::net::UnixListener::bind_addr(&address).expect("a socket");
        let socket = dir.join(SOCKETS).join(SOCKET);
        let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        let targets = Targets {
            tcp: tcp.local_addr().expect("bound"),
            udp: udp.local_addr().expect("bound"),
            abstract_name: name,
            daemon: std::process::id() as i32,
            dir: dir.clone(),
        };
        for (name, _, act) in ACTS.iter().filter(|(name, ..)| !matches!(*name, "ptrace" | "mount" | "setuid")) {
            assert!(act(&targets).is_ok(), "{name}");
        }
        assert_eq!(result_of("tcp", "udp refused\ntcp done\n"), "done");
        assert_eq!((result_of("udp", "udp refused\ntcp done\n"), result_of("kill", "")), ("refused", "unknown"));
    }
}
