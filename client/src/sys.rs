//! The operating system, where the standard library does not reach. The only unsafe of this crate.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use toold_proto::pty::PtySize;

/// The window of the terminal behind a descriptor; a side that nobody set is 0. None when it is no
/// terminal.
pub fn window_size(fd: BorrowedFd<'_>) -> Option<PtySize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is borrowed, so open, and `size` is what TIOCGWINSZ writes.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
    (done == 0).then(|| PtySize { rows: size.ws_row.into(), cols: size.ws_col.into() })
}

/// Whether the terminal behind a descriptor listens to us, and not to somebody who put us into the
/// background.
pub fn is_foreground(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the descriptor is borrowed, so open; tcgetpgrp only reads what the terminal knows.
    let group = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    // SAFETY: getpgrp has no preconditions.
    group == unsafe { libc::getpgrp() }
}

/// Whether a line typed at the terminal behind a descriptor is for us: it listens to us, and nobody
/// reads it key by key, as a pager or a shell's line editor does. A terminal that is gone, or that
/// knows nothing of us, has nobody else to ask.
pub fn is_canonical_foreground(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the descriptor is borrowed, so open; tcgetpgrp only reads what the terminal knows.
    let group = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is borrowed, so open, and the value is ours.
    let told = unsafe { libc::tcgetattr(fd.as_raw_fd(), &mut settings) } == 0;
    let lines = !told || settings.c_lflag & libc::ICANON != 0;
    // SAFETY: getpgrp has no preconditions.
    lines && (group <= 0 || group == unsafe { libc::getpgrp() })
}

/// Whether the terminal behind a descriptor shows what is typed, as it does unless that is secret.
pub fn has_echo(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is borrowed, so open, and the value is ours.
    let told = unsafe { libc::tcgetattr(fd.as_raw_fd(), &mut settings) } == 0;
    told && settings.c_lflag & libc::ECHO != 0
}

/// The local time of day, hour, minute and second, of milliseconds since 1970.
pub fn local_time_of_day(unix_ms: u64) -> Option<(i32, i32, i32)> {
    let seconds = libc::time_t::try_from(unix_ms / 1000).ok()?;
    // SAFETY: an all-zero tm is a valid value for localtime_r to overwrite.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are ours and live through the call.
    let done = unsafe { libc::localtime_r(&seconds, &mut local) };
    (!done.is_null()).then_some((local.tm_hour, local.tm_min, local.tm_sec))
}

/// A time by the local calendar.
pub struct LocalTime {
    /// Year, month, day, hour, minute, second.
    pub fields: [c_int; 6],
    /// From Sunday, which is 0.
    pub weekday: c_int,
    /// `CET`, `UTC`.
    pub zone: String,
}

/// The local time of milliseconds since 1970.
pub fn local_time(unix_ms: u64) -> Option<LocalTime> {
    let seconds = libc::time_t::try_from(unix_ms / 1000).ok()?;
    // SAFETY: an all-zero tm is a valid value for localtime_r to overwrite.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are ours and live through the call.
    if unsafe { libc::localtime_r(&seconds, &mut tm) }.is_null() {
        return None;
    }
    let zone = match tm.tm_zone.is_null() {
        true => String::new(),
        // SAFETY: localtime_r points it at a NUL-terminated name that stays until the zone is read anew.
        false => unsafe { std::ffi::CStr::from_ptr(tm.tm_zone) }.to_string_lossy().into_owned(),
    };
    let fields = [tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec];
    Some(LocalTime { fields, weekday: tm.tm_wday, zone })
}

/// Milliseconds since 1970 of a local year, month, day, hour, minute and second.
pub fn unix_ms([year, month, day, hour, minute, second]: [c_int; 6]) -> Option<u64> {
    // SAFETY: an all-zero tm is a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    (tm.tm_year, tm.tm_mon, tm.tm_mday) = (year - 1900, month - 1, day);
    (tm.tm_hour, tm.tm_min, tm.tm_sec) = (hour, minute, second);
    // Whether it is summer then is for the system to know.
    tm.tm_isdst = -1;
    // SAFETY: `tm` is ours and lives through the call.
    let seconds = unsafe { libc::mktime(&mut tm) };
    u64::try_from(seconds).ok().map(|seconds| seconds * 1000)
}

/// The bytes that we may still write to the file system of a path.
pub fn free_bytes(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statvfs is a valid value for the call to overwrite.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with NUL, and both live through the call.
    let done = unsafe { libc::statvfs(path.as_ptr(), &mut found) };
    (done == 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Ends this program as the signal would have, had it not been caught.
pub fn die_by_signal(signal: c_int) -> ! {
    // It is ours to end in any case; a mask that cannot be set only changes how.
    let _ = set_mask(libc::SIG_UNBLOCK, &[signal]);
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(signal) };
    std::process::exit(128 + signal)
}

/// Stops this program as Ctrl-Z would have, had it not been caught. Returns when it goes on.
pub fn stop() -> io::Result<()> {
    set_mask(libc::SIG_UNBLOCK, &[libc::SIGTSTP])?;
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(libc::SIGTSTP) };
    set_mask(libc::SIG_BLOCK, &[libc::SIGTSTP])
}

