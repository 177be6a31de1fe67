//! System calls that no crate wraps, or that must not allocate.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_int, c_void};

mod children;
mod environment;
mod namespaces;
mod spawn;
mod title;

pub use children::{Reaped, next_stopped_child, reap, reap_blocking, reap_or_stopped};
pub use environment::{drop_environment, hide_process, move_environment};
pub use namespaces::{MountWatch, owner_of_namespace};
pub use spawn::{ChildPlan, has_ended, spawn};
pub use title::ProcessTitle;

pub type Result<T> = std::result::Result<T, Errno>;

pub(crate) fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

pub(crate) fn check(code: c_int) -> Result<c_int> {
    if code < 0 { Err(last_errno()) } else { Ok(code) }
}

/// The side of a fork that a process is on.
pub enum Forked {
    Child,
    Parent(i32),
}

/// Forks.
///
/// # Safety
///
/// This process has one thread, so that the child inherits no lock in a locked state.
pub unsafe fn fork() -> Result<Forked> {
    // SAFETY: the caller promises one thread.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Checks that this process has one thread. An error: neither /proc nor the kernel shows it.
pub fn is_single_threaded() -> Result<bool> {
    match std::fs::read_dir("/proc/self/task") {
        Ok(threads) => Ok(threads.take(2).count() == 1),
        Err(_) => can_leave_thread_group(),
    }
}

/// Asks the kernel for a thread group of its own, which it grants only to a process with one thread and which changes
/// nothing then. For a system without /proc.
fn can_leave_thread_group() -> Result<bool> {
    // SAFETY: a plain number; with this flag alone the call never changes anything.
    match check(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Ends this process without running anything else.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from `first` on.
///
/// # Safety
///
/// This process uses no object that owns a descriptor at or above `first` any more.
pub unsafe fn close_from(first: RawFd) {
    // SAFETY: the caller promises that no object is left without its descriptor.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first as u32, u32::MAX, 0) };
    if closed == 0 {
        return;
    }
    // A kernel before 5.9, or a filter that refuses the call: one by one, as /proc lists them.
    let Ok(listed) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = listed.flatten().filter_map(|fd| fd.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd >= first) {
        // SAFETY: the same promise. The descriptor of the listing itself is closed already: an error, and no matter.
        unsafe { libc::close(fd) };
    }
}

/// Puts a copy of `fd` at the number `number`.
///
/// # Safety
///
/// No object of this process owns the number, unless it refers to the new file from now on.
pub unsafe fn dup2_to(fd: RawFd, number: RawFd) -> Result<()> {
    // SAFETY: the caller promises that the number may change; a bad `fd` is an error.
    check(unsafe { libc::dup2(fd, number) }).map(drop)
}

/// Takes ownership of a descriptor number.
///
/// # Safety
///
/// The descriptor is open, and nothing else owns it.
pub unsafe fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller promises both.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Borrows a descriptor number for the life of the process.
///
/// # Safety
///
/// The descriptor is open and stays so.
pub unsafe fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the caller promises it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Signals that a shim ignores: it ends when its work does. A program has the default of each.
pub const IGNORED_SIGNALS: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGQUIT, libc::SIGTERM, libc::SIGXFSZ];

/// Sets every signal to its default.
pub fn default_signals() {
    (1..=64).for_each(default_signal);
}

fn default_signal(signal: c_int) {
    // The kernel's own form of a sigaction, larger than on any architecture: all zero is the default, without flags.
    let default = [0u64; 8];
    let set_len = size_of::<u64>();
    let old = std::ptr::null_mut::<c_void>();
    // SAFETY: the default installs no code of ours; a signal that cannot be set is left. Not by libc: it refuses to touch
    // the two signals that it keeps for itself, which `posix_spawn` leaves ignored in a child.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, set_len) };
}

/// Ignores a signal in this process.
pub fn ignore_signal(signal: c_int) {
    // SAFETY: SIG_IGN installs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Reads the scheduling of this thread. None: the kernel refuses, or it is not the usual policy.
fn usual_scheduling() -> Option<libc::sched_attr> {
    // SAFETY: sched_attr is plain numbers, for which all zero is a value.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the kernel writes at most `size` bytes to the live local.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut attr, size, 0) };
    (read == 0 && attr.sched_policy == libc::SCHED_OTHER as u32).then_some(attr)
}

/// Returns the timeslice of this thread. 0: the kernel has none, as before 6.12.
pub fn timeslice_ns() -> u64 {
    usual_scheduling().map_or(0, |attr| attr.sched_runtime)
}

/// Sets the timeslice of this thread, and of what it starts. Kernels before 6.12 ignore it.
pub fn set_timeslice(ns: u64) {
    if let Some(mut attr) = usual_scheduling() {
        attr.sched_runtime = ns;
        // SAFETY: the kernel reads the live local, which has its own size as a field.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0) };
    }
}

/// Blocks every signal, so that none ends this process or stops it but SIGKILL and SIGSTOP, and opens a descriptor that
/// becomes readable when a child ended.
pub fn sigchld_fd() -> Result<OwnedFd> {
    // SAFETY: a signal set is plain bits, for which all zero is a value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live local.
    unsafe { libc::sigemptyset(&mut set) };
    // SAFETY: the set is initialised, and SIGCHLD is a signal.
    unsafe { libc::sigaddset(&mut set, libc::SIGCHLD) };
    let (all, old, set_len) = (u64::MAX, std::ptr::null_mut::<c_void>(), size_of::<u64>());
    // SAFETY: the kernel reads the live local, which is its own form of a set, and a null pointer asks for no old one. Not by
    // libc: it never blocks the two signals that it keeps for itself.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &all, old, set_len) };
    // SAFETY: -1 asks for a new descriptor, and the set is initialised.
    let fd = check(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { own(fd) })
}

/// Counts the bytes that wait in a pipe or terminal.
pub fn bytes_readable(fd: BorrowedFd<'_>) -> usize {
    let mut n: c_int = 0;
    // SAFETY: FIONREAD writes one int through the pointer.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &mut n) };
    n.max(0) as usize
}

/// Sends a signal to a process group.
pub fn signal_group(pgid: i32, signal: c_int) -> Result<()> {
    // SAFETY: plain numbers; the caller holds the group's leader unreaped, so the id is not of another group.
    check(unsafe { libc::kill(-pgid, signal) }).map(drop)
}

/// Sends a signal to a child of this process. Its number is its own until it is reaped.
pub fn signal_child(pid: i32, signal: c_int) -> Result<()> {
    // SAFETY: plain numbers; the caller knows that the process is our child.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Returns the pid of this process.
pub fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Opens a descriptor for a process. It refers to that process and to no later one with the same pid.
pub fn pidfd_open(pid: i32) -> Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = check(fd as c_int)?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { own(fd) })
}

/// Sends a signal to the process behind a pidfd, and to no other.
pub fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: c_int) -> Result<()> {
    // SAFETY: a null siginfo is allowed.
    let code =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<c_void>(), 0) };
    check(code as c_int).map(drop)
}

