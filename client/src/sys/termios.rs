//! Terminals: settings in the kernel (termios), window size and foreground process group.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use toold_proto::pty::PtySize;

/// The kernel's treatment of a terminal's keys and output.
#[derive(Clone, Copy)]
pub struct TerminalSettings(libc::termios);

impl TerminalSettings {
    pub fn read(fd: BorrowedFd<'_>) -> io::Result<TerminalSettings> {
        // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
        let mut settings: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is borrowed, so open, and `settings` is ours.
        match unsafe { libc::tcgetattr(fd.as_raw_fd(), &mut settings) } {
            0 => Ok(TerminalSettings(settings)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns settings that deliver every key as it is typed and leave output unchanged.
    pub fn raw(&self) -> TerminalSettings {
        let mut settings = self.0;
        // SAFETY: cfmakeraw only changes the value it is given, which is ours.
        unsafe { libc::cfmakeraw(&mut settings) };
        TerminalSettings(settings)
    }

    /// Returns settings that leave output unchanged and turn off echo. Keys that send signals still do.
    pub fn raw_output(&self) -> TerminalSettings {
        let mut settings = self.0;
        settings.c_oflag &= !libc::OPOST;
        settings.c_lflag &= !libc::ECHO;
        TerminalSettings(settings)
    }

    /// Returns settings that deliver keys one by one without echo. Keys that send signals still do.
    pub fn key_by_key(&self) -> TerminalSettings {
        let mut settings = self.0;
        settings.c_lflag &= !(libc::ICANON | libc::ECHO);
        TerminalSettings(settings)
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

/// Returns the window size of the terminal behind a descriptor; a dimension that was never set is 0. None if the descriptor is
/// not a terminal.
pub fn window_size(fd: BorrowedFd<'_>) -> Option<PtySize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is borrowed, so open, and `size` is what TIOCGWINSZ writes.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
    (done == 0).then(|| PtySize { rows: size.ws_row.into(), cols: size.ws_col.into() })
}

/// Returns true if our process group is in the foreground of the terminal behind a descriptor.
pub fn is_foreground(fd: BorrowedFd<'_>) -> bool {
    foreground_group(fd) == Some(own_group())
}

/// Returns true if the terminal is our controlling terminal and another process group is in its foreground: its settings belong
/// to that group then. A terminal that is not our controlling one has no foreground group for us.
pub fn is_background(fd: BorrowedFd<'_>) -> bool {
    foreground_group(fd).is_some_and(|group| group != own_group())
}

/// Returns true if a line typed at the terminal behind a descriptor is for us: our process group is in its foreground, and no
/// other program reads it key by key, as a pager or a shell's line editor does. Also true for a terminal that is gone or is not
/// our controlling terminal: nothing else is known to read it.
pub fn is_canonical_foreground(fd: BorrowedFd<'_>) -> bool {
    let canonical = TerminalSettings::read(fd).map_or(true, |settings| settings.0.c_lflag & libc::ICANON != 0);
    canonical && !is_background(fd)
}

/// Returns true if the terminal behind a descriptor echoes typed keys, as it does unless they are secret.
pub fn has_echo(fd: BorrowedFd<'_>) -> bool {
    TerminalSettings::read(fd).is_ok_and(|settings| settings.0.c_lflag & libc::ECHO != 0)
}

/// Returns the foreground process group of our controlling terminal; None for any other descriptor.
fn foreground_group(fd: BorrowedFd<'_>) -> Option<libc::pid_t> {
    // SAFETY: the descriptor is borrowed, so open; tcgetpgrp only reads what the terminal knows.
    let group = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    (group > 0).then_some(group)
}

fn own_group() -> libc::pid_t {
    // SAFETY: getpgrp has no preconditions.
    unsafe { libc::getpgrp() }
}

/// Opens a pseudo-terminal for a test: the side of the person, and the side of the program.
#[cfg(test)]
pub fn open_pty() -> (std::fs::File, std::fs::File) {
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
