//! The only unsafe code: system calls that no crate wraps, or that must not allocate.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_int, c_void};

mod spawn;

pub use spawn::{ChildPlan, spawn};

pub type Result<T> = std::result::Result<T, Errno>;

fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

fn check(code: c_int) -> Result<c_int> {
    if code < 0 { Err(last_errno()) } else { Ok(code) }
}

/// Which of the two we are after a fork.
pub enum Forked {
    Child,
    Parent(i32),
}

/// Forks. Call it only while this process has one thread.
pub fn fork() -> Result<Forked> {
    // SAFETY: the caller has one thread, so the child inherits no lock in a locked state.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// ParentStdio this process without running anything else.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from `first` on.
pub fn close_from(first: RawFd) {
    // SAFETY: called by a process that owns no descriptor object at or above `first`.
    unsafe { libc::syscall(libc::SYS_close_range, first as u32, u32::MAX, 0) };
}

/// Puts a copy of `fd` at number `at`.
pub fn dup2_to(fd: RawFd, at: RawFd) -> Result<()> {
    // SAFETY: both are plain numbers to the kernel; a bad one is an error.
    check(unsafe { libc::dup2(fd, at) }).map(drop)
}

/// Takes ownership of a descriptor number that nothing else owns.
pub fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the callers pass a number they just received or created and own no object for.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A descriptor number that stays open for the life of the process.
pub fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the callers pass standard streams, which nothing here closes.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// What a shim ignores: it ends when its work does. A program has the default of each.
pub const IGNORED_SIGNALS: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGQUIT, libc::SIGTERM, libc::SIGXFSZ];

/// Sets every signal to its default.
pub fn default_signals() {
    (1..=64).for_each(default_signal);
}

fn default_signal(signal: c_int) {
    // SAFETY: SIG_DFL installs no code of ours; a signal that cannot be set is left.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, std::ptr::null_mut());
    }
}

/// Ignores a signal in this process.
pub fn ignore_signal(signal: c_int) {
    // SAFETY: SIG_IGN installs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Blocks SIGCHLD and gives a descriptor that becomes readable instead.
pub fn sigchld_fd() -> Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use and outlives the calls.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    check(fd).map(own)
}

/// A child that ended.
pub struct Reaped {
    pub pid: i32,
    pub status: i32,
    pub cpu_us: u64,
    pub max_rss_kib: u64,
}

/// The next child that ended: `Ok(None)` when there are children but none has, ECHILD when there is none.
pub fn reap() -> Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    let pid = check(unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage) })?;
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    Ok((pid > 0).then(|| Reaped {
        pid,
        status,
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss as u64,
    }))
}

/// How many bytes wait in a pipe or terminal.
pub fn bytes_readable(fd: BorrowedFd<'_>) -> usize {
    let mut n: c_int = 0;
    // SAFETY: FIONREAD writes one int through the pointer.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &mut n) };
    n.max(0) as usize
}

/// Sends a signal to a process group.
pub fn signal_group(pgid: i32, signal: c_int) -> Result<()> {
    // SAFETY: plain numbers; the caller holds the group's leader unreaped, so the id is not a stranger's.
    check(unsafe { libc::kill(-pgid, signal) }).map(drop)
}

/// A descriptor for a process, for as long as that process is.
pub fn pidfd_open(pid: i32) -> Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    check(fd as c_int).map(own)
}

/// Sends a signal to the process behind a pidfd, and to no other.
pub fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: c_int) -> Result<()> {
    // SAFETY: a null siginfo is allowed.
    let code =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<c_void>(), 0) };
    check(code as c_int).map(drop)
}

/// What the kernel still knows of the exit of a process that somebody else reaped.
/// None: not dead and reaped yet, or a kernel before 6.15.
pub fn pidfd_exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
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
    const EXIT: u64 = 1 << 3;
    // _IOWR(0xFF, 11, 64 bytes), the first published size of the structure.
    const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
    let mut info = [PidfdInfo { mask: EXIT, ..PidfdInfo::default() }, PidfdInfo::default()];
    // SAFETY: the kernel writes at most 64 bytes, and two of the structures are 128.
    let code = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, info.as_mut_ptr()) };
    (code == 0 && info[0].mask & EXIT != 0).then_some(info[0].exit_code)
}

/// Fresh zeroed memory that costs nothing until touched. None when there is no address space.
pub fn map_anonymous(len: usize) -> Option<&'static mut [u8]> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping overlaps nothing.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()?;
    // SAFETY: the mapping is len bytes, readable, writable, zeroed, and never unmapped while borrowed.
    Some(unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), len) })
}

