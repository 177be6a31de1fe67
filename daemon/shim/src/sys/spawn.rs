//! Starts a program in a child that shares our memory until it execs.

use super::{IGNORED_SIGNALS, Result, check, default_signal, exit, last_errno};
use crate::sandbox::ChildSandbox;
use rustix::fd::{BorrowedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use toold_format::{slots, step};

/// The steps of a child between fork and exec, and the step that failed.
pub struct ChildPlan<'a> {
    pub stdin: RawFd,
    pub stdout: RawFd,
    pub stderr: RawFd,
    /// Stdin is a terminal that becomes the controlling one.
    pub is_pty: bool,
    pub cwd: &'a CStr,
    /// Its confinement before it runs the program.
    pub confinement: Option<&'a ChildSandbox<'a>>,
    pub program: &'a CStr,
    /// Arguments, ended by null.
    pub argv: *const *const c_char,
    /// Environment, ended by null.
    pub env: *const *const c_char,
    /// Files to write "0" to, ended by null.
    pub cgroups: *const *const c_char,
    /// The record of the process. A note in it cancels the start.
    pub record: Option<BorrowedFd<'a>>,
    /// The record must be durable before the program runs.
    pub sync: bool,
    pub parent: i32,
    /// The step that failed, with its error.
    pub failed: Option<(u32, Errno)>,
}

/// Starts a child that shares our memory until it execs, so that neither page tables nor an error pipe are
/// needed. `while_child_starts` runs beside it. Returns the child's pid once it runs the program, or once it failed (see
/// `plan.failed`).
///
/// # Safety
///
/// `argv`, `env` and `cgroups` of the plan are lists of C strings, each list ended by null, all valid until this returns.
/// `stdin`, `stdout` and `stderr` are open when the child is forked; `while_child_starts` may close them.
/// `stack` is large enough for the child, which makes system calls and no deep calls: 16 KiB are plenty.
/// `while_child_starts` leaves errno alone: there is one for both.
pub unsafe fn spawn(plan: &mut ChildPlan<'_>, stack: &mut [u8], while_child_starts: impl FnOnce(i32)) -> Result<i32> {
    let top = stack.as_mut_ptr_range().end;
    let aligned = (top as usize & !15) as *mut c_void;
    // The kernel sets `busy` to 0 and wakes us when the child leaves our memory, by an exec or by its end.
    let busy = AtomicU32::new(1);
    let flags = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    let null = std::ptr::null_mut::<c_void>();
    let plan: *mut ChildPlan<'_> = plan;
    // SAFETY: we do not leave before the child has left our memory, so `plan`, `stack` and `busy` outlive its use of
    // them; nothing reads or writes the plan meanwhile; the child only makes system calls.
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

/// Checks whether a child has ended, and leaves it to be reaped. A kernel before 5.16 does not clear `busy` for a child
/// that dumps core.
pub fn has_ended(pid: i32) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(pid) = Pid::from_raw(pid) else { return true };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a live plan, does not touch it meanwhile, and waits.
    let plan = unsafe { &mut *plan.cast::<ChildPlan<'_>>() };
    // SAFETY: the caller of `spawn` promised valid lists.
    plan.failed = Some(unsafe { exec_child(plan) });
    exit(127)
}

/// Runs the plan up to the exec. Returns only with the step that failed.
///
/// # Safety
///
/// The lists of the plan are valid, as `spawn` asks.
unsafe fn exec_child(plan: &ChildPlan<'_>) -> (u32, Errno) {
    // SAFETY: the same lists.
    if let Err(failed) = unsafe { set_up_child(plan) } {
        return failed;
    }
    // Here and no earlier: a kill that finds no child of this shim is noted by now, and one that comes later finds us.
    if plan.record.is_some_and(is_canceled) {
        return (step::LAUNCH, Errno::CANCELED);
    }
    // SAFETY: a C string and two lists of C strings ended by null.
    unsafe { libc::execve(plan.program.as_ptr(), plan.argv, plan.env) };
    (step::EXEC, last_errno())
}

/// Makes this child what the program expects to be.
///
/// # Safety
///
/// `plan.cgroups` is valid, as `spawn` asks.
unsafe fn set_up_child(plan: &ChildPlan<'_>) -> std::result::Result<(), (u32, Errno)> {
    let at = |step: u32| move |errno: Errno| (step, errno);
    rustix::process::setsid().map_err(at(step::SESSION))?;
    // A program without its shim would be a ghost: no process could see its output or its end.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if Pid::as_raw(rustix::process::getppid()) != plan.parent {
        return Err((step::SESSION, Errno::SRCH));
    }
    if plan.is_pty {
        // SAFETY: it was open at the fork, and this child has not closed its copy.
        let stdin = unsafe { super::borrow(plan.stdin) };
        rustix::process::ioctl_tiocsctty(stdin).map_err(at(step::TERMINAL))?;
    }
    for (fd, number) in [(plan.stdin, 0), (plan.stdout, 1), (plan.stderr, 2)] {
        // SAFETY: no object owns the standard streams of this child.
        unsafe { super::dup2_to(fd, number) }.map_err(at(step::STDIO))?;
    }
    let mut cgroup = plan.cgroups;
    loop {
        // SAFETY: the list is ended by null, and the loop with it.
        let path = unsafe { *cgroup };
        if path.is_null() {
            break;
        }
        // SAFETY: an entry that is not null is a C string.
        enter_cgroup(unsafe { CStr::from_ptr(path) }).map_err(at(step::CGROUP))?;
        // SAFETY: this entry was not null, so there is a next one.
        cgroup = unsafe { cgroup.add(1) };
    }
    match plan.confinement {
        Some(confinement) => confinement.enter(plan.cwd)?,
        None => rustix::process::chdir(plan.cwd).map_err(at(step::CHDIR))?,
    }
    // The others are at their default since the shim started, see `default_signals`.
    IGNORED_SIGNALS.into_iter().for_each(default_signal);
    unblock_signals();
    // SAFETY: nothing is closed before the exec.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    match plan.record.filter(|_| plan.sync) {
        Some(record) => rustix::fs::fdatasync(record).map_err(at(step::RECORD)),
        None => Ok(()),
    }
}

/// Checks whether a daemon has canceled the start. An unreadable record cancels nothing.
fn is_canceled(record: BorrowedFd<'_>) -> bool {
    let mut slot = [0u8; slots::SLOT_LEN];
    rustix::io::pread(record, &mut slot, slots::CANCEL_AT).is_ok() && slots::is_canceled(&slot)
}

fn enter_cgroup(path: &CStr) -> Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    if rustix::io::write(&file, b"0")? == 1 { Ok(()) } else { Err(Errno::IO) }
}

fn unblock_signals() {
    // SAFETY: a signal set is plain bits, for which all zero is a value.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live local.
    unsafe { libc::sigemptyset(&mut none) };
    // SAFETY: the set is initialised, and a null pointer asks for no old set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
}
