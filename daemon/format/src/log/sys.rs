//! The file operations of the writer, relative to a directory descriptor, without allocating.

use super::index::{SegmentName, parse_log_name};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstat, ftruncate, openat, unlinkat};
use rustix::io::{Errno, write};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The files of a log. A trait, so that tests can be a disk that refuses.
pub trait Files {
    fn create(&mut self, name: &CStr) -> Result<OwnedFd, Errno>;
    /// Writes as `write(2)` does: it may take less than all of it.
    fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno>;
    /// Reserves blocks for bytes to come, which makes their writing cheaper. The file keeps its length.
    fn reserve(&mut self, fd: &OwnedFd, from: u64, len: u64) -> Result<(), Errno>;
    /// Releases the blocks that were reserved beyond the end of the file.
    fn release(&mut self, fd: &OwnedFd);
    /// Removes a file. A failure leaves nothing to do: the name is gone already, or the disk is.
    fn remove(&mut self, name: &CStr);
}

/// The files of one process directory.
#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    pub const fn new(dir: OwnedFd) -> Dir {
        Dir(dir)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Files for Dir {
    fn create(&mut self, name: &CStr) -> Result<OwnedFd, Errno> {
        // Not through a link that another process put there, and never onto an existing file.
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            match openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::INTR) => {}
                opened => return opened,
            }
        }
    }

    fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        loop {
            match write(fd, bytes) {
                Err(Errno::INTR) => {}
                written => return written,
            }
        }
    }

    fn reserve(&mut self, fd: &OwnedFd, from: u64, len: u64) -> Result<(), Errno> {
        fallocate(fd, FallocateFlags::KEEP_SIZE, from, len)
    }

    fn release(&mut self, fd: &OwnedFd) {
        // To the length that it has, not to one that we remember: no byte can be lost by this.
        // If it fails, the blocks stay with the file until that is removed.
        let _ = fstat(fd).and_then(|stat| ftruncate(fd, stat.st_size as u64));
    }

    fn remove(&mut self, name: &CStr) {
        let _ = unlinkat(&self.0, name, AtFlags::empty());
    }
}

/// Releases the blocks that a killed writer had reserved in the directory `dir`: only its last segment can have any.
pub fn release_reserved(dir: &Path) -> io::Result<()> {
    let starts = std::fs::read_dir(dir)?.filter_map(|entry| parse_log_name(entry.ok()?.file_name().as_bytes()));
    let Some(last) = starts.max() else { return Ok(()) };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let path = dir.join(SegmentName::log(last).as_str());
    let file = File::options().write(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.blocks() * 512 > found.len() { file.set_len(found.len()) } else { Ok(()) }
}
