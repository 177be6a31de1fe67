//! Disk operations of the journal's writer. A trait, so that tests can replace the disk by one that fails.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
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

/// Opens a regular file and nothing else: a pipe would block, a link would lead elsewhere.
pub fn open_regular(path: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
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
