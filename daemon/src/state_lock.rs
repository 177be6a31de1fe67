//! The lock on the state directory: one daemon at a time, also after its lock file was removed.
//!
//! Two locks are held. The one on the directory itself cannot be removed; the one on the file `lock` keeps out daemons of
//! earlier versions, and works on file systems that do not lock directories (NFS). The file holds the pid, and a second
//! line once the daemon is ending.

use crate::events::{can_pass, open_regular, quarantine_path};
use crate::state_dir::{StartError, io_error, is_state_entry, private_dir, refused, with_setting};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time that the last child of a dead daemon may hold its lock.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that a daemon which is ending may take: it writes what is not on disk yet. A client waits longer for the next one.
const ENDING_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause between two tries: `flock` with a timeout does not exist.
const RETRY_DELAY: Duration = Duration::from_millis(5);
/// Second line of the file of a daemon that is ending.
const ENDING: &str = "ending";

pub struct StateLock {
    dir: PathBuf,
    file: Mutex<File>,
    damage: Mutex<Vec<String>>,
    /// None where directories cannot be locked.
    _dir_lock: Option<File>,
}

impl StateLock {
    /// Takes both locks. Waits for a daemon that is ending, and for the last child of a dead one.
    pub fn take(dir: &Path) -> Result<StateLock, StartError> {
        let setting = |error| with_setting(error, "TOOLD_STATE_DIR");
        private_dir(dir, is_state_entry).map_err(setting)?;
        let (begin, mut damage) = (Instant::now(), Vec::new());
        let (dir_lock, file) = loop {
            match try_both(dir, &mut damage).map_err(setting)? {
                Attempt::Locked(dir_lock, file) => break (dir_lock, file),
                Attempt::Replaced => {}
                Attempt::Held => {
                    let holder = Holder::read(&lock_path(dir));
                    if begin.elapsed() >= holder.timeout(is_alive) {
                        return refused(dir, holder.refusal());
                    }
                    std::thread::sleep(RETRY_DELAY);
                }
            }
        };
        write_pid(&file).map_err(io_error("write", &lock_path(dir))).map_err(setting)?;
        private_dir(&dir.join("procs"), |_| true).map_err(setting)?;
        Ok(StateLock { dir: dir.into(), file: Mutex::new(file), damage: Mutex::new(damage), _dir_lock: dir_lock })
    }

    /// Records that this daemon is ending, so that the next one waits for it.
    pub fn mark_ending(&self) {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Without the line the next daemon refuses to start instead of waiting, which its client tries again.
        let _ = writeln!(&*file, "{ENDING}");
    }

    /// Creates the file again if it was removed. Returns true if it did.
    pub fn restore_file(&self) -> Result<bool, StartError> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let path = lock_path(&self.dir);
        if is_at(&held, &path).map_err(io_error("look at", &path))? {
            return Ok(false);
        }
        let mut damage = Vec::new();
        let file = open_own(&path, &mut damage).map_err(io_error("open", &path))?;
        damage.iter().for_each(|damage| tracing::warn!(damage));
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return refused(&path, "another process has locked it");
        }
        write_pid(&file).map_err(io_error("write", &path))?;
        *held = file;
        Ok(true)
    }

    /// Returns descriptions of damage to the lock file and the stored path of the socket.
    pub fn damage(&self) -> Vec<String> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the path of the socket for clients: they cannot see the daemon's descriptors.
    pub fn store_socket(&self, socket: &Path) -> Result<(), StartError> {
        // Not renamed into place: a crash leaves no second file, and a client that finds this one empty looks elsewhere.
        let path = self.dir.join("socket");
        let mut damage = Vec::new();
        let file = open_own(&path, &mut damage).and_then(|file| file.set_len(0).map(|()| file));
        let written = file.and_then(|mut file| file.write_all(socket.as_os_str().as_bytes()));
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).extend(damage);
        written.map_err(io_error("write", &path))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn procs_dir(&self) -> PathBuf {
        self.dir.join("procs")
    }

    pub fn events_dir(&self) -> PathBuf {
        self.dir.join("events")
    }
}

/// The result of one try.
enum Attempt {
    Locked(Option<File>, File),
    /// Another process has one of them.
    Held,
    /// The file was removed between its opening and its lock.
    Replaced,
}

