//! Operating system calls that the standard library does not offer. All unsafe code of this crate is below `sys`.

mod termios;

#[cfg(test)]
pub use termios::open_pty;
pub use termios::{TerminalSettings, has_echo, is_background, is_canonical_foreground, is_foreground, window_size};

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Returns the local hour, minute and second of milliseconds since 1970.
pub fn local_time_of_day(unix_ms: u64) -> Option<(c_int, c_int, c_int)> {
    local_time(unix_ms).map(|LocalTime { fields: [_, _, _, hour, minute, second], .. }| (hour, minute, second))
}

/// A time in the local time zone.
pub struct LocalTime {
    /// Year, month, day, hour, minute, second.
    pub fields: [c_int; 6],
    /// Days since Sunday.
    pub weekday: c_int,
    /// Abbreviation of the time zone: `CET`, `UTC`.
    pub zone: String,
}

/// Returns the local time of milliseconds since 1970.
pub fn local_time(unix_ms: u64) -> Option<LocalTime> {
    let seconds = libc::time_t::try_from(unix_ms / 1000).ok()?;
    // SAFETY: an all-zero tm is a valid value for localtime_r to overwrite.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are ours and live through the call.
    if unsafe { libc::localtime_r(&seconds, &mut tm) }.is_null() {
        return None;
    }
    let zone = if tm.tm_zone.is_null() {
        String::new()
    } else {
        // SAFETY: localtime_r points it at a NUL-terminated name that stays until the time zone is read again.
        unsafe { std::ffi::CStr::from_ptr(tm.tm_zone) }.to_string_lossy().into_owned()
    };
    let fields = [tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec];
    Some(LocalTime { fields, weekday: tm.tm_wday, zone })
}

/// Returns milliseconds since 1970 of a local year, month, day, hour, minute and second.
pub fn unix_ms([year, month, day, hour, minute, second]: [c_int; 6]) -> Option<u64> {
    // SAFETY: an all-zero tm is a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    tm.tm_sec = second;
    // The system decides whether daylight saving time applies.
    tm.tm_isdst = -1;
    // SAFETY: `tm` is ours and lives through the call.
    let seconds = unsafe { libc::mktime(&mut tm) };
    u64::try_from(seconds).ok().map(|seconds| seconds * 1000)
}

