//! Disk operations of the journal's writer. A trait, so that tests can replace the disk by one that fails.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Creates a file for appending and reading. Fails if it exists.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Writes like `write(2)`: possibly less than all bytes.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&self, file: &File, len: u64) -> io::Result<()>;
}

/// The real file system.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).append(true).create_new(true).mode(0o600).open(path)
    }
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match file.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }
    fn truncate(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }
}

/// Opens a regular file and nothing else: a pipe would block, a link would lead elsewhere. Makes a file readable whose
/// mode another program changed: the files in the state directory belong to its owner.
pub fn open_regular(path: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied && std::fs::symlink_metadata(path)?.is_file() => {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
            options.open(path)
        }
        opened => opened,
    }?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Returns the path under which a damaged file is quarantined.
pub fn quarantine_path(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".damaged-{}", std::process::id()));
    name.into()
}

/// Ignores that a file is gone: its segment was dropped or its consumer expired in the meantime.
pub fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Moves a damaged file, or whatever has its name, out of the way.
pub fn quarantine(path: &Path, damage: &mut Vec<String>) {
    if let Err(e) = std::fs::rename(path, quarantine_path(path)) {
        damage.push(format!("rename {}: {e}", path.display()));
    }
}

/// Returns true for an error that is not about the file: a lack of descriptors, memory or space. The file may be intact,
/// so it is not quarantined.
pub fn can_pass(e: &io::Error) -> bool {
    let lacks = [libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::ETIMEDOUT, libc::ESTALE];
    crate::sys::is_transient(e) || e.raw_os_error().is_some_and(|code| lacks.contains(&code))
}

/// Replaces the file at `path` atomically.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all_at(bytes, 0).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}
