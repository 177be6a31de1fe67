//! The settings of a terminal as the kernel keeps them (termios), read and set.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What a terminal does with keys and output.
#[derive(Clone, Copy)]
pub struct Settings(libc::termios);

impl Settings {
    pub fn read(fd: BorrowedFd<'_>) -> io::Result<Settings> {
        // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
        let mut settings: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is borrowed, so open, and `settings` is ours.
        match unsafe { libc::tcgetattr(fd.as_raw_fd(), &mut settings) } {
            0 => Ok(Settings(settings)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Every key comes as it is typed, and output goes out as it is.
    pub fn raw(&self) -> Settings {
        let mut settings = self.0;
        // SAFETY: cfmakeraw only changes the value it is given, which is ours.
        unsafe { libc::cfmakeraw(&mut settings) };
        Settings(settings)
    }

    /// Output goes out as it is; keys are not shown, and those that send signals still do.
    pub fn raw_output(&self) -> Settings {
        let mut settings = self.0;
        settings.c_oflag &= !libc::OPOST;
        settings.c_lflag &= !libc::ECHO;
        Settings(settings)
    }

    /// At once: to wait until all output is read could be to wait for ever.
    pub fn apply(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            // SAFETY: the descriptor is borrowed, so open, and the settings are whole.
            match unsafe { libc::tcsetattr(fd.as_raw_fd(), libc::TCSANOW, &self.0) } {
                0 => return Ok(()),
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }

    #[cfg(test)]
    pub fn flags(&self) -> [libc::tcflag_t; 4] {
        [self.0.c_iflag, self.0.c_oflag, self.0.c_cflag, self.0.c_lflag]
    }
}

/// Whether the terminal is ours and listens to somebody else now: it is theirs to set then. A
/// terminal that is not the one we were started from has no such order.
pub fn is_background(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the descriptor is borrowed, so open; tcgetpgrp only reads what the terminal knows.
    let front = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    // SAFETY: getpgrp has no preconditions.
    front > 0 && front != unsafe { libc::getpgrp() }
}

/// A terminal for a test: the side that a person would see and type on, and the program's.
#[cfg(test)]
pub fn pair() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut person, mut program) = (0, 0);
    let null = std::ptr::null_mut();
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both numbers are ours to be written, and the size to be read; name and settings may be null.
    let done = unsafe { libc::openpty(&mut person, &mut program, null, null as *const _, &size) };
    assert_eq!(done, 0, "openpty: {}", io::Error::last_os_error());
    // SAFETY: the call above just made both descriptors, and nobody else has them.
    unsafe { (std::fs::File::from_raw_fd(person), std::fs::File::from_raw_fd(program)) }
}
