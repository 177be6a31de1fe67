//! Whether a daemon runs, found out without waking one: systemd starts it for whoever connects.

use crate::blocking::{CallError, Client};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::places;

/// What is behind a socket.
pub enum Presence {
    /// It was reached.
    Here(Client),
    /// Nobody runs, and a call would make systemd start one. There was none.
    Asleep,
    Unreachable(CallError),
}

/// Connects, unless that could start a daemon.
pub fn look(socket: &Path, patience: Duration) -> Presence {
    if could_wake(socket) && socket.exists() {
        return Presence::Asleep;
    }
    let connected = Client::connect(socket).and_then(|mut client| {
        client.set_patience(patience)?;
        Ok(client)
    });
    connected.map_or_else(Presence::Unreachable, Presence::Here)
}

/// Where the unit's socket is.
pub fn unit_socket() -> Option<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty())?;
    Some(PathBuf::from(run).join("toold/toold.sock"))
}

/// Whether a systemd of this user's is there to be asked, by the socket that `systemctl --user` would ask.
pub fn has_user_manager() -> bool {
    let run = std::env::var_os("XDG_RUNTIME_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
    run.is_some_and(|run| run.join("systemd/private").exists())
}

/// Whether systemd may listen there with no daemon behind it.
fn could_wake(socket: &Path) -> bool {
    unit_socket().is_some_and(|units| units == socket) && daemon_pid().is_none()
}

/// The daemon that holds the state directory, by what it wrote into its lock.
pub fn daemon_pid() -> Option<u32> {
    let text = std::fs::read_to_string(places::state_dir()?.join("lock")).ok()?;
    let pid = text.trim().parse().ok()?;
    // The number may be a stranger's by now.
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    name.starts_with("toold").then_some(pid)
}
