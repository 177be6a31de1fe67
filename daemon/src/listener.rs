//! The socket that clients connect to: in a private directory, or inherited from systemd.

use crate::state_dir::{StartError, io_error, is_state_entry, private_dir, refused, with_setting};
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Maximum length of a socket path, with its final NUL.
const MAX_SOCKET_PATH_LEN: usize = 108;

/// The address that clients connect to: a path, or a socket inherited from systemd.
pub struct ListenAddr {
    /// None for an inherited socket without a path.
    path: Option<PathBuf>,
    inherited: Option<OwnedFd>,
    /// The file that clients find.
    file: Mutex<Option<SocketFile>>,
}

/// The socket's file, and whether it is ours to remove.
#[derive(Clone, Copy)]
struct SocketFile {
    id: FileId,
    is_ours: bool,
}

/// Device, inode and time of creation: a new file may get the inode of one that was removed.
type FileId = (u64, u64, Option<SystemTime>);

impl ListenAddr {
    /// Checks the address before anything is started.
    pub fn prepare(path: &Path) -> Result<ListenAddr, StartError> {
        if let Some(fd) = systemd_socket(path)? {
            let path = path_of(&fd);
            let file = path.as_deref().and_then(file_id).map(|id| SocketFile { id, is_ours: false });
            return Ok(ListenAddr { path, inherited: Some(fd), file: Mutex::new(file) });
        }
        let len = path.as_os_str().len();
        if len >= MAX_SOCKET_PATH_LEN {
            return refused(path, format!("is {len} bytes long; a socket's path may have {}", MAX_SOCKET_PATH_LEN - 1));
        }
        // Only the last directory is made: a missing XDG_RUNTIME_DIR is a mistake of the environment, or not mounted yet.
        let above = path.parent().and_then(Path::parent).filter(|above| !above.as_os_str().is_empty());
        if let Some(above) = above.filter(|above| !above.exists()) {
            return refused(
                above,
                "does not exist; create it, or set TOOLD_SOCKET or XDG_RUNTIME_DIR to another place",
            );
        }
        make_room(path).map_err(|error| with_setting(error, "TOOLD_SOCKET"))?;
        Ok(ListenAddr { path: Some(path.into()), inherited: None, file: Mutex::default() })
    }

    pub fn listen(&self) -> Result<tokio::net::UnixListener, StartError> {
        match (&self.inherited, &self.path) {
            (Some(fd), _) => {
                let name = Path::new("the socket from systemd");
                let fd = fd.try_clone().map_err(io_error("copy", name))?;
                to_tokio(UnixListener::from(fd)).map_err(io_error("listen on", name))
            }
            (None, Some(path)) => self.bind(path),
            (None, None) => refused(Path::new(""), "there is no address to listen on"),
        }
    }

    /// Listens again if the socket's file is gone, moved or another's. None: it is in place.
    pub fn restore(&self) -> Result<Option<tokio::net::UnixListener>, StartError> {
        let Some(path) = &self.path else { return Ok(None) };
        if self.file_in_place(path).is_some() {
            return Ok(None);
        }
        make_room(path)?;
        self.bind(path).map(Some)
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Removes our socket. One of systemd's stays, and so does one that another daemon put in its place.
    pub fn remove(&self) {
        let Some(path) = &self.path else { return };
        if self.file_in_place(path).is_some_and(|file| file.is_ours)
            && let Err(e) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %e, "failed to remove the socket");
        }
    }

    /// Returns the socket's file if it is still the one at the path.
    fn file_in_place(&self, path: &Path) -> Option<SocketFile> {
        let file = *self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.filter(|file| file_id(path) == Some(file.id))
    }

    fn bind(&self, path: &Path) -> Result<tokio::net::UnixListener, StartError> {
        let listener = bind(path).map_err(io_error("listen on", path))?;
        let file = file_id(path).map(|id| SocketFile { id, is_ours: true });
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        to_tokio(listener).map_err(io_error("listen on", path))
    }
}

/// Makes the socket's directory, and removes the socket of a daemon that has exited.
fn make_room(path: &Path) -> Result<(), StartError> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("/"));
    // One directory may be both this and the state directory.
    private_dir(dir, |name| Some(name) == path.file_name() || is_state_entry(name))?;
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(StartError::Io { doing: "stat", path: path.into(), source }),
        Ok(found) if !found.file_type().is_socket() => {
            refused(path, "is not a socket; move it away or choose another path")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => refused(path, "another daemon listens there"),
        Ok(_) => std::fs::remove_file(path).map_err(io_error("remove", path)),
    }
}

fn to_tokio(listener: UnixListener) -> io::Result<tokio::net::UnixListener> {
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}

fn file_id(path: &Path) -> Option<FileId> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino(), found.created().ok()))
}

/// Returns the path that an inherited socket is bound to.
fn path_of(fd: &OwnedFd) -> Option<PathBuf> {
    let listener = UnixListener::from(fd.try_clone().ok()?);
    let path = listener.local_addr().ok()?.as_pathname()?.to_path_buf();
    path.is_absolute().then_some(path)
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
