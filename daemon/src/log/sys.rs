//! The three things the writer asks of the disk, relative to a directory descriptor, without allocating.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat, write};
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Where segments are written. A trait so that tests can be a disk that refuses.
pub trait Files {
    fn create(&mut self, name: &CStr) -> Result<OwnedFd, Errno>;
    /// As `write(2)`: may take less than all of it.
    fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno>;
    /// A failure leaves nothing to do: the name is gone already, or the disk is.
    fn remove(&mut self, name: &CStr);
}

/// The files of one process directory.
#[derive(Debug)]
pub struct Dir(RawFd);

impl Dir {
    pub(super) const fn new(dir: RawFd) -> Dir {
        Dir(dir)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the shim opens its directory first and keeps it open until it exits, as `LogWriter::new` asks.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl Files for Dir {
    fn create(&mut self, name: &CStr) -> Result<OwnedFd, Errno> {
        // Not through a link that somebody put there, and never onto what is there already.
        let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        loop {
            match openat(self.fd(), name, flags, Mode::S_IRUSR | Mode::S_IWUSR) {
                Err(Errno::EINTR) => {}
                opened => return opened,
            }
        }
    }

    fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        loop {
            match write(fd, bytes) {
                Err(Errno::EINTR) => {}
                written => return written,
            }
        }
    }

    fn remove(&mut self, name: &CStr) {
        let _ = unlinkat(self.fd(), name, UnlinkatFlags::NoRemoveDir);
    }
}
