//! System calls that only the daemon makes, and those that it shares with the shim.

use rustix::fd::OwnedFd;
use std::ffi::c_void;

pub use toold_shim::sys::{has_pidfd_info, own, pidfd_exit_status, pidfd_open, pidfd_signal, start_writeback};

/// Asks the scheduler for short turns for this thread: it waits less for one, and has no more of the CPU.
/// Kernels before 6.12 take no notice.
pub fn set_short_timeslice() {
    set_timeslice(SHORT_TIMESLICE_NS);
}

/// The shortest that the kernel grants.
const SHORT_TIMESLICE_NS: u64 = 100_000;

/// 0 nanoseconds: as long as everybody's.
fn set_timeslice(ns: u64) {
    // SAFETY: sched_attr is plain numbers, for which all zero is a value; the kernel writes at most its size.
    unsafe {
        let mut attr: libc::sched_attr = std::mem::zeroed();
        let size = size_of::<libc::sched_attr>() as u32;
        if libc::syscall(libc::SYS_sched_getattr, 0, &mut attr, size, 0) == 0
            && attr.sched_policy == libc::SCHED_OTHER as u32
        {
            attr.sched_runtime = ns;
            libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0);
        }
    }
}

/// Makes the allocator give large buffers back at once. By itself glibc learns from the first ones to keep
/// them, and a daemon that once answered a hundred readers at a time would stay as large as it was then.
pub fn tune_malloc() {
    // The size is above what the usual page of output needs, so that only unusual ones cost a mapping.
    #[cfg(target_env = "gnu")]
    for (number, value) in [(libc::M_MMAP_THRESHOLD, 256 * 1024), (libc::M_ARENA_MAX, 2)] {
        // SAFETY: it only sets a number of the allocator's, before there is a second thread.
        unsafe { libc::mallopt(number, value) };
    }
}

/// The version of Landlock that the kernel speaks; 0 for none.
pub fn landlock_abi() -> i64 {
    const LANDLOCK_CREATE_RULESET: libc::c_long = 444;
    // SAFETY: with the version flag the call takes a null pointer and a zero size.
    let abi = unsafe { libc::syscall(LANDLOCK_CREATE_RULESET, std::ptr::null::<c_void>(), 0usize, 1u32) };
    abi.max(0)
}

/// An owned descriptor in tokio's event loop. None when it cannot be polled.
pub fn pollable(fd: OwnedFd) -> Option<tokio::io::unix::AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, stays the same, and is closed only after its registration is dropped.
    unsafe { tokio::io::unix::AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE) }.ok()
}
