//! System calls that the standard library does not offer. All unsafe code of this crate is here.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// The bytes of an output that its reader has not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    Bytes(u64),
    /// Some. A socket counts its memory, not bytes.
    Some,
    /// A file or a terminal: what is written counts as read.
    Unknown,
}

/// Returns the bytes that were written to a pipe or socket and not read yet.
pub fn unread(output: BorrowedFd<'_>) -> Unread {
    // SAFETY: an all-zero stat is a valid value for the call to overwrite.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `found` is ours and lives through the call.
    if unsafe { libc::fstat(output.as_raw_fd(), &mut found) } != 0 {
        return Unread::Unknown;
    }
    let (request, is_socket) = match found.st_mode & libc::S_IFMT {
        libc::S_IFIFO => (libc::FIONREAD, false),
        libc::S_IFSOCK => (libc::TIOCOUTQ, true),
        _ => return Unread::Unknown,
    };
    let mut count: libc::c_int = 0;
    // SAFETY: both requests write one int, which is ours and lives through the call.
    if unsafe { libc::ioctl(output.as_raw_fd(), request, &mut count) } != 0 {
        return Unread::Unknown;
    }
    match u64::try_from(count).unwrap_or(0) {
        0 => Unread::Bytes(0),
        _ if is_socket => Unread::Some,
        bytes => Unread::Bytes(bytes),
    }
}

/// The modes of a terminal that decide who shows what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalModes {
    /// The terminal hands out whole lines. Else the program edits its own line, and shows it.
    pub is_canonical: bool,
    pub has_echo: bool,
}

/// Returns the modes of the terminal that is the input of a process. None: it has none, or it cannot be opened here.
pub fn terminal_modes(pid: i64) -> Option<TerminalModes> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).custom_flags(flags).open(format!("/proc/{pid}/fd/0")).ok()?;
    // SAFETY: an all-zero termios is a valid value for the call to overwrite.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `modes` is ours and lives through the call.
    let known = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut modes) } == 0;
    let has = |flag| modes.c_lflag & flag != 0;
    known.then(|| TerminalModes { is_canonical: has(libc::ICANON), has_echo: has(libc::ECHO) })
}

/// Ends both directions of a socket, so that a thread that reads it returns.
pub fn shut_down(socket: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open. An error means that the socket has ended already.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and those it starts, and returns a descriptor that reports them.
pub fn take_signals() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero sigset is a valid value for sigemptyset to overwrite.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours.
    unsafe { libc::sigemptyset(&mut set) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `set` is ours, and the signals are valid.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    // SAFETY: `set` is initialised; the old mask is not wanted.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    // SAFETY: `set` is initialised, and -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The event that ends the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Signal,
    /// The client has closed our input, which may still have messages.
    InputClosed,
}

/// Waits for a signal, or until the other end of the input is closed. A file or terminal is never closed in this sense: the
/// reader of the input finds its end.
pub fn wait_for_end(signals: BorrowedFd<'_>, input: BorrowedFd<'_>) -> End {
    let waits_for = |fd: BorrowedFd<'_>, events| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    let mut fds = [waits_for(signals, libc::POLLIN), waits_for(input, libc::POLLRDHUP)];
    loop {
        // SAFETY: the array is ours, and its length is right.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if ready <= 0 {
            continue;
        }
        if fds[0].revents != 0 {
            return End::Signal;
        }
        if fds[1].revents & (libc::POLLHUP | libc::POLLRDHUP) != 0 {
            return End::InputClosed;
        }
        if fds[1].revents != 0 {
            // A descriptor that cannot be waited for, such as a closed one: only signals are left.
            fds[1].fd = -1;
        }
    }
}

/// Returns the time at which this process started, in clock ticks since boot: with its pid it names one process.
pub fn own_start_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may have spaces; the start is the twentieth field after it.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Sleeps. The one place, so that each caller gives a reason.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
