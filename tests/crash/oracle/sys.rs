//! The kernel's own word on how a process ended, asked without the daemon.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Holds a process so that the kernel can tell its exit after somebody else reaped it.
pub struct Oracle {
    fd: OwnedFd,
}

impl Oracle {
    pub fn open(pid: i32) -> Option<Oracle> {
        // SAFETY: pidfd_open takes two integers and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as RawFd;
        // SAFETY: the kernel just made this descriptor for us, and nobody else has it.
        (fd >= 0).then(|| Oracle { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The exit code as the contract writes it, 128+n for a signal. None until it is reaped.
    pub fn exit_code(&self) -> Option<i64> {
        const EXIT: u64 = 1 << 3;
        // _IOWR(0xFF, 11, 64 bytes): PIDFD_GET_INFO with PIDFD_INFO_EXIT, kernel 6.15 and later.
        const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
        let mut info = [0u64; 16];
        info[0] = EXIT;
        // SAFETY: the kernel writes at most the 64 bytes that the request's number names.
        let rc = unsafe { libc::ioctl(self.fd.as_raw_fd(), PIDFD_GET_INFO, info.as_mut_ptr()) };
        if rc != 0 || info[0] & EXIT == 0 {
            return None;
        }
        // mask, cgroup id, then eleven 32-bit ids; the wait status is the next 32 bits.
        let status = (info[7] >> 32) as i32;
        Some(i64::from(if libc::WIFSIGNALED(status) {
            128 + libc::WTERMSIG(status)
        } else {
            libc::WEXITSTATUS(status)
        }))
    }
}
