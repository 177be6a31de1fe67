//! The start of a program: a child that shares our memory until it execs.

use super::{IGNORED_SIGNALS, Result, check, default_signal, exit};
use rustix::fd::RawFd;
use rustix::io::Errno;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use toold_format::step;

/// What a child does between fork and exec. All pointers stay valid until it has exec'd.
pub struct ChildPlan {
    pub stdin: RawFd,
    pub stdout: RawFd,
    pub stderr: RawFd,
    pub terminal: bool,
    pub cwd: *const c_char,
    pub program: *const c_char,
    pub argv: *const *const c_char,
    pub env: *const *const c_char,
    /// Files to write "0" to, ended by null.
    pub cgroups: *const *const c_char,
    /// What must be on the disk before the program runs. Below 0: nothing.
    pub record: RawFd,
    pub parent: i32,
    /// Where it failed.
    pub step: u32,
    pub errno: i32,
}

/// Starts a child that shares our memory until it execs, so that neither page tables nor an error pipe are
/// needed. `while_child_starts` is done beside it, and must leave errno alone: there is one for both. Returns its pid once it runs
/// the program, or once it failed (see `plan.step`).
pub fn spawn(plan: &mut ChildPlan, stack: &mut [u8], while_child_starts: impl FnOnce(i32)) -> Result<i32> {
    let top = stack.as_mut_ptr_range().end;
    let aligned = (top as usize & !15) as *mut c_void;
    // The kernel sets `busy` to 0 and wakes us when the child leaves our memory, by an exec or by its end.
    let busy = AtomicU32::new(1);
    let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    let null = std::ptr::null_mut::<c_void>();
    let plan: *mut ChildPlan = plan;
    // SAFETY: we do not leave before the child has left our memory, so `plan`, `stack` and `busy` outlive its use of
    // them; nothing reads or writes the plan while_child_starts; the child only makes system calls.
    let pid = check(unsafe { libc::clone(child_main, aligned, flags, plan.cast(), null, null, busy.as_ptr()) })?;
    while_child_starts(pid);
    while busy.load(Ordering::Acquire) != 0 {
        let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        let woken = rustix::thread::futex::wait(&busy, rustix::thread::futex::Flags::empty(), 1, Some(&second));
        if woken == Err(Errno::TIMEDOUT) && has_ended(pid) {
            break;
        }
    }
    Ok(pid)
}

/// Whether a child has ended; it is left to be reaped. A kernel before 5.16 does not say `busy` of one that dumps core.
fn has_ended(pid: i32) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = Pid::from_raw(pid) else { return true };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a live ChildPlan and waits.
    let plan = unsafe { &mut *plan.cast::<ChildPlan>() };
    let failed = exec_child(plan);
    plan.step = failed;
    plan.errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    exit(127)
}

/// Runs the plan up to the exec. Comes back only with the step that failed, errno untouched since.
fn exec_child(plan: &ChildPlan) -> u32 {
    // SAFETY: only system calls on numbers and on strings that the ChildPlan keeps alive.
    unsafe {
        if libc::setsid() < 0 {
            return step::SESSION;
        }
        // A program without its shim would be a ghost: nobody could see its output or its end.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != plan.parent {
            return step::SESSION;
        }
        if plan.terminal && libc::ioctl(plan.stdin, libc::TIOCSCTTY, 0) < 0 {
            return step::TERMINAL;
        }
        for (fd, at) in [(plan.stdin, 0), (plan.stdout, 1), (plan.stderr, 2)] {
            if libc::dup2(fd, at) < 0 {
                return step::STDIO;
            }
        }
        let mut cgroup = plan.cgroups;
        while !(*cgroup).is_null() {
            let fd = libc::open(*cgroup, libc::O_WRONLY | libc::O_CLOEXEC);
            if fd < 0 || libc::write(fd, c"0".as_ptr().cast(), 1) != 1 {
                return step::CGROUP;
            }
            cgroup = cgroup.add(1);
        }
        if libc::chdir(plan.cwd) < 0 {
            return step::CHDIR;
        }
        // The others are at their default since the shim began, see `default_signals`.
        IGNORED_SIGNALS.into_iter().for_each(default_signal);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if plan.record >= 0 && libc::fdatasync(plan.record) < 0 {
            return step::RECORD;
        }
        libc::execve(plan.program, plan.argv, plan.env);
        step::EXEC
    }
}
