//! Directories that are private to their owner, and the errors of a start.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

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

/// Adds, to an error about a directory that cannot be written, the setting that chooses another.
pub fn with_setting(error: StartError, setting: &str) -> StartError {
    match error {
        StartError::Io { doing, path, source } => {
            let why = format!("cannot {doing} it: {source}; set {setting} to a place that can be written");
            StartError::Refused { path, why }
        }
        refused @ StartError::Refused { .. } => refused,
    }
}

pub fn refused<T>(path: &Path, why: impl Into<String>) -> Result<T, StartError> {
    Err(StartError::Refused { path: path.into(), why: why.into() })
}

/// Creates a directory that only its owner can enter, or checks that it is one. The mode of one that is too open is changed,
/// unless it holds an entry that is not toold's, by `is_own`: then others may rely on it.
pub fn private_dir(dir: &Path, is_own: impl Fn(&OsStr) -> bool) -> Result<(), StartError> {
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
            refused(dir, "is shared with others (sticky); give toold a directory of its own, for example below it")
        }
        open if is_shared(dir, &found) => {
            refused(dir, format!("has mode {open:03o} and is not toold's alone; use a directory of its own below it"))
        }
        // Ours, but too open: narrowed before anything is put there.
        open => {
            if let Some(other) = foreign_entry(dir, is_own).map_err(io_error("list", dir))? {
                let other = other.display();
                return refused(
                    dir,
                    format!(
                        "has mode {open:03o} and holds {other}, which is not toold's; toold would have to close it to \
                         others: give toold a directory of its own, for example below it, or chmod it to 700"
                    ),
                );
            }
            let (path, had) = (dir.display(), format!("{open:03o}"));
            tracing::warn!(%path, had, now = "700", "changed the mode: only the owner may reach toold");
            std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(io_error("close", dir))
        }
    }
}

/// Returns the name of an entry that is not toold's.
fn foreign_entry(dir: &Path, is_own: impl Fn(&OsStr) -> bool) -> io::Result<Option<OsString>> {
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        if !is_own(&name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns true for a name that toold and toolctl give to what they put into a state directory.
pub fn is_state_entry(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let (name, _) = name.split_once(".damaged-").unwrap_or((name, ""));
    STATE_ENTRIES.contains(&name)
}

/// Returns true for a directory that others rely on: a home, a top-level directory, the root of a file system.
fn is_shared(dir: &Path, found: &std::fs::Metadata) -> bool {
    let home = std::env::var_os("HOME").is_some_and(|home| Path::new(&home) == dir);
    let top = dir.components().count() <= 2;
    let mount = dir.parent().and_then(|p| std::fs::metadata(p).ok()).is_some_and(|p| p.dev() != found.dev());
    home || top || mount
}

/// All that is in a state directory.
const STATE_ENTRIES: [&str; 14] = [
    "lock",
    "socket",
    "procs",
    "stages",
    "events",
    "changes",
    "ready",
    "retention_clock",
    "queues",
    "queues.tmp",
    "approvals",
    "grants",
    "toold.log",
    "toold.log.1",
];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(dir: &Path) -> u32 {
        std::fs::metadata(dir).expect("it is there").mode() & 0o7777
    }

    #[test]
    fn an_open_directory_is_closed_unless_something_else_is_in_it() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("state");
        std::fs::create_dir(&dir).expect("a fresh path");
        for own in ["lock", "socket.damaged-12", "toold.log.1"] {
            std::fs::write(dir.join(own), "").expect("a fresh path");
        }
        for open in [0o755, 0o2775, 0o711] {
            std::fs::set_permissions(&dir, Permissions::from_mode(open)).expect("it is ours");
            private_dir(&dir, is_state_entry).expect("all in it is toold's");
            assert_eq!(mode(&dir), 0o700);
        }
        std::fs::write(dir.join("letter"), "").expect("a fresh path");
        private_dir(&dir, is_state_entry).expect("it is closed already");
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).expect("it is ours");
        let error = private_dir(&dir, is_state_entry).expect_err("others may read the letter").to_string();
        assert!(error.contains("holds letter") && error.contains("a directory of its own"), "{error}");
        assert_eq!(mode(&dir), 0o755);
    }
}
