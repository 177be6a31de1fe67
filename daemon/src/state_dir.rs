//! The state directory: private to its owner, and locked by one daemon.

use crate::events::{can_pass, open_regular, quarantine_path};
use rustix::fs::FlockOperation;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that the last child of a dead daemon may hold its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// The reason why a daemon cannot start, for a person.
#[derive(Debug)]
pub enum StartError {
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    Refused { path: PathBuf, why: String },
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            StartError::Refused { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for StartError {}

pub fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> StartError + 'a {
    move |source| StartError::Io { doing, path: path.into(), source }
}

pub fn refused<T>(path: &Path, why: impl Into<String>) -> Result<T, StartError> {
    Err(StartError::Refused { path: path.into(), why: why.into() })
}

/// Creates a directory that only its owner can enter, or checks that it is one.
pub fn private_dir(dir: &Path) -> Result<(), StartError> {
    if let Some(parent) = dir.parent().filter(|p| !p.exists()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io_error("create", parent))?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(StartError::Io { doing: "create", path: dir.into(), source }),
    }
    let found = std::fs::symlink_metadata(dir).map_err(io_error("stat", dir))?;
    if found.is_symlink() {
        return refused(dir, "is a symbolic link; toold needs a directory of its own there");
    }
    if !found.is_dir() {
        return refused(dir, "is not a directory; move it away or choose another path");
    }
    let uid = nix::unistd::getuid().as_raw();
    if found.uid() != uid {
        return refused(dir, format!("belongs to uid {}, not to {uid}; choose another path", found.uid()));
    }
    match found.mode() & 0o7777 {
        0o700 => Ok(()),
        closed if closed & 0o700 != 0o700 => refused(
            dir,
            format!("has mode {closed:03o}: toold cannot write there; chmod it to 700 or choose another path"),
        ),
        shared if shared & 0o1000 != 0 => {
            refused(dir, "is shared with others (sticky); put the socket into a directory of its own")
        }
        open if is_shared(dir, &found) => {
            refused(dir, format!("has mode {open:03o} and is not toold's alone; use a directory of its own below it"))
        }
        // Ours, but too open: narrowed before anything is put there.
        open => {
            let (path, had) = (dir.display(), format!("{open:03o}"));
            tracing::warn!(%path, had, now = "700", "changed the mode: only the owner may reach toold");
            std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(io_error("close", dir))
        }
    }
}

/// Returns true for a directory that others rely on: a home, a top-level directory, the root of a file system.
fn is_shared(dir: &Path, found: &std::fs::Metadata) -> bool {
    let home = std::env::var_os("HOME").is_some_and(|home| Path::new(&home) == dir);
    let top = dir.components().count() <= 2;
    let mount = dir.parent().and_then(|p| std::fs::metadata(p).ok()).is_some_and(|p| p.dev() != found.dev());
    home || top || mount
}

/// Opens or creates the lock file. Moves anything else of its name out of the way: a link would lead to a file of another
/// program, which would be overwritten.
fn open_lock(path: &Path, damage: &mut Vec<String>) -> io::Result<File> {
    let open = || open_regular(path, File::options().read(true).write(true).create(true).truncate(false).mode(0o600));
    match open() {
        Err(e) if can_pass(&e) => Err(e),
        Err(e) => {
            std::fs::rename(path, quarantine_path(path))?;
            damage.push(format!("{} was not a lock file and was renamed: {e}", path.display()));
            open()
        }
        opened => opened,
    }
}

/// Files in the events' directory that every daemon of this version writes at its first start, and no earlier version.
const MARKER_FILES: [&str; 2] = ["manifest", "consumers/names"];
/// Files that are never empty or gone once a marker exists.
const OTHER_FILES: [&str; 1] = ["breaker"];

/// Returns descriptions of files in the events' directory that an earlier start has written and that are gone now. Called
/// before anything is opened.
pub fn missing_files(events: &Path) -> Vec<String> {
    let is_there =
        |name: &&str| std::fs::symlink_metadata(events.join(name)).is_ok_and(|meta| meta.len() > 0 || !meta.is_file());
    if !MARKER_FILES.into_iter().any(|name| is_there(&name)) {
        return Vec::new();
    }
    let gone = MARKER_FILES.into_iter().chain(OTHER_FILES).filter(|name| !is_there(name));
    gone.map(|name| format!("{} is gone; it was written again", events.join(name).display())).collect()
}

/// The lock on the state directory.
pub struct StateLock {
    dir: PathBuf,
    damage: Vec<String>,
    _file: File,
}

impl StateLock {
    pub fn take(dir: &Path) -> Result<StateLock, StartError> {
        private_dir(dir)?;
        let path = dir.join("lock");
        let mut damage = Vec::new();
        let mut file = open_lock(&path, &mut damage).map_err(io_error("open", &path))?;
        let until = Instant::now() + LOCK_TIMEOUT;
        while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            let holder = holder.trim();
            // A child of a dead daemon also has the lock, until it executes its program. This is a poll: `flock` with a
            // timeout does not exist.
            let lives = holder.is_empty() || Path::new("/proc").join(holder).exists();
            if lives || Instant::now() >= until {
                return refused(dir, format!("another toold (pid {holder}) has this state directory"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io_error("write", &path))?;
        let procs = dir.join("procs");
        private_dir(&procs)?;
        Ok(StateLock { dir: dir.into(), damage, _file: file })
    }

    /// Returns descriptions of damage to the lock file.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Stores the path of the socket for clients: they cannot see the daemon's descriptors.
    pub fn store_socket(&self, socket: &Path) -> Result<(), StartError> {
        // Not renamed into place: a crash leaves no second file, and a client that finds this one empty looks elsewhere.
        let path = self.dir.join("socket");
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(socket.as_os_str().as_bytes())).map_err(io_error("write", &path))
    }

    pub fn procs_dir(&self) -> PathBuf {
        self.dir.join("procs")
    }

    pub fn events_dir(&self) -> PathBuf {
        self.dir.join("events")
    }
}