/// Memory that is used again and again, fresh each time.
pub struct Arena {
    at: *mut u8,
    len: usize,
}

impl Arena {
    pub fn new(len: usize) -> Option<Arena> {
        map_anonymous(len).map(|memory| Arena { at: memory.as_mut_ptr(), len })
    }

    /// All of it, zeroed. The borrows of the last time are over: their owner was dropped with its process.
    pub fn all(&mut self) -> &'static mut [u8] {
        // SAFETY: the mapping is len bytes and is never unmapped; see above for other borrows.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    /// Makes it zero again.
    pub fn clear(&mut self) {
        discard_pages(self.all());
    }
}

/// Numbers that this process and those it forks share. None when there is no memory.
pub fn shared_atomics(count: usize) -> Option<&'static [std::sync::atomic::AtomicI32]> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let len = count * size_of::<std::sync::atomic::AtomicI32>();
    // SAFETY: a new anonymous mapping overlaps nothing.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) };
    // SAFETY: the mapping is zeroed, page-aligned, large enough, never unmapped, and only used through atomics.
    Some(unsafe { std::slice::from_raw_parts(at.ok()?.cast(), count) })
}

/// Gives the pages back to the kernel; they read as zero afterwards.
pub fn discard_pages(memory: &mut [u8]) {
    let at = memory.as_mut_ptr().cast::<c_void>();
    // SAFETY: the range is a private anonymous mapping from `map`, exclusively borrowed.
    let _ = unsafe { rustix::mm::madvise(at, memory.len(), rustix::mm::Advice::LinuxDontNeed) };
}

/// Begins to write a file's pages to the disk, and does not wait for it.
pub fn start_writeback(file: impl AsFd) -> Result<()> {
    // SAFETY: plain numbers; offset and length 0 are the whole file.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) }).map(drop)
}

/// Unmaps memory from `map` for good.
pub fn unmap(memory: &'static mut [u8]) {
    // SAFETY: the mapping came from `map`, and the only reference to it is consumed here.
    let _ = unsafe { rustix::mm::munmap(memory.as_mut_ptr().cast(), memory.len()) };
}

/// The memory where the kernel keeps our command line, to write a title into.
pub struct ProcessTitle {
    at: usize,
    len: usize,
}

impl ProcessTitle {
    /// Finds it from `/proc/self/stat`. None: it stays as it is.
    pub fn find() -> Option<ProcessTitle> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let after = stat.rsplit_once(')')?.1;
        let mut fields = after.split_ascii_whitespace();
        let start: usize = fields.nth(45)?.parse().ok()?;
        let end: usize = fields.next()?.parse().ok()?;
        (start > 0 && end > start).then_some(ProcessTitle { at: start, len: end - start })
    }

    /// Shows `parts` as the command line, cut to the room there is.
    pub fn set(&self, parts: &[&[u8]]) {
        // SAFETY: the range is the argument strings of this process, writable memory at the bottom of
        // the first stack that Rust code never refers to again: arguments were copied at start.
        let room = unsafe { std::slice::from_raw_parts_mut(self.at as *mut u8, self.len) };
        let mut text = parts.iter().flat_map(|p| p.iter().copied());
        for place in room.iter_mut() {
            *place = text.next().unwrap_or(0);
        }
        if let Some(last) = room.last_mut() {
            *last = 0;
        }
    }
}

/// Names this process for `ps` and `top`.
pub fn set_name(name: &CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Pointers into a run of C strings, for `execve`.
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
pub fn as_pids(memory: &mut [u8]) -> &mut [i32] {
    // SAFETY: any bits are a valid i32; alignment is handled by align_to_mut.
    unsafe { memory.align_to_mut::<i32>() }.1
}

/// Whether the kernel can tell the exit of a process that is not our child (6.15 and later).
pub fn has_pidfd_info() -> bool {
    const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
    let Ok(own) = pidfd_open(std::process::id() as i32) else { return false };
    let mut info = [0u64; 16];
    // The bit for exit codes; a kernel that does not know it answers without it, an older one refuses.
    info[0] = 1 << 3;
    // SAFETY: the kernel writes at most 64 of the 128 bytes.
    let code = unsafe { libc::ioctl(own.as_raw_fd(), PIDFD_GET_INFO, info.as_mut_ptr()) };
    code == 0
}