/// The part of the kernel's `struct pidfd_info` that the first published size has.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroupid: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

/// The bit of `PidfdInfo::mask` for exit codes.
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// Asks for the exit code of a process. An error: a kernel before 6.15, or no such process.
fn pidfd_info(pidfd: BorrowedFd<'_>) -> Result<PidfdInfo> {
    // _IOWR(0xFF, 11, 64 bytes), the first published size of the structure.
    const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
    let mut info = [PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() }, PidfdInfo::default()];
    // SAFETY: the kernel writes at most 64 bytes, and two of the structures are 128.
    check(unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, info.as_mut_ptr()) })?;
    let [info, _] = info;
    Ok(info)
}

/// Returns the exit status of a process that another process reaped.
/// None: not dead and reaped yet, or a kernel before 6.15.
pub fn pidfd_exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let info = pidfd_info(pidfd).ok()?;
    (info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// Checks whether the kernel reports the exit of a process that is not our child (6.15 and later). It answers without the
/// bit for a process that runs; an older kernel refuses.
pub fn has_pidfd_info() -> bool {
    pidfd_open(std::process::id() as i32).is_ok_and(|own| pidfd_info(own.as_fd()).is_ok())
}

/// Maps fresh zeroed memory, which costs nothing until touched. None when there is no address space.
pub fn map_anonymous(len: usize) -> Option<&'static mut [u8]> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping overlaps nothing.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()?;
    // SAFETY: the mapping is len bytes, readable, writable, zeroed, and never unmapped while borrowed.
    Some(unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), len) })
}

/// Memory that is used again and again, zeroed each time.
pub struct Arena {
    start: *mut u8,
    len: usize,
}

impl Arena {
    pub fn new(len: usize) -> Option<Arena> {
        map_anonymous(len).map(|memory| Arena { start: memory.as_mut_ptr(), len })
    }

    /// Lends all of it.
    ///
    /// # Safety
    ///
    /// No earlier loan is in use: its owner was dropped with its process.
    pub unsafe fn all(&mut self) -> &'static mut [u8] {
        // SAFETY: the mapping is len bytes and is never unmapped; the caller promises that this loan is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Makes it zero again.
    ///
    /// # Safety
    ///
    /// No loan is in use.
    pub unsafe fn clear(&mut self) {
        // SAFETY: the caller promises that no other loan is in use, and the memory is from `map_anonymous`.
        unsafe { discard_pages(self.all()) };
    }
}