/// Returns the number of bytes that we can still write to the file system of a path.
pub fn free_bytes(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statvfs is a valid value for the call to overwrite.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with NUL, and both live through the call.
    let done = unsafe { libc::statvfs(path.as_ptr(), &mut found) };
    (done == 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the user of the process at the other end of a Unix socket. Its pid may be 0: that of a daemon outside of our pid
/// namespace, which other libraries take for an error.
pub fn peer_uid(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = std::mem::size_of::<libc::ucred>() as libc::socklen_t;
    let place = std::ptr::from_mut(&mut found).cast();
    // SAFETY: the descriptor is open, and the kernel writes at most `len` bytes to `found`, which has that size.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut len) };
    if done == 0 { Ok(found.uid) } else { Err(io::Error::last_os_error()) }
}

/// Locks one byte of an open file, for this description of it alone. Returns false if another one has the lock. The lock
/// ends when the file is closed.
pub fn try_lock_byte(file: BorrowedFd<'_>, offset: u32) -> io::Result<bool> {
    // SAFETY: an all-zero flock is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = offset.into();
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and `lock` is ours and lives through the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

/// Ends this process by the signal, as if we had not caught it.
pub fn die_by_signal(signal: c_int) -> ! {
    // If the mask cannot be set, the exit below ends the process.
    let _ = set_mask(libc::SIG_UNBLOCK, &[signal]);
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(signal) };
    std::process::exit(128 + signal)
}

/// Stops this process with SIGSTOP. Returns when it is continued.
pub fn suspend() {
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Stops this process with SIGTSTP, as if we had not caught it. Returns when it is continued.
pub fn stop() -> io::Result<()> {
    set_mask(libc::SIG_UNBLOCK, &[libc::SIGTSTP])?;
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(libc::SIGTSTP) };
    set_mask(libc::SIG_BLOCK, &[libc::SIGTSTP])
}

/// Detaches the command from us: new session, no signal blocked, and only the first three of our descriptors. Otherwise it would
/// keep a lock or pipe of our caller open.
pub fn detach(command: &mut Command) {
    let before_exec = || {
        set_mask(libc::SIG_SETMASK, &[])?;
        // SAFETY: it only marks descriptors of the forked child. A kernel that does not know the call leaves them open.
        unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        new_session()
    };
    // SAFETY: the closure runs between fork and exec, and calls only async-signal-safe functions.
    unsafe { command.pre_exec(before_exec) };
}

fn new_session() -> io::Result<()> {
    // SAFETY: setsid has no preconditions.
    match unsafe { libc::setsid() } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Signals that are read from a descriptor instead of ending the process. Dropping it unblocks them.
pub struct Signals {
    fd: OwnedFd,
    blocked: Vec<c_int>,
}

/// Size of the record that a signalfd returns for each signal; its first four bytes are the number.
const SIGNAL_RECORD_LEN: usize = size_of::<libc::signalfd_siginfo>();

impl Signals {
    /// Catches these signals, except those that our caller (`nohup`) set to be ignored.
    pub fn catch(wanted: &[c_int]) -> io::Result<Signals> {
        let blocked: Vec<c_int> = wanted.iter().copied().filter(|s| !is_ignored(*s)).collect();
        let set = signal_set(&blocked);
        // SAFETY: `set` is a filled signal set; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above just made this descriptor and nothing else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set_mask(libc::SIG_BLOCK, &blocked)?;
        Ok(Signals { fd, blocked })
    }

    /// Reads records that a test writes into a pipe.
    #[cfg(test)]
    pub fn from_pipe(fd: OwnedFd) -> Signals {
        Signals { fd, blocked: Vec::new() }
    }

    /// Returns the record that a signalfd would return for this signal.
    #[cfg(test)]
    pub fn record(signal: c_int) -> Vec<u8> {
        let mut record = vec![0; SIGNAL_RECORD_LEN];
        record[..4].copy_from_slice(&signal.to_ne_bytes());
        record
    }

    /// Reads the next signal. Call it only when the descriptor is readable.
    pub fn take(&self) -> Option<c_int> {
        let mut record = [0u8; SIGNAL_RECORD_LEN];
        // SAFETY: the buffer is valid for its whole length and the descriptor is ours.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), record.as_mut_ptr().cast(), record.len()) };
        let [a, b, c, d, ..] = record;
        (read == record.len() as isize).then(|| c_int::from_ne_bytes([a, b, c, d]))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A failure cannot be handled here.
        let _ = set_mask(libc::SIG_UNBLOCK, &self.blocked);
    }
}

/// Condition to wait for on one descriptor.
#[derive(Clone, Copy)]
pub enum Interest {
    Readable,
    Writable,
    /// The other end was closed, so nothing reads what is written there.
    HungUp,
}

/// Waits until a descriptor is ready or has failed, and returns which ones; none of them after the timeout.
pub fn poll<const N: usize>(
    watched: [Option<(BorrowedFd<'_>, Interest)>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut fds = watched.map(|entry| match entry {
        Some((fd, Interest::Readable)) => libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        Some((fd, Interest::Writable)) => libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 },
        // Without events the kernel reports only errors and hang-ups.
        Some((fd, Interest::HungUp)) => libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 },
        // The kernel ignores a negative descriptor.
        None => libc::pollfd { fd: -1, events: 0, revents: 0 },
    });
    // Rounded up: with a wait that ends too early the caller would loop without sleeping.
    let ms = timeout.map_or(-1, |t| c_int::try_from(t.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX));
    loop {
        // SAFETY: `fds` is an array of N entries, and every descriptor in it is borrowed.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), N as libc::nfds_t, ms) };
        if ready >= 0 {
            return Ok(fds.map(|fd| fd.revents != 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: an all-zero sigaction is a valid value for the kernel to overwrite.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with a null new action this only reads; `action` is ours.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    done == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid value; sigemptyset gives it its meaning.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours.
    unsafe { libc::sigemptyset(&mut set) };
    for signal in signals {
        // SAFETY: `set` is initialised; a wrong number is refused and changes nothing.
        unsafe { libc::sigaddset(&mut set, *signal) };
    }
    set
}

fn set_mask(how: c_int, signals: &[c_int]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: `set` is initialised, and the old mask is not requested.
    match unsafe { libc::pthread_sigmask(how, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Defines `main` in place of the standard library's. That one reads `/proc/self/maps` in order to report stack overflows, which
/// takes a tenth of the time of a `toolctl poll`. [`run_main`] does the rest of its work.
#[macro_export]
macro_rules! main {
    ($main:path) => {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: the C library calls this name with exactly these arguments, and there is no other function of this name.
        #[unsafe(no_mangle)]
        extern "C" fn main(_: std::ffi::c_int, _: *const *const std::ffi::c_char) -> std::ffi::c_int {
            $crate::run_main($main)
        }

        #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
        fn main() {
            $crate::run_main($main)
        }
    };
}

/// Runs the program with all three standard descriptors open and SIGPIPE ignored, and exits with its code, or with 101 after a
/// panic.
pub fn run_main(main: fn() -> u8) -> ! {
    open_standard_descriptors();
    // SAFETY: there is one thread, and ignoring a signal needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = std::panic::catch_unwind(main).map_or(PANIC_EXIT_CODE, i32::from);
    // This also flushes standard output.
    std::process::exit(code)
}

/// Exit code of a Rust program that panicked.
const PANIC_EXIT_CODE: c_int = 101;

/// Opens `/dev/null` for each standard descriptor that the caller closed. Otherwise the socket could get its number, and output
/// would be written to it.
fn open_standard_descriptors() {
    let mut all = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the array has three entries and is ours.
    let closed = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 0) };
    if closed <= 0 {
        return;
    }
    for _ in all.iter().filter(|one| one.revents & libc::POLLNVAL != 0) {
        // SAFETY: the path is constant. The lowest free number is the next closed one, and it stays open.
        if unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) } < 0 {
            std::process::abort();
        }
    }
}
