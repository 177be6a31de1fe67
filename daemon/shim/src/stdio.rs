//! The two ends of a program's streams: pipes, or a terminal.

use super::start::{StepFailed, failed_at};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use toold_format::launch::LaunchOptions;
use toold_format::step;

/// Pipes for output, and `/dev/null` for a program without input.
pub struct Pipes {
    out: (OwnedFd, OwnedFd),
    err: (OwnedFd, OwnedFd),
    null: OwnedFd,
}

impl Pipes {
    pub fn open() -> Result<Pipes, Errno> {
        let (out, err) = (pipe()?, pipe()?);
        nonblocking(&out.0)?;
        nonblocking(&err.0)?;
        let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Pipes { out, err, null })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
}

/// The shim's ends of the program's streams.
pub struct ParentStdio {
    pub out: OwnedFd,
    pub err: Option<OwnedFd>,
    pub stdin: Option<OwnedFd>,
    pub is_pty: bool,
}

/// The program's own ends.
pub struct ChildStdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

impl ChildStdio {
    pub fn raw_fds(&self) -> [RawFd; 3] {
        [self.stdin.as_raw_fd(), self.stdout.as_raw_fd(), self.stderr.as_raw_fd()]
    }
}

impl ParentStdio {
    /// `dev`: the devices that the program will see, if they are not those of the host.
    pub(super) fn open(
        options: &LaunchOptions,
        pipes: Option<Pipes>,
        dev: Option<BorrowedFd<'_>>,
    ) -> Result<(ParentStdio, ChildStdio), StepFailed> {
        if options.pty {
            ParentStdio::pty(options, dev)
        } else {
            ParentStdio::pipes(options, pipes).map_err(failed_at(step::PIPE))
        }
    }

    /// Returns the inode of the pipe to stdin; 0 for none. A daemon cannot see the shim's descriptors.
    pub fn stdin_inode(&self) -> u64 {
        self.stdin.as_ref().and_then(|pipe| rustix::fs::fstat(pipe).ok()).map_or(0, |pipe| pipe.st_ino)
    }

    fn pty(options: &LaunchOptions, dev: Option<BorrowedFd<'_>>) -> Result<(ParentStdio, ChildStdio), StepFailed> {
        let fail = failed_at(step::PTY);
        let master = open_master(dev).map_err(&fail)?;
        rustix::pty::unlockpt(&master).map_err(&fail)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).map_err(&fail)?;
        let size = rustix::termios::Winsize { ws_row: options.rows, ws_col: options.cols, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).map_err(&fail)?;
        nonblocking(&master).map_err(&fail)?;
        let copy = || slave.try_clone().map_err(|_| StepFailed(step::PTY, Errno::MFILE));
        let theirs = ChildStdio { stdin: copy()?, stdout: copy()?, stderr: slave };
        Ok((ParentStdio { out: master, err: None, stdin: None, is_pty: true }, theirs))
    }

    fn pipes(options: &LaunchOptions, pipes: Option<Pipes>) -> Result<(ParentStdio, ChildStdio), Errno> {
        let Pipes { out, err, null } = pipes.map_or_else(Pipes::open, Ok)?;
        let (stdin, their_in) = if options.stdin_pipe {
            let (read, write) = pipe()?;
            nonblocking(&write)?;
            (Some(write), read)
        } else {
            (None, null)
        };
        // Merged, the pipe for stderr is closed unused.
        let (err, stderr) = match options.merge {
            true => (None, out.1.try_clone().map_err(|_| Errno::MFILE)?),
            false => (Some(err.0), err.1),
        };
        let ends = ParentStdio { out: out.0, err, stdin, is_pty: false };
        Ok((ends, ChildStdio { stdin: their_in, stdout: out.1, stderr }))
    }
}

/// Makes a terminal, among those that the program will see: it looks for the name of its own there.
fn open_master(dev: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
    let of_host = || rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
    let Some(dev) = dev else { return of_host() };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(dev, c"pts/ptmx", flags, Mode::empty()) {
        // The kernel made no terminals for this namespace.
        Err(Errno::NOENT) => of_host(),
        master => master,
    }
}

pub fn nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(fd, true)
}