/// Makes the command a process of its own: new session, no signal blocked, and of our descriptors only the first three. A
/// caller's lock or pipe would live as long as it does.
pub fn detach(command: &mut Command) {
    let own = || {
        set_mask(libc::SIG_SETMASK, &[])?;
        // SAFETY: it only marks descriptors, those of the fork alone. A kernel that does not know the call leaves them.
        unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        new_session()
    };
    // SAFETY: the closure runs between fork and exec, and calls only async-signal-safe functions.
    unsafe { command.pre_exec(own) };
}

fn new_session() -> io::Result<()> {
    // SAFETY: setsid has no preconditions.
    match unsafe { libc::setsid() } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Signals that arrive at a descriptor instead of ending the program. Dropped: as before.
pub struct Signals {
    fd: OwnedFd,
    blocked: Vec<c_int>,
}

/// The size of what a signalfd gives for each signal; its first four bytes are the number.
const SIGNAL_RECORD: usize = size_of::<libc::signalfd_siginfo>();

impl Signals {
    /// Catches these, except those that whoever started us (`nohup`) wanted ignored.
    pub fn catch(wanted: &[c_int]) -> io::Result<Signals> {
        let blocked: Vec<c_int> = wanted.iter().copied().filter(|s| !is_ignored(*s)).collect();
        let set = signal_set(&blocked);
        // SAFETY: `set` is a filled signal set; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above just made this descriptor and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        set_mask(libc::SIG_BLOCK, &blocked)?;
        Ok(Signals { fd, blocked })
    }

    /// Signals that a test writes as records into a pipe.
    #[cfg(test)]
    pub fn from_pipe(fd: OwnedFd) -> Signals {
        Signals { fd, blocked: Vec::new() }
    }

    /// The record a signalfd would give for this signal.
    #[cfg(test)]
    pub fn record(signal: c_int) -> Vec<u8> {
        let mut record = vec![0; SIGNAL_RECORD];
        record[..4].copy_from_slice(&signal.to_ne_bytes());
        record
    }

    /// The next signal. Ask only when the descriptor is readable.
    pub fn take(&self) -> Option<c_int> {
        let mut record = [0u8; SIGNAL_RECORD];
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
        // Nobody is left who could act on a failure here.
        let _ = set_mask(libc::SIG_UNBLOCK, &self.blocked);
    }
}

/// What to wait for on one descriptor.
#[derive(Clone, Copy)]
pub enum Interest {
    Readable,
    Writable,
    /// Nobody reads what is written there any more.
    HungUp,
}

/// Waits until a descriptor is ready or has failed: which ones. None at all after the timeout.
pub fn poll<const N: usize>(
    watched: [Option<(BorrowedFd<'_>, Interest)>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut fds = watched.map(|entry| match entry {
        Some((fd, Interest::Readable)) => libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        Some((fd, Interest::Writable)) => libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 },
        // Without a wish the kernel tells only of errors and hang-ups.
        Some((fd, Interest::HungUp)) => libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 },
        // The kernel passes over a negative descriptor.
        None => libc::pollfd { fd: -1, events: 0, revents: 0 },
    });
    // Rounded up: a wait that ends a moment early would come back at once, many times.
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
    // SAFETY: `set` is initialised, and the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The program's first function, in place of the standard library's. That one reads `/proc/self/maps` to be able to say that
/// a stack overflowed, which takes a tenth of the time of a `toolctl poll`. What else it does, [`run_main`] does.
#[macro_export]
macro_rules! main {
    ($main:path) => {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: the name is what the C library calls, with just these arguments; there is no other of that name.
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

/// Runs the program: with all three standard descriptors open, without death by a closed pipe, and with the exit code of a panic if
/// it is one.
pub fn run_main(main: fn() -> u8) -> ! {
    open_standard_descriptors();
    // SAFETY: there is one thread, and to ignore a signal needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = std::panic::catch_unwind(main).map_or(PANICKED, i32::from);
    // This also writes what standard output still holds.
    std::process::exit(code)
}

/// The exit code of a Rust program that panicked.
const PANICKED: c_int = 101;

/// What the caller closed becomes `/dev/null`, or the socket would get its number and be written to as standard output.
fn open_standard_descriptors() {
    let mut all = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: three of them, which are ours.
    let looked = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 0) };
    if looked <= 0 {
        return;
    }
    for _ in all.iter().filter(|one| one.revents & libc::POLLNVAL != 0) {
        // SAFETY: a constant path. The lowest free number is the next of those that are closed, and it stays open.
        if unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) } < 0 {
            std::process::abort();
        }
    }
}
