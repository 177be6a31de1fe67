//! Tries what the next start of the daemon will do: read its config, and write where it keeps its files.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The bytes that are written for a try: one block, so that a full disk is noticed.
const TRIED_BYTES: [u8; 4096] = [0; 4096];

/// A config file, and the reason why the daemon refuses it.
pub struct Config {
    pub path: Option<PathBuf>,
    pub error: Option<String>,
}

impl Config {
    /// Has the daemon's program check the file: the one of `--config`, else the one that the running daemon was started with, else
    /// the default. None: there is no program, or it cannot be run.
    pub fn check(program: Option<&Path>, given: Option<&Path>, running: Option<&str>) -> Option<Config> {
        let running = running.map(Path::new).filter(|path| path.exists());
        let named = given.or(running);
        let mut command = Command::new(program?);
        command.arg("--check-config").stdin(Stdio::null());
        if let Some(path) = named {
            command.arg("--config").arg(path);
        }
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let text = text.trim().strip_prefix("toold: ").unwrap_or(text.trim());
        let path = named.map(Path::to_path_buf).or_else(toold_proto::paths::config);
        Some(Config { path, error: (!output.status.success()).then(|| text.to_owned()) })
    }
}

/// The directories above one that the daemon makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    Made,
    Needed,
}

/// Writes into a directory, or where it will be made, and leaves nothing behind. Returns the error.
pub fn write_error(dir: &Path, parents: Parents) -> Option<String> {
    let place = dir.ancestors().find(|place| place.exists())?;
    if parents == Parents::Needed && place != dir && Some(place) != dir.parent() {
        let missing = dir.parent().unwrap_or(dir);
        return Some(format!("{} does not exist", missing.display()));
    }
    let error = try_write(place).err()?;
    Some(format!("cannot write in {}: {error}", place.display()))
}

fn try_write(dir: &Path) -> io::Result<()> {
    let unnamed = OpenOptions::new().write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(dir);
    match unnamed {
        Ok(mut file) => file.write_all(&TRIED_BYTES),
        // The file system has no files without names.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) => {
            let path = dir.join(format!(".toolctl-doctor-{}", std::process::id()));
            let written = File::create_new(&path)?.write_all(&TRIED_BYTES);
            std::fs::remove_file(&path).and(written)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_leaves_nothing_behind_and_finds_a_place_that_cannot_be_written() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(write_error(&dir.path().join("a/b"), Parents::Made), None);
        assert_eq!(write_error(&dir.path().join("a"), Parents::Needed), None);
        let missing = write_error(&dir.path().join("a/b"), Parents::Needed).expect("its parent is missing");
        assert!(missing.ends_with("/a does not exist"), "{missing}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0);
        let denied = write_error(Path::new("/proc/toold"), Parents::Made).expect("no file is made there");
        assert!(denied.starts_with("cannot write in /proc: "), "{denied}");
    }
}
