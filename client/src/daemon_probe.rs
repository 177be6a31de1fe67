//! Finds out whether a daemon runs without starting one: systemd starts it on a connection.

use crate::blocking::{CallError, Client};
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::paths;

/// The flag in /proc/net/unix of a socket that accepts connections.
const SO_ACCEPTCON: u32 = 0x10000;

/// The state of the daemon behind a socket.
pub enum DaemonState {
    /// It runs, and this is a connection to it.
    Running(Client),
    /// No daemon runs; a connection would make systemd start one, so none was made.
    SocketActivated,
    Unreachable(CallError),
}

/// Connects, unless that could start a daemon.
pub fn probe(socket: &Path, timeout: Duration) -> DaemonState {
    if would_activate(socket) && socket.exists() {
        return DaemonState::SocketActivated;
    }
    let connected = Client::connect(socket).and_then(|mut client| {
        client.set_timeout(timeout)?;
        Ok(client)
    });
    connected.map_or_else(DaemonState::Unreachable, DaemonState::Running)
}

/// Returns the path of the systemd unit's socket.
pub fn unit_socket() -> Option<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty())?;
    Some(PathBuf::from(run).join("toold/toold.sock"))
}

/// Reports whether this user has a systemd manager, by the socket that `systemctl --user` uses.
pub fn has_user_manager() -> bool {
    let run = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
    run.is_some_and(|run| run.join("systemd/private").exists())
}

/// Reports whether systemd may listen there with no daemon behind it.
fn would_activate(socket: &Path) -> bool {
    unit_socket().is_some_and(|units| units == socket) && daemon_pid().is_none()
}

/// Returns the pid of the daemon that holds the state directory, from its lock file.
pub fn daemon_pid() -> Option<u32> {
    let text = std::fs::read_to_string(paths::state_dir()?.join("lock")).ok()?;
    // The second line, if any, marks a daemon that is ending.
    let pid = text.lines().next()?.trim().parse().ok()?;
    // The pid may belong to another process by now.
    is_daemon(pid).then_some(pid)
}

/// Reports whether a process is a daemon that runs, by its name and state. One that has ended keeps its name until its
/// parent has reaped it.
pub fn is_daemon(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else { return false };
    name.starts_with("toold") && !matches!(rest.trim_start().chars().next(), Some('Z' | 'X') | None)
}

/// Returns the socket of a command that names none. Some programs give what they start no `$XDG_RUNTIME_DIR`, for example agents
/// to their MCP servers: then a daemon that runs is found by its state directory.
pub fn default_socket() -> PathBuf {
    let socket = paths::socket();
    let is_named =
        ["TOOLD_SOCKET", "XDG_RUNTIME_DIR"].iter().any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    if is_named { socket } else { other_socket(&socket).unwrap_or(socket) }
}

/// Returns the socket of this state directory's daemon if it is another one than `socket`. None: it is the same, the daemon
/// does not listen yet or does not run, or its descriptors are not ours to read.
pub fn other_socket(socket: &Path) -> Option<PathBuf> {
    let socket = std::path::absolute(socket).ok()?;
    let pid = daemon_pid()?;
    let mut places = stored_socket().map_or_else(|| listens(pid), |path| vec![path]);
    if places.contains(&socket) { None } else { places.pop() }
}

/// Returns the socket that the daemon stored in its state directory. None: it is of an earlier version.
fn stored_socket() -> Option<PathBuf> {
    let bytes = std::fs::read(paths::state_dir()?.join("socket")).ok()?;
    Some(PathBuf::from(OsString::from_vec(bytes))).filter(|path| path.is_absolute())
}

/// Returns the paths of the sockets that a process listens on, from its descriptors and /proc/net/unix.
fn listens(pid: u32) -> Vec<PathBuf> {
    let Ok(sockets) = std::fs::read_to_string(format!("/proc/{pid}/net/unix")) else { return Vec::new() };
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let inode = |fd: std::fs::DirEntry| {
        let target = std::fs::read_link(fd.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    let inodes: HashSet<u64> = open.flatten().filter_map(inode).collect();
    listening(&sockets, &inodes)
}

/// Returns the paths of the listening sockets in /proc/net/unix that have one of these inodes.
fn listening(sockets: &str, inodes: &HashSet<u64>) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut rest = line;
        // Numbers are padded with blanks, and a path may contain blanks.
        let mut field = || {
            let (field, after) = rest.trim_start().split_once(' ')?;
            rest = after;
            Some(field)
        };
        let fields: Vec<&str> = std::iter::from_fn(&mut field).take(7).collect();
        let accepts = u32::from_str_radix(fields.get(3)?, 16).ok()? & SO_ACCEPTCON != 0;
        let ours = accepts && inodes.contains(&fields.get(6)?.parse().ok()?);
        (ours && rest.starts_with('/')).then(|| PathBuf::from(rest))
    };
    sockets.lines().skip(1).filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_inode_if_it_listens_and_has_a_path() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path
000000008c36e8b3: 00000002 00000000 00010000 0001 01    41 /run/a b/toold.sock
000000008c36e8b4: 00000002 00000000 00010000 0001 01 17723013 /run/other.sock
000000008c36e8b5: 00000002 00000000 00010000 0001 01 42 @abstract
000000008c36e8b6: 00000003 00000000 00000000 0001 03 43 /run/connected.sock
000000008c36e8b7: 00000003 00000000 00010000 0001 01 44
";
        let ours = [41, 42, 43, 44].into_iter().collect();
        assert_eq!(listening(sockets, &ours), [PathBuf::from("/run/a b/toold.sock")]);
    }

    #[test]
    fn our_own_listening_sockets_are_found_in_proc() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        assert!(listens(std::process::id()).contains(&path));
        drop(listener);
        assert!(!listens(std::process::id()).contains(&path));
    }
}
