//! The ends and stops of children.

use super::{Result, check};
use libc::c_int;

/// A child that ended, stopped or continues.
#[derive(Debug, PartialEq, Eq)]
pub struct Reaped {
    pub pid: i32,
    pub status: i32,
    pub cpu_us: u64,
    pub max_rss_kib: u64,
}

impl Reaped {
    /// Returns the state of a child that has not ended: stopped or not.
    pub fn stopped(&self) -> Option<bool> {
        (libc::WIFSTOPPED(self.status) || libc::WIFCONTINUED(self.status)).then(|| libc::WIFSTOPPED(self.status))
    }
}

/// Reaps the next child that ended: `Ok(None)` when there are children but none has, ECHILD when there is none.
pub fn reap() -> Result<Option<Reaped>> {
    wait_child(libc::WNOHANG)
}

/// Like `reap`, and returns children that stopped or continue too: only the latest change of each, once.
pub fn reap_or_stopped() -> Result<Option<Reaped>> {
    wait_child(libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED)
}

/// Waits for the end of a child, and reaps it.
pub fn reap_blocking() -> Result<Option<Reaped>> {
    wait_child(0)
}

fn wait_child(flags: c_int) -> Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    let pid = check(unsafe { libc::wait4(-1, &mut status, flags, &mut usage) })?;
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    Ok((pid > 0).then(|| Reaped {
        pid,
        status,
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss as u64,
    }))
}

/// Returns the next child that was stopped, each stop once. None: there is none.
pub fn next_stopped_child() -> Option<i32> {
    // SAFETY: siginfo is plain numbers, for which all zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local.
    check(unsafe { libc::waitid(libc::P_ALL, 0, &mut info, libc::WSTOPPED | libc::WNOHANG) }).ok()?;
    // SAFETY: the call filled in a child, or left all zero.
    let pid = unsafe { info.si_pid() };
    (pid > 0).then_some(pid)
}
