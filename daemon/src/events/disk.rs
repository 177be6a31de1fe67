//! What the journal's writer asks of the disk. A trait so that tests can be a disk that refuses.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub trait Disk: Send + Sync + std::fmt::Debug {
    /// A new file to append to and to read. Never one that is there already.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// As `write(2)`: may take less than all of it.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&self, file: &File, len: u64) -> io::Result<()>;
}

/// The disk there is.
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

/// Opens a regular file, and only that: a pipe would make us wait, a link would lead elsewhere.
pub fn open_regular(path: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// The name that something damaged is put aside under.
pub fn quarantine_path(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".damaged-{}", std::process::id()));
    name.into()
}