fn try_both(dir: &Path, damage: &mut Vec<String>) -> Result<Attempt, StartError> {
    let opened = File::open(dir).map_err(io_error("open", dir))?;
    let dir_lock = match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(opened),
        Err(Errno::WOULDBLOCK) => return Ok(Attempt::Held),
        // The file decides.
        Err(_) => None,
    };
    let path = lock_path(dir);
    let file = open_own(&path, damage).map_err(io_error("open", &path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Attempt::Held),
        Err(e) => {
            let e = io::Error::from(e);
            return refused(
                &path,
                format!("file locks do not work there: {e}; set TOOLD_STATE_DIR to a directory on a local disk"),
            );
        }
    }
    Ok(if is_at(&file, &path).map_err(io_error("look at", &path))? {
        Attempt::Locked(dir_lock, file)
    } else {
        Attempt::Replaced
    })
}

/// The content of a lock file that another daemon holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    pid: Option<u32>,
    is_ending: bool,
}

impl Holder {
    fn read(path: &Path) -> Holder {
        Holder::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Holder {
        let mut lines = text.lines();
        let pid = lines.next().and_then(|line| line.trim().parse().ok());
        Holder { pid, is_ending: lines.next() == Some(ENDING) }
    }

    /// Returns the time to wait for its lock. A daemon that runs keeps it.
    fn timeout(&self, is_alive: impl Fn(u32) -> bool) -> Duration {
        match (self.pid, self.is_ending) {
            (Some(_), true) => ENDING_TIMEOUT,
            (Some(pid), false) if !is_alive(pid) => ORPHAN_TIMEOUT,
            (Some(_) | None, _) => Duration::ZERO,
        }
    }

    fn refusal(&self) -> String {
        let wait = if self.is_ending { " and does not end" } else { "" };
        match self.pid {
            Some(pid) => format!(
                "another toold (pid {pid}) has this state directory{wait}; if it does not answer, `kill {pid}` ends it, and \
                 its processes keep running"
            ),
            None => "another toold has this state directory; `fuser` with this path shows its pid".into(),
        }
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn lock_path(dir: &Path) -> PathBuf {
    dir.join("lock")
}

/// Opens or creates a file to write. Moves anything else of its name out of the way: a link would lead to a file of another
/// program, which would be overwritten.
fn open_own(path: &Path, damage: &mut Vec<String>) -> io::Result<File> {
    let open = || open_regular(path, File::options().read(true).write(true).create(true).truncate(false).mode(0o600));
    match open() {
        Err(e) if can_pass(&e) => Err(e),
        Err(e) => {
            std::fs::rename(path, quarantine_path(path))?;
            damage.push(format!("{} was not a regular file and was renamed: {e}", path.display()));
            open()
        }
        opened => opened,
    }
}

fn write_pid(file: &File) -> io::Result<()> {
    let mut file = file;
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

/// Returns true if the file is the one that the path names.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_runs_is_not_waited_for_and_one_that_ends_or_is_dead_is() {
        let timeout = |text: &str, alive: bool| Holder::parse(text).timeout(|_| alive);
        assert_eq!(timeout("12\n", true), Duration::ZERO);
        assert_eq!(timeout("12\n", false), ORPHAN_TIMEOUT);
        assert_eq!(timeout("12\nending\n", true), ENDING_TIMEOUT);
        assert_eq!((timeout("", true), timeout("x\n", false)), (Duration::ZERO, Duration::ZERO));
        assert!(Holder::parse("12\n").refusal().starts_with("another toold (pid 12) has this state directory; "));
        assert!(Holder::parse("").refusal().starts_with("another toold has this state directory; "));
    }

    #[test]
    fn without_its_file_the_lock_holds_and_the_file_comes_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = StateLock::take(dir.path()).expect("it is free");
        std::fs::remove_file(dir.path().join("lock")).expect("it is there");
        assert!(StateLock::take(dir.path()).is_err(), "two daemons");
        // The second one made the file again, and could not keep it.
        assert!(lock.restore_file().expect("it can be made"));
        assert!(!lock.restore_file().expect("it can be looked at"));
        lock.mark_ending();
        let text = std::fs::read_to_string(dir.path().join("lock")).expect("it is there");
        assert_eq!(text, format!("{}\nending\n", std::process::id()));
        drop(lock);
        drop(StateLock::take(dir.path()).expect("it is free again"));
    }
}
