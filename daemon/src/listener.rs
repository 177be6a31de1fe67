//! The socket that clients connect to: in a private directory, or inherited from systemd.

use crate::state_dir::{StartError, io_error, private_dir, refused};
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Maximum length of a socket path, with its final NUL.
const MAX_SOCKET_PATH_LEN: usize = 108;

/// The address that clients connect to: a path, or a socket inherited from systemd.
pub enum ListenAddr {
    Path(PathBuf),
    Inherited(OwnedFd),
}

impl ListenAddr {
    /// Checks the address before anything is started.
    pub fn prepare(path: &Path) -> Result<ListenAddr, StartError> {
        if let Some(fd) = systemd_socket(path)? {
            return Ok(ListenAddr::Inherited(fd));
        }
        let len = path.as_os_str().len();
        if len >= MAX_SOCKET_PATH_LEN {
            return refused(path, format!("is {len} bytes long; a socket's path may have {}", MAX_SOCKET_PATH_LEN - 1));
        }
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("/"));
        private_dir(dir)?;
        match std::fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(StartError::Io { doing: "stat", path: path.into(), source }),
            Ok(found) if !found.file_type().is_socket() => {
                return refused(path, "is not a socket; move it away or choose another path");
            }
            Ok(_) if UnixStream::connect(path).is_ok() => return refused(path, "another daemon listens there"),
            // The socket of a daemon that has exited.
            Ok(_) => std::fs::remove_file(path).map_err(io_error("remove", path))?,
        }
        Ok(ListenAddr::Path(path.into()))
    }

    pub fn listen(&self) -> Result<tokio::net::UnixListener, StartError> {
        let (listener, path) = match self {
            ListenAddr::Path(path) => {
                let listener = bind(path).map_err(io_error("listen on", path))?;
                (listener, path.clone())
            }
            ListenAddr::Inherited(fd) => {
                let fd = fd.try_clone().map_err(io_error("copy", Path::new("the socket from systemd")))?;
                (UnixListener::from(fd), PathBuf::from("the socket from systemd"))
            }
        };
        listener.set_nonblocking(true).map_err(io_error("listen on", &path))?;
        tokio::net::UnixListener::from_std(listener).map_err(io_error("listen on", &path))
    }

    /// Removes our socket. One of systemd's stays.
    pub fn remove(&self) {
        if let ListenAddr::Path(path) = self
            && let Err(e) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %e, "failed to remove the socket");
        }
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    // Only we can enter the directory, so no other user can connect before the mode is narrowed.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns the socket that systemd passed to this process, if any.
fn systemd_socket(path: &Path) -> Result<Option<OwnedFd>, StartError> {
    let mut fds = crate::sys::take_passed_fds().map_err(io_error("take", path))?;
    match fds.len() {
        0 | 1 => Ok(fds.pop()),
        many => refused(path, format!("systemd passed {many} sockets; toold serves one")),
    }
}
