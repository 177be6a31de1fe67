//! The places a daemon owns: the state directory with its lock, the socket in its private directory.

use rustix::fs::FlockOperation;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A socket's path with its final NUL has to fit into this many bytes.
const PATH_MAX: usize = 108;
/// How long the last child of a dead daemon may hold its lock.
const DYING: Duration = Duration::from_secs(3);

/// Why a daemon cannot start, for a person.
#[derive(Debug)]
pub enum Error {
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    Refused { path: PathBuf, why: String },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            Error::Refused { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |source| Error::Io { doing, path: path.into(), source }
}

fn refused<T>(path: &Path, why: impl Into<String>) -> Result<T, Error> {
    Err(Error::Refused { path: path.into(), why: why.into() })
}

/// Makes a directory that only we can enter, or checks that one is.
fn private_dir(dir: &Path) -> Result<(), Error> {
    if let Some(parent) = dir.parent().filter(|p| !p.exists()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io_error("create", parent))?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(Error::Io { doing: "create", path: dir.into(), source }),
    }
    let found = std::fs::symlink_metadata(dir).map_err(io_error("look at", dir))?;
    if found.is_symlink() {
        return refused(dir, "is a symbolic link; toold needs a directory of its own there");
    }
    if !found.is_dir() {
        return refused(dir, "is not a directory; move it away or choose another place");
    }
    let uid = nix::unistd::getuid().as_raw();
    if found.uid() != uid {
        return refused(dir, format!("belongs to uid {}, not to {uid}; choose another place", found.uid()));
    }
    match found.mode() & 0o7777 {
        0o700 => Ok(()),
        closed if closed & 0o700 != 0o700 => refused(
            dir,
            format!("has mode {closed:03o}: toold cannot write there; chmod it to 700 or choose another place"),
        ),
        shared if shared & 0o1000 != 0 => {
            refused(dir, "is shared with others (sticky); put the socket into a directory of its own")
        }
        open if shared_place(dir, &found) => {
            refused(dir, format!("has mode {open:03o} and is not toold's alone; use a directory of its own below it"))
        }
        // Ours, but too open: closed before anything is put there.
        open => {
            eprintln!("toold: {} had mode {open:03o} and has 700 now: only its owner may reach toold", dir.display());
            std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(io_error("close", dir))
        }
    }
}

/// Whether others rely on a directory: a home, a top-level directory, the root of a file system.
fn shared_place(dir: &Path, found: &std::fs::Metadata) -> bool {
    let home = std::env::var_os("HOME").is_some_and(|home| Path::new(&home) == dir);
    let top = dir.components().count() <= 2;
    let mount = dir.parent().and_then(|p| std::fs::metadata(p).ok()).is_some_and(|p| p.dev() != found.dev());
    home || top || mount
}

/// The state directory, held by us alone.
pub struct Lock {
    dir: PathBuf,
    _file: File,
}

impl Lock {
    pub fn take(dir: &Path) -> Result<Lock, Error> {
        private_dir(dir)?;
        let path = dir.join("lock");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(io_error("open", &path))?;
        let until = Instant::now() + DYING;
        while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim();
            // A child of a dead daemon has the lock too, for the moment until it execs.
            let lives = holder.is_empty() || Path::new("/proc").join(holder).exists();
            if lives || Instant::now() >= until {
                return refused(dir, format!("another toold (pid {holder}) has this state directory"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_error("write", &path))?;
        let procs = dir.join("procs");
        private_dir(&procs)?;
        Ok(Lock { dir: dir.into(), _file: file })
    }

    pub fn procs_dir(&self) -> PathBuf {
        self.dir.join("procs")
    }

    pub fn events_dir(&self) -> PathBuf {
        self.dir.join("events")
    }
}

/// Where clients connect: a path of ours, or a socket that systemd made.
pub enum Place {
    Path(PathBuf),
    Given(std::os::fd::OwnedFd),
}

impl Place {
    /// Checks everything that can be wrong with the socket before anything is started.
    pub fn prepare(path: &Path) -> Result<Place, Error> {
        if let Some(fd) = given_by_systemd(path)? {
            return Ok(Place::Given(fd));
        }
        let len = path.as_os_str().len();
        if len >= PATH_MAX {
            return refused(path, format!("is {len} bytes long; a socket's path may have {}", PATH_MAX - 1));
        }
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("/"));
        private_dir(dir)?;
        match std::fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { doing: "look at", path: path.into(), source }),
            Ok(found) if !found.file_type().is_socket() => {
                return refused(path, "is not a socket; move it away or choose another place");
            }
            Ok(_) if UnixStream::connect(path).is_ok() => return refused(path, "another daemon answers there"),
            // The socket of a daemon that is gone.
            Ok(_) => std::fs::remove_file(path).map_err(io_error("remove", path))?,
        }
        Ok(Place::Path(path.into()))
    }

    pub fn listen(&self) -> Result<tokio::net::UnixListener, Error> {
        let (listener, path) = match self {
            Place::Path(path) => {
                let listener = bind(path).map_err(io_error("listen on", path))?;
                (listener, path.clone())
            }
            Place::Given(fd) => {
                let fd = fd.try_clone().map_err(io_error("copy", Path::new("the socket from systemd")))?;
                (UnixListener::from(fd), PathBuf::from("the socket from systemd"))
            }
        };
        listener.set_nonblocking(true).map_err(io_error("listen on", &path))?;
        tokio::net::UnixListener::from_std(listener).map_err(io_error("listen on", &path))
    }

    /// Takes our socket away. One of systemd's stays.
    pub fn remove(&self) {
        if let Place::Path(path) = self
            && let Err(e) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %e, "remove the socket");
        }
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    // The directory is ours alone, so nobody is in time to use a wider mode.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The first descriptor of `LISTEN_FDS`, if it was meant for us.
fn given_by_systemd(path: &Path) -> Result<Option<std::os::fd::OwnedFd>, Error> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match number("LISTEN_FDS") {
        None | Some(0) => Ok(None),
        Some(1) => {
            let fd = crate::sys::own(3);
            rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(|e| Error::Io {
                doing: "take",
                path: path.into(),
                source: e.into(),
            })?;
            Ok(Some(fd))
        }
        Some(many) => refused(path, format!("systemd gave {many} sockets, and toold serves one")),
    }
}