/// Maps numbers that this process and those it forks share. None when there is no memory.
pub fn shared_atomics(count: usize) -> Option<&'static [std::sync::atomic::AtomicI32]> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let len = count * size_of::<std::sync::atomic::AtomicI32>();
    // SAFETY: a new anonymous mapping overlaps nothing.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) };
    // SAFETY: the mapping is zeroed, page-aligned, large enough, never unmapped, and only used through atomics.
    Some(unsafe { std::slice::from_raw_parts(at.ok()?.cast(), count) })
}

/// Returns the whole pages of `memory`, which starts at a page, to the kernel. They read as zero afterwards. A last page
/// that is only in part of `memory` stays: the kernel would clear all of it.
///
/// # Safety
///
/// The memory is of a mapping from `map_anonymous`.
pub unsafe fn discard_pages(memory: &mut [u8]) {
    let start = memory.as_mut_ptr().cast::<c_void>();
    let whole = memory.len() - memory.len() % rustix::param::page_size();
    // SAFETY: the caller promises a private anonymous mapping; it is exclusively borrowed, and any bytes are valid in it.
    let _ = unsafe { rustix::mm::madvise(start, whole, rustix::mm::Advice::LinuxDontNeed) };
}

/// Starts to write a file's pages to the disk, and does not wait for it.
pub fn start_writeback(file: impl AsFd) -> Result<()> {
    // SAFETY: plain numbers; offset and length 0 are the whole file.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) }).map(drop)
}

/// Unmaps memory for good.
///
/// # Safety
///
/// The memory is all of a mapping from `map_anonymous`.
pub unsafe fn unmap(memory: &'static mut [u8]) {
    // SAFETY: the caller promises a whole mapping, and the only reference to it is consumed here.
    let _ = unsafe { rustix::mm::munmap(memory.as_mut_ptr().cast(), memory.len()) };
}

/// Returns the pid of the process that made the other end of a connection. 0: it is in another PID namespace.
pub fn peer_pid(stream: &OwnedFd) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, at) = (stream.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: `peer` has room for the length that is given, and both live across the call.
    let done = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len) };
    (done == 0).then_some(peer.pid)
}

/// Names this process for `ps` and `top`.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Points to a C string, for `execve`.
pub fn pointer(string: &[u8]) -> *const c_char {
    string.as_ptr().cast()
}

/// Views part of a byte region as a table of pointers. None when it is too small.
pub fn pointer_table(memory: &mut [u8], count: usize) -> Option<&mut [*const c_char]> {
    // SAFETY: any bits are a valid raw pointer value; alignment is handled by align_to_mut.
    let (_, table, _) = unsafe { memory.align_to_mut::<*const c_char>() };
    table.get_mut(..count)
}

/// Views mapped memory as a table of pids.
pub fn as_pids(memory: &[u8]) -> &[i32] {
    // SAFETY: any bits are a valid i32; alignment is handled by align_to.
    unsafe { memory.align_to::<i32>() }.1
}

/// Views mapped memory as a table of pids that can be changed.
pub fn as_pids_mut(memory: &mut [u8]) -> &mut [i32] {
    // SAFETY: any bits are a valid i32; alignment is handled by align_to_mut.
    unsafe { memory.align_to_mut::<i32>() }.1
}

#[cfg(test)]
mod tests {
    use super::{can_leave_thread_group, discard_pages, is_single_threaded, map_anonymous, unmap};

    #[test]
    fn only_whole_pages_are_discarded() {
        let page = rustix::param::page_size();
        let memory = map_anonymous(2 * page).expect("there is memory");
        memory.fill(1);
        // The kernel rounds up to whole pages, and the bytes behind the range were lost with it.
        // SAFETY: the memory is from `map_anonymous`.
        unsafe { discard_pages(&mut memory[..page + 100]) };
        let (first, second) = memory.split_at(page);
        assert!(first.iter().all(|b| *b == 0) && second.iter().all(|b| *b == 1));
        // SAFETY: all of the mapping.
        unsafe { unmap(memory) };
    }

    #[test]
    fn a_process_with_a_second_thread_is_not_single_threaded() {
        // The test runs in a thread of its own, beside the one that waits for it.
        for look in [is_single_threaded, can_leave_thread_group] {
            let seen = std::thread::spawn(look).join().expect("it does not panic");
            assert_eq!(seen, Ok(false));
        }
    }
}
