//! How a terminal takes keys, and how to stand still. Unsafe lives here and in the crate's `sys.rs`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A terminal's settings as they were.
pub struct SavedSettings(libc::termios);

impl SavedSettings {
    /// From now on keys come one by one and are not shown. None where no keys come from.
    pub fn disable_echo(fd: BorrowedFd<'_>) -> Option<SavedSettings> {
        // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is borrowed, so open, and `before` is ours.
        if unsafe { libc::tcgetattr(fd.as_raw_fd(), &mut before) } != 0 {
            return None;
        }
        let mut quiet = before;
        quiet.c_lflag &= !(libc::ICANON | libc::ECHO);
        set(fd, &quiet).ok().map(|()| SavedSettings(before))
    }

    /// As they were.
    pub fn restore(&self, fd: BorrowedFd<'_>) {
        // A terminal that is gone needs no settings.
        let _ = set(fd, &self.0);
    }
}

fn set(fd: BorrowedFd<'_>, settings: &libc::termios) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed, so open, and `settings` came from tcgetattr.
    match unsafe { libc::tcsetattr(fd.as_raw_fd(), libc::TCSADRAIN, settings) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stands still, as after Ctrl-Z, until somebody continues us.
pub fn suspend() {
    // SAFETY: raise takes a number and touches no memory of ours.
    unsafe { libc::raise(libc::SIGSTOP) };
}
