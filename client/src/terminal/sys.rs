//! Settings of a terminal in the kernel (termios).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel's treatment of a terminal's keys and output.
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

    /// Returns settings that deliver every key as it is typed and leave output unchanged.
    pub fn raw(&self) -> Settings {
        let mut settings = self.0;
        // SAFETY: cfmakeraw only changes the value it is given, which is ours.
        unsafe { libc::cfmakeraw(&mut settings) };
        Settings(settings)
    }

    /// Returns settings that leave output unchanged and turn off echo. Keys that send signals still do.
    pub fn raw_output(&self) -> Settings {
        let mut settings = self.0;
        settings.c_oflag &= !libc::OPOST;
        settings.c_lflag &= !libc::ECHO;
        Settings(settings)
    }

    /// Applies the settings at once. Waiting until all output is read (TCSADRAIN) could wait forever.
    pub fn apply(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            // SAFETY: the descriptor is borrowed, so open, and the settings came from tcgetattr.
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

/// Returns true if the terminal is our controlling terminal and another process group is in its foreground: its settings belong
/// to that group then. A terminal that is not our controlling one has no foreground group for us.
pub fn is_background(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the descriptor is borrowed, so open; tcgetpgrp only reads what the terminal knows.
    let foreground = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    // SAFETY: getpgrp has no preconditions.
    foreground > 0 && foreground != unsafe { libc::getpgrp() }
}

/// Opens a pseudo-terminal for a test: the side of the person, and the side of the program.
#[cfg(test)]
pub fn pair() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut person, mut program) = (0, 0);
    let null = std::ptr::null_mut();
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both numbers are ours to write and the size is ours to read; name and settings may be null.
    let done = unsafe { libc::openpty(&mut person, &mut program, null, null as *const _, &size) };
    assert_eq!(done, 0, "openpty: {}", io::Error::last_os_error());
    // SAFETY: the call above just made both descriptors, and nothing else has them.
    unsafe { (std::fs::File::from_raw_fd(person), std::fs::File::from_raw_fd(program)) }
}
