//! Questions about namespaces and mounts.

use super::{Result, check, own};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};

/// Opens the user namespace that owns a namespace.
pub fn owner_of_namespace(namespace: BorrowedFd<'_>) -> Result<OwnedFd> {
    // _IO(0xb7, 1)
    const NS_GET_USERNS: libc::c_ulong = 0xb701;
    // SAFETY: the request takes no argument.
    let fd = check(unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS as _) })?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { own(fd) })
}

/// Notices changes of the mounts of this process's namespace.
pub struct MountWatch {
    file: Option<OwnedFd>,
}

impl MountWatch {
    pub fn new() -> MountWatch {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        MountWatch { file: rustix::fs::open(c"/proc/self/mountinfo", flags, Mode::empty()).ok() }
    }

    /// Checks for a change since the last look. Without /proc it always assumes one. The look itself resets it, so this is
    /// for one owner.
    pub fn has_changed(&self) -> bool {
        let Some(file) = &self.file else { return true };
        let mut fds = [PollFd::new(file, PollFlags::PRI)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut fds, Some(&now)), Ok(0))
    }
}

impl Default for MountWatch {
    fn default() -> MountWatch {
        MountWatch::new()
    }
}
