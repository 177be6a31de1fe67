//! The private `/tmp` of a session: a directory in the state directory. Jobs without a session share one.

use super::plan::Judged;
use sha2::{Digest, Sha256};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use toold_shim::hooks;

/// The directory in the state directory that has them.
pub const DIR: &str = "tmp";
/// The name of that of jobs without a session.
const ANONYMOUS: &str = "anonymous";
/// The beginning of the name of one that is being removed.
const REMOVED: &str = "removed-";

/// Returns the path for a session.
fn path(state_dir: &Path, session: Option<&str>) -> PathBuf {
    let name = session.map_or_else(
        || ANONYMOUS.to_string(),
        |key| Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect(),
    );
    state_dir.join(DIR).join(name)
}

/// Opens the directory of a session, and makes it if it is not there.
pub fn open(state_dir: &Path, session: Option<&str>) -> Result<Judged, (PathBuf, io::Error)> {
    let path = path(state_dir, session);
    let make = |dir: &Path| match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    let opened = Judged::open(&path).or_else(|_| {
        make(&state_dir.join(DIR))?;
        make(&path)?;
        Judged::open(&path)
    });
    opened.map_err(|source| (path, source))
}

/// Takes the directory of a session away from its name, and removes it. A job that begins meanwhile gets a new one. It waits
/// for the disk.
pub fn remove(state_dir: &Path, session: Option<&str>) -> io::Result<()> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let aside = state_dir.join(DIR).join(format!("{REMOVED}{:016x}", u64::from_le_bytes(random)));
    match std::fs::rename(path(state_dir, session), &aside) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    hooks::at("session.tmp_aside");
    std::fs::remove_dir_all(&aside)
}

/// Removes what an earlier daemon began to remove. It waits for the disk.
pub fn remove_rest(state_dir: &Path) {
    let Ok(entries) = std::fs::read_dir(state_dir.join(DIR)) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(REMOVED)) {
        if let Err(e) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %e, "failed to remove the /tmp of a session");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_session_has_one_directory_until_it_ends_and_another_afterwards() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let state = dir.path().canonicalize().expect("resolvable");
        let first = open(&state, Some("../a session")).expect("made");
        let mode = std::fs::metadata(&first.path).expect("there").permissions().mode();
        assert_eq!((mode & 0o777, first.path.parent()), (0o700, Some(state.join(DIR).as_path())));
        assert!(first.is_same(&open(&state, Some("../a session")).expect("there")));
        assert!(!first.is_same(&open(&state, None).expect("made")));
        std::fs::write(first.path.join("file"), "x").expect("writable");
        remove(&state, Some("../a session")).expect("removed");
        assert!(!first.path.exists());
        remove(&state, Some("never used")).expect("nothing to do");
        std::fs::create_dir(state.join(DIR).join("removed-1")).expect("writable");
        remove_rest(&state);
        let names: Vec<_> =
            std::fs::read_dir(state.join(DIR)).expect("there").flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, [ANONYMOUS]);
        let again = open(&state, Some("../a session")).expect("made");
        assert!(!first.is_same(&again));
    }
}
