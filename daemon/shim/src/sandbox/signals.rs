//! Signals between the jobs of one session. Landlock keeps the signals of a job inside it; one that is meant for another job
//! of its session is sent here, on its behalf.

use crate::sys::{self, own_pid};
use crate::tree::{self, ProcPath};
use libc::{c_int, c_long};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::Write;
use toold_format::sandbox::FileId;

/// The most ancestors that are looked at.
const MAX_DEPTH: usize = 128;
/// Sends to the whole group of a process. Linux 6.9 and later.
const SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;

/// Returns true for a call that signals.
pub fn is_signal(call: &libc::seccomp_notif) -> bool {
    [libc::SYS_kill, libc::SYS_pidfd_send_signal].contains(&c_long::from(call.data.nr))
}

/// Sends the signal of a call if it is for another job of the session. None: the kernel decides on it.
pub fn relay(call: &libc::seccomp_notif, session: FileId) -> Option<Result<(), Errno>> {
    let args = &call.data.args;
    let (signal, is_group, pid) = match c_long::from(call.data.nr) {
        libc::SYS_kill => {
            let target = args[0] as c_int;
            (args[1] as c_int, target < 0, target.checked_abs()?)
        }
        // With information or flags it is the program's own matter.
        _ if args[2] == 0 && args[3] as u32 == 0 => (args[1] as c_int, false, pid_behind(call.pid, args[0] as c_int)?),
        _ => return None,
    };
    if is_own(pid) {
        return None;
    }
    let target = sys::pidfd_open(pid).ok()?;
    // It is alive after it was looked at: nothing else had its number meanwhile.
    (is_in(pid, session) && sys::pidfd_signal(target.as_fd(), 0).is_ok()).then_some(())?;
    match is_group {
        false => Some(sys::pidfd_signal(target.as_fd(), signal)),
        true => match signal_group_of(&target, signal) {
            Err(Errno::INVAL) => None,
            sent => Some(sent),
        },
    }
}

/// Returns true for a process of this shim's own job.
fn is_own(pid: i32) -> bool {
    let (own, mut at) = (own_pid(), pid);
    for _ in 0..MAX_DEPTH {
        match tree::stat(at) {
            Some(stat) if stat.ppid == own => return true,
            Some(stat) if stat.ppid > 1 => at = stat.ppid,
            _ => return false,
        }
    }
    false
}

/// Returns true if the `/tmp` of a process is that of the session. No process outside of its jobs has it.
fn is_in(pid: i32, session: FileId) -> bool {
    let mut path = [0u8; 40];
    let Ok(()) = write!(&mut path[..], "/proc/{pid}/root/tmp\0") else { return false };
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return false };
    let found = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileId { dev: found.st_dev, ino: found.st_ino } == session)
}

/// Returns the process that a descriptor of another process refers to.
fn pid_behind(of: u32, fd: c_int) -> Option<i32> {
    let mut text = [0u8; 1024];
    let path = ProcPath::new().text(b"/proc/").number(of as i32).text(b"/fdinfo/").number(fd);
    let len = path.read(&mut text);
    let mut lines = text[..len].split(|byte| *byte == b'\n');
    let pid = lines.find_map(|line| tree::number(line.strip_prefix(b"Pid:")?.trim_ascii()))?;
    (fd >= 0 && pid > 0).then_some(pid)
}

fn signal_group_of(leader: &OwnedFd, signal: c_int) -> Result<(), Errno> {
    let (fd, none) = (leader.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: an open descriptor, plain numbers, and no information.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, SIGNAL_PROCESS_GROUP) };
    sys::check(sent as c_int).map(drop)
}
